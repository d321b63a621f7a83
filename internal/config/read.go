package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/strictyaml"
)

// BuiltinName is how people know the built-in configuration.
const BuiltinName = "the built-in config.yaml"

// Builtin reads the configuration that the binary carries, from its files.
func Builtin(files fs.FS) (Config, error) {
	b, err := fs.ReadFile(files, "config.yaml")
	if err != nil {
		return Config{}, err
	}
	return parse(BuiltinName, b, Config{}, func(name string) ([]byte, string, error) {
		b, err := fs.ReadFile(files, path.Clean(name))
		return b, "", err
	})
}

// Read reads a configuration file strictly, with the files that it names, and checks what it says by itself. Tools,
// resources and documents that it leaves out are those of builtin. Errors name the place.
//
// The files that were read, and the state that the file names, are known even if reading fails.
func Read(file string, builtin Config) (Config, error) {
	b, err := readAtMost(file, mostFileBytes)
	if err != nil {
		return Config{origin: origin{files: []string{file}}}, err
	}
	beside := func(name string) string {
		if filepath.IsAbs(name) {
			return name
		}
		return filepath.Join(filepath.Dir(file), name)
	}
	c, err := parse(file, b, builtin, func(name string) ([]byte, string, error) {
		b, err := readAtMost(beside(name), mostPartBytes)
		return b, beside(name), err
	})
	if err == nil {
		c.readSecrets(beside)
	}
	c.origin.files = append([]string{file}, c.origin.files...)
	return c, err
}

// The greatest lengths of a configuration, and of a file that it names. What they hold is trusted; the bounds only keep
// a wrong path from filling the memory.
const (
	mostFileBytes = 16 << 20
	mostPartBytes = 256 << 20
)

func readAtMost(file string, most int64) ([]byte, error) {
	// A pipe that nobody writes to would never be read to its end. One that a shell made for this call is written to.
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() && !info.IsDir() && !strings.HasPrefix(file, "/dev/fd/") {
		return nil, fmt.Errorf("%s is no regular file; check the path", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%s is longer than %d bytes; check the path", file, most)
	}
	return b, err
}

// open reads a file that the configuration names, and gives the path that it has.
type open func(name string) (content []byte, path string, err error)

func parse(file string, b []byte, builtin Config, read open) (Config, error) {
	document, err := strictyaml.Only(file, b)
	if err != nil {
		return Config{}, err
	}
	c := Config{origin: origin{own: &document, builtin: builtin.origin.own, inherited: map[string]bool{}, overlaid: map[string]string{}}}
	if at, found := valueless("", document.JSON()); found {
		return c, document.Fault(at, "it has no value; write one, or remove the key")
	}
	if err := document.Decode(&c); err != nil {
		c.State = stateOf(document)
		return c, misplaced(err)
	}
	err = c.readParts(read)
	c.inherit(builtin)
	return c, errors.Join(err, c.check())
}

// stateOf is the state that a document names, whatever else is wrong in it: people are told what it holds.
func stateOf(document strictyaml.Document) string {
	members, _ := ijson.Members(document.JSON())
	for _, m := range members {
		if m.Name == "state" {
			state, _ := ijson.String(m.Value)
			return state
		}
	}
	return ""
}

// valueless finds a null or an empty text. It would read as what is left out, and what is left out can mean a default.
// In a schema and in a document it stands for itself; in a list it is named by check.
func valueless(pointer string, raw ijson.Raw) (at string, found bool) {
	if raw.Kind() == 'n' || string(raw) == `""` && pointer != "" && !emptyPlace.MatchString(pointer) {
		return pointer, true
	}
	if schemaPlace.MatchString(pointer) {
		return "", false
	}
	members, _ := ijson.Members(raw)
	for _, m := range members {
		if at, found := valueless(pointer+"/"+ijson.EscapeToken(m.Name), m.Value); found {
			return at, true
		}
	}
	return "", false
}

var (
	schemaPlace = regexp.MustCompile(`^/tools/[^/]*/(schema|output)$`)
	emptyPlace  = regexp.MustCompile(`^/documents/[^/]*/text$`)
)

// inherit takes the built-in parts in place of those that are left out.
func (c *Config) inherit(builtin Config) {
	take := func(section string, absent bool, part func()) {
		if absent && builtin.origin.own != nil {
			part()
			c.origin.inherited[section] = true
		}
	}
	take("tools", c.Tools == nil, func() { c.Tools = builtin.Tools })
	take("resources", c.Resources == nil, func() { c.Resources = builtin.Resources })
	take("documents", c.Documents == nil, func() { c.Documents = builtin.Documents })
	if c.State == "" {
		c.State = DefaultState
	}
}

// OwnResources says whether the file itself states the sets of targets.
func (c Config) OwnResources() bool {
	return c.Resources != nil && !c.origin.inherited["resources"] && c.origin.builtin != nil
}

// ResourcesName says where the sets of targets stand.
func (c Config) ResourcesName() string {
	if c.Resources.File != "" {
		return c.Resources.File
	}
	return "resources of " + c.origin.own.Place("/resources")
}

// readParts reads the files that the configuration names.
func (c *Config) readParts(read open) error {
	type place struct {
		pointer string
		part    *Part
	}
	parts := []place{{"/resources", c.Resources}, {"/documents", c.Documents}}
	for _, name := range slices.Sorted(maps.Keys(c.Tools)) {
		at := "/tools/" + ijson.EscapeToken(name)
		parts = append(parts, place{at + "/schema", c.Tools[name].Schema}, place{at + "/output", c.Tools[name].Output})
	}
	var wrong []error
	for _, p := range parts {
		if p.part == nil || p.part.File == "" {
			continue
		}
		content, file, err := read(p.part.File)
		if file != "" {
			c.origin.files = append(c.origin.files, file)
		}
		if err != nil {
			wrong = append(wrong, c.Fault(p.pointer, fmt.Sprintf("%v; a path starts at the folder of the configuration", err)))
			continue
		}
		p.part.JSON, err = ijson.Canonical(content, ijson.Limits{Bytes: mostPartBytes, Depth: ijson.DefaultLimits.Depth})
		if err == nil && p.part.JSON.Kind() != '{' {
			err = errors.New("wants an object")
		}
		if err != nil {
			wrong = append(wrong, c.Fault(p.pointer, fmt.Sprintf("%s: %v", p.part.File, err)))
		}
	}
	return errors.Join(wrong...)
}

// section is the first name of a JSON Pointer.
func section(pointer string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return name
}

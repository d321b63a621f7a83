package opa

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// addFolder adds the files at the top of fsys, which people know as folder.
func (s *Source) addFolder(fsys fs.FS, folder string) error {
	return eachPart(fsys, folder, func(shown, name string, err error) error {
		if err != nil {
			return err
		}
		content, err := fs.ReadFile(fsys, name)
		if err != nil {
			return unreadable(shown, err)
		}
		return s.add(shown, name, content)
	})
}

// eachPart calls take for each file of a folder that belongs to a bundle, and with an error for what keeps the folder
// from being one. It ends at the first error that take gives.
func eachPart(fsys fs.FS, folder string, take func(shown, name string, err error) error) error {
	return fs.WalkDir(fsys, ".", func(name string, entry fs.DirEntry, err error) error {
		shown := path.Join(folder, name)
		if err != nil {
			return take(shown, name, unreadable(shown, err))
		}
		if entry.IsDir() {
			if name != "." && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir // as Kubernetes keeps the versions of a mounted folder
			}
			return nil
		}
		part, err := isPart(shown, name)
		if err == nil {
			part, err = readable(fsys, name, shown, entry.Type(), part)
		}
		if !part && err == nil {
			return nil
		}
		return take(shown, name, err)
	})
}

// readable says whether a file is read, if its name makes it a part of the bundle: links are followed to files alone, and
// a pipe is never opened, since reading it could wait for ever.
func readable(fsys fs.FS, name, shown string, mode fs.FileMode, part bool) (bool, error) {
	if mode&fs.ModeSymlink != 0 {
		info, err := fs.Stat(fsys, name)
		switch {
		case err != nil && part:
			return false, unreadable(shown, err)
		case err != nil:
			return false, nil
		case info.IsDir() && !part && !strings.HasPrefix(path.Base(name), "."):
			return false, fmt.Errorf("%s: it is a link to a folder, and a bundle is one flat folder; name that folder as a policy path of its own, or move the link away", shown)
		}
		mode = info.Mode()
	}
	if part && !mode.IsDir() {
		return true, regular(shown, mode)
	}
	return part, nil
}

func regular(shown string, mode fs.FileMode) error {
	if !mode.IsRegular() {
		return fmt.Errorf("%s: it is a pipe or a device; put a file there", shown)
	}
	return nil
}

// unusable are files of a bundle that govern cannot honour, by a pattern of their names, and what is to be done.
var unusable = []struct{ pattern, is, remedy string }{
	{"*signatures.json", "a signature, and govern verifies none", "build the bundle without a signing key, and keep it where only those can write who may change the policy"},
	{"*.wasm", "a compiled policy", "build the bundle from its Rego: opa build -b FOLDER -o FILE" + archiveEnding},
	{"plan.*", "a compiled policy", "build the bundle from its Rego: opa build -b FOLDER -o FILE" + archiveEnding},
	{"patch.json", "a change to another bundle", "give the whole bundle"},
}

// isPart says whether a file belongs to a bundle, by its name there. Nothing is passed over that somebody may have meant.
func isPart(shown, name string) (bool, error) {
	nested := strings.Contains(name, "/")
	base, kind := path.Base(name), path.Ext(name)
	lower := strings.ToLower(kind)
	for _, u := range unusable {
		if match, _ := path.Match(u.pattern, base); match {
			return false, fmt.Errorf("%s: it is %s; %s", shown, u.is, u.remedy)
		}
	}
	if lower != kind && (lower == ".rego" || lower == ".json") {
		return false, fmt.Errorf("%s: a policy's files end in .rego or .json, in lower case; rename it, or move it out of the folder", shown)
	}
	switch {
	case base == ".manifest" && !nested:
		return true, nil
	case base != ".manifest" && strings.HasPrefix(base, "."), strings.HasPrefix(name, "schemas/") && kind != ".rego":
		return false, nil
	case nested && (kind == ".rego" || kind == ".json" || base == ".manifest"):
		return false, fmt.Errorf("%s: a bundle is one flat folder; move the file up, or name its folder as a policy path of its own", shown)
	case !nested && (lower == ".yaml" || lower == ".yml"):
		return false, fmt.Errorf("%s: data is read from JSON alone; write it as .json, or move the file out of the folder", shown)
	}
	return !nested && (kind == ".rego" || kind == ".json"), nil
}

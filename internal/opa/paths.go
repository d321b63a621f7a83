package opa

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ReadPaths reads a policy from bundles, each a folder of .rego files (with their .manifest and .json data) or a .tar.gz
// of one, and from .json data files. Without sets of targets of its own the policy gets those of base; everything else of
// base is left behind.
func ReadPaths(paths []string, base Source) (Source, error) {
	s, err := read("", paths)
	s.inheritSets(base)
	return s, err
}

// ReadLayer reads a layer in the same way. Without paths there is none, and the result is the zero value.
func ReadLayer(layer Layer, paths []string) (Source, error) {
	if len(paths) == 0 {
		return Source{}, nil
	}
	return read(layer, paths)
}

func read(layer Layer, paths []string) (Source, error) {
	s := Source{label: strings.Join(paths, ", "), layer: layer}
	seen := map[string]bool{}
	for _, path := range paths {
		clean := filepath.Clean(path)
		if seen[clean] {
			return Source{}, fmt.Errorf("%s: the policy path is given twice; give it once", path)
		}
		seen[clean] = true
		if err := s.addPath(clean); err != nil {
			return Source{}, err
		}
	}
	if len(s.modules) == 0 {
		return Source{}, fmt.Errorf("%s: there is no .rego file in what was given; add the folder that holds the policy", s.label)
	}
	return s, nil
}

func (s *Source) addPath(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return unreadable(path, err)
	}
	before := len(s.modules)
	if !info.IsDir() {
		if err := regular(path, info.Mode()); err != nil {
			return err
		}
	}
	switch {
	case info.IsDir():
		err = s.addFolder(os.DirFS(path), filepath.ToSlash(path))
	case strings.HasSuffix(path, archiveEnding):
		err = s.addArchiveFile(path)
	case filepath.Ext(path) == ".json":
		content, err := os.ReadFile(path)
		if err != nil {
			return unreadable(path, err)
		}
		return s.data.add(s.layer, path, content)
	default:
		return fmt.Errorf("%s: a policy path is a folder of .rego files, a %s of one, or a .json data file; give the folder %s instead", path, archiveEnding, filepath.Dir(path))
	}
	if err == nil && len(s.modules) == before {
		return s.noRego(path)
	}
	return err
}

// FilesAt lists the files that reading policy paths would read, or refuse, as the paths are now: for a folder its
// parts, and nothing else in it. What is not there, or cannot be looked into, is listed itself.
func FilesAt(paths []string) []string {
	var files []string
	for _, path := range paths {
		path = filepath.Clean(path)
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			files = append(files, path)
			continue
		}
		// What is wrong in it is the reader's to say.
		_ = eachPart(os.DirFS(path), filepath.ToSlash(path), func(shown, _ string, _ error) error {
			files = append(files, shown)
			return nil
		})
	}
	return files
}

// unreadable says what a person can do about a file that cannot be read.
func unreadable(path string, err error) error {
	var inner *fs.PathError
	if errors.As(err, &inner) {
		err = inner.Err // the path is said already
	}
	remedy := "check what it is"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		remedy = "check the path, and the target if it is a symbolic link"
	case errors.Is(err, fs.ErrPermission):
		remedy = "let the user that runs govern read it"
	case errors.Is(err, syscall.ELOOP):
		remedy = "its symbolic links go round in a circle: point them at a real file"
	case errors.Is(err, syscall.EISDIR):
		remedy = "it must be a file"
	}
	return fmt.Errorf("%s: %w; %s", path, err, remedy)
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// writeFolder writes into a folder that is new or empty: what is there already is never mixed with, or lost.
func writeFolder(dest string, files map[string][]byte) error {
	entries, err := os.ReadDir(dest)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return misuse(err).hint("name a folder that does not exist yet")
	}
	if len(entries) > 0 {
		return misuse(fmt.Errorf("%s is not empty", dest)).hint("name a folder that does not exist yet")
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(dest, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return misuse(err)
		}
		if err := writeNew(path, files[name]); err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes a file that does not exist yet.
func writeNew(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return misuse(fmt.Errorf("%s exists already", path)).hint("name another; nothing is overwritten")
	}
	if err != nil {
		return misuse(err)
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

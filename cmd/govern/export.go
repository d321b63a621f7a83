package main

import (
	"cmp"
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
		local, err := filepath.Localize(name)
		if err != nil {
			return misuse(fmt.Errorf("%q is no name of a file in a folder of this system", name))
		}
		path := filepath.Join(dest, local)
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

// writeWhole has write fill a new file, which appears under its name when all of it is durable, or never.
func writeWhole(path string, write func(*checkedWriter) error) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return misuse(cmp.Or(err, fmt.Errorf("%s exists already", path))).hint("name another; nothing is overwritten")
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // which only this user may read
	if err != nil {
		return misuse(err)
	}
	err = write(&checkedWriter{w: f})
	if err == nil {
		if failed := f.Sync(); failed != nil {
			err = unwritten(failed)
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

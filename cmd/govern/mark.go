package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// mark stands for what some files are: as long as its digest is the same, nothing was written to them.
type mark struct {
	digest string
	// newest is when the last of them was written.
	newest time.Time
}

// markOf looks at files, and at folders with everything in them. What is not there is a state too.
func markOf(paths []string) mark {
	h := &looker{Hash: sha256.New()}
	for _, p := range paths {
		info, err := os.Stat(p) // of what a symbolic link leads to
		if err != nil || !info.IsDir() {
			h.look(p, info, err)
			continue
		}
		err = filepath.WalkDir(p, func(name string, d fs.DirEntry, err error) error {
			if err == nil {
				info, err = os.Stat(name)
			}
			h.look(name, info, err)
			return nil
		})
		if err != nil {
			fmt.Fprintln(h, err)
		}
	}
	return mark{hex.EncodeToString(h.Sum(nil)), h.newest}
}

type looker struct {
	hash.Hash
	newest time.Time
}

func (h *looker) look(name string, info fs.FileInfo, err error) {
	if err != nil {
		fmt.Fprintf(h, "%q: %v\n", name, err)
		return
	}
	identity, touched := inode(info)
	fmt.Fprintf(h, "%q %d %d %v %s\n", name, info.Size(), touched.UnixNano(), info.Mode(), identity)
	if touched.After(h.newest) {
		h.newest = touched
	}
}

// union adds what is new to some paths.
func union(paths, more []string) []string {
	out := slices.Clone(paths)
	for _, p := range more {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

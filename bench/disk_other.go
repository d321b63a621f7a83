//go:build !linux

package main

import "os"

// filesystem names the kind of file system that a folder is on.
func filesystem(string) (string, error) { return "unknown file system", nil }

// syncData waits until the content of a file is on the disk.
func syncData(f *os.File) error { return f.Sync() }

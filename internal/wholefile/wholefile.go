// Package wholefile keeps small files that must be whole and durable or not there, and reads those that hold a secret.
package wholefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Write makes a file, whole and durable, under a name that nothing reads yet. What stands there was left by a crash, and
// goes.
func Write(file string, content []byte, mode fs.FileMode) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(file))
}

// Replace puts a file in the place of another, or where there is none, durably.
func Replace(file, by string) error {
	if err := os.Rename(by, file); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(file))
}

// syncFolder makes the names in a folder durable.
func syncFolder(folder string) error {
	if runtime.GOOS == "windows" {
		return nil // which journals names itself, and cannot sync a folder
	}
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// ErrUnusable says that a file which holds a secret is not as it has to be.
var ErrUnusable = errors.New("unusable")

// Unusable makes an ErrUnusable with words of its own.
func Unusable(format string, args ...any) error { return &unusableError{fmt.Sprintf(format, args...)} }

type unusableError struct{ text string }

func (e *unusableError) Error() string        { return e.text }
func (e *unusableError) Is(target error) bool { return target == ErrUnusable }

// ReadSecret reads a file that holds a secret, and refuses one that others can read or that is longer than most bytes. What
// is what people call it. Errors quote nothing of it; that it is not there is an fs.ErrNotExist.
func ReadSecret(file, what string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrPermission) {
		return nil, Unusable("this user cannot read %s %s; run govern as the user whose file it is", what, file)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Windows has no such bits; there the folder's access list protects the file.
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
		return nil, Unusable("%s %s can be read by others (mode %04o); close it with: chmod 600 %[2]s", what, file, info.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %s: %w", what, file, err)
	}
	if int64(len(b)) > most {
		return nil, Unusable("%s %s is longer than %d bytes; check the path", what, file, most)
	}
	return b, nil
}

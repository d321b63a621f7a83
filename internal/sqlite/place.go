package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// creating is held while it is found out whether the file is there and a new one is made. Closing a file frees every
// lock that this process has on it, SQLite's too; so whoever sees a new file here must see it only once it is closed.
var creating sync.Mutex

// place says where the store's file is, symbolic links followed, so that every name of it leads to one key. It makes
// an empty file, for this user only, where there is none and may be one.
func place(path string, mustExist bool) (string, error) {
	if path == "" {
		return "", errors.New("the store has no path; give the name of a file, such as govern.db")
	}
	if strings.HasSuffix(path, ".lock") || strings.HasSuffix(path, ".key") || strings.HasSuffix(path, ".signing-key") {
		return "", fmt.Errorf("%s is the name of a file beside a store, not of one; give the store another path", path)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := exist(path, mustExist); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s is a symbolic link to a file that does not exist; restore that file or remove the link", path)
	}
	if err != nil {
		return "", fmt.Errorf("cannot reach the store %s; make its folder readable for this user: %w", path, err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return "", err
	}
	if info.IsDir() {
		return "", fmt.Errorf("%s is a folder; name a file in it, such as %s", path, filepath.Join(path, "govern.db"))
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is not a regular file; give the store another path", path)
	}
	if n := links(info); n > 1 {
		// Each name would have a write-ahead log of its own, and so another idea of what was committed.
		return "", fmt.Errorf("%s has %d names (hard links), and a store must have one; remove the others, or use a copy", path, n)
	}
	return real, nil
}

// exist makes an empty file where there is none, unless one must be there.
func exist(path string, must bool) error {
	creating.Lock()
	defer creating.Unlock()
	_, err := os.Lstat(path)
	switch {
	case !errors.Is(err, fs.ErrNotExist):
		return nil // whatever else is wrong comes to light when it is used
	case must:
		return fmt.Errorf("there is no store %s: %w", path, fs.ErrNotExist)
	}
	return create(path)
}

func create(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	folder := filepath.Dir(path)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrExist): // another was quicker
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the folder of the store %s does not exist; create it with: mkdir -p -m 700 %s", path, folder)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user cannot create the store %s; allow it with: chmod u+rwx %s, or give the store another path: %w", path, folder, err)
	}
	return fmt.Errorf("cannot create the store %s; see that its disk works, has room and is mounted for writing, or give the store another path: %w", path, err)
}

package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Keys are the signing keys of a log, as their file holds them: a line for each.
type Keys struct {
	// Signers sign: one key, or two during a change of keys, the older one first.
	Signers []Signer
	// Retired do not sign any more. What they signed still counts.
	Retired []Verifier
}

// Origin is the name of the log, and of its keys.
func (k Keys) Origin() string { return k.Signers[0].Origin() }

// Public are the keys that sign, as they are published.
func (k Keys) Public() []string {
	var public []string
	for _, s := range k.Signers {
		public = append(public, s.String())
	}
	return public
}

// Trusted are the keys whose signatures count.
func (k Keys) Trusted() []Verifier {
	var trusted []Verifier
	for _, s := range k.Signers {
		trusted = append(trusted, s.Verifier)
	}
	return append(trusted, k.Retired...)
}

// mostKeyBytes bounds a file of keys. One has a line for each change of keys there ever was.
const mostKeyBytes = 1 << 20

// ReadKeys reads a file of signing keys, which nobody else may be able to read. Its errors quote nothing of it.
func ReadKeys(file string) (Keys, error) {
	b, err := readPrivate(file, "the signing key", mostKeyBytes)
	if err != nil {
		return Keys{}, err
	}
	var keys Keys
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if s, err := parseSigner(line); err == nil {
			keys.Signers = append(keys.Signers, s)
		} else if v, err := ParseVerifier(line); err == nil {
			keys.Retired = append(keys.Retired, v)
		} else {
			return Keys{}, damaged(file)
		}
	}
	if n := len(keys.Signers); n < 1 || n > 2 || slices.ContainsFunc(keys.Trusted(), func(v Verifier) bool { return v.Origin() != keys.Origin() }) {
		return Keys{}, damaged(file)
	}
	return keys, nil
}

// ErrKeyFile says that a file which holds a secret is not as it has to be.
var ErrKeyFile = errors.New("unusable")

func damaged(file string) error {
	return unusable("%s does not hold signing keys; restore it from a backup", file)
}

func unusable(format string, args ...any) error { return &keyFileError{fmt.Sprintf(format, args...)} }

type keyFileError struct{ text string }

func (e *keyFileError) Error() string        { return e.text }
func (e *keyFileError) Is(target error) bool { return target == ErrKeyFile }

// readPrivate reads a file that holds a secret, and refuses one that others can read.
func readPrivate(file, what string, most int64) ([]byte, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrPermission) {
		return nil, unusable("this user cannot read %s %s; run govern as the user whose file it is", what, file)
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
		return nil, unusable("%s %s can be read by others (mode %04o); close it with: chmod 600 %[2]s", what, file, info.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s %s: %w", what, file, err)
	}
	if int64(len(b)) > most {
		return nil, unusable("%s %s is longer than %d bytes; check the path", what, file, most)
	}
	return b, nil
}

func (k Keys) write(file string) error {
	var b strings.Builder
	for _, s := range k.Signers {
		b.WriteString(s.secret + "\n")
	}
	for _, v := range k.Retired {
		b.WriteString(v.String() + "\n")
	}
	return writeWhole(file, []byte(b.String()), 0o600)
}

// writeWhole makes a file durable and whole under a name that nothing reads yet.
func writeWhole(file string, content []byte, mode fs.FileMode) error {
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

// replace puts a file in the place of another, durably.
func replace(file, by string) error {
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

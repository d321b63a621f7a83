package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/policy-dispatch/govern/internal/wholefile"
)

// Act is a change of the signing keys.
type Act string

// The changes of the signing keys.
const (
	ActNew    Act = "new"    // the first key, or one in place of a lost one
	ActRotate Act = "rotate" // a second key; from here on both sign
	ActFinish Act = "finish" // the older key does not sign any more
)

// Record is the log itself, where every change of the keys stands.
type Record interface {
	// Hold keeps everybody else from changing the keys until release is called.
	Hold(ctx context.Context) (release func(), err error)
	// Keys gives the latest change on record with the keys that sign after it; none if there was none.
	Keys(ctx context.Context) (Act, []string, error)
	// Ever gives every key that ever signed by the record.
	Ever(ctx context.Context) ([]string, error)
	// Append puts a change on record, durably.
	Append(ctx context.Context, act Act, keys []string) error
}

// Keyring is a file of signing keys, together with the record of them. No key signs that is not on record.
//
// A change is written whole beside the file first, then put on record, and then takes the place of the file. If it ends
// in between, the record decides: what is on record is finished by whoever looks next, and what is not has no effect.
type Keyring struct {
	File   string
	Record Record
}

// Errors of a keyring. Each says what to do.
var (
	ErrNoKey      = errors.New("this log has no signing key; make one with: govern key new")
	ErrKeyExists  = errors.New("there is a signing key already, and it is never overwritten; change keys with: govern key rotate")
	ErrTwoKeys    = errors.New("two keys sign already; once everybody knows the newer one, drop the older with: govern key rotate --finish")
	ErrOneKey     = errors.New("there is no change of keys to finish; begin one with: govern key rotate")
	ErrNotLost    = errors.New("no signing key is lost; change keys with: govern key rotate")
	ErrNotTheKeys = errors.New("not the signing key on record")
)

// Load gives the keys that sign.
func (k *Keyring) Load(ctx context.Context) (Keys, error) {
	keys, _, err := k.match(ctx, false)
	if !errors.Is(err, ErrNotTheKeys) {
		return keys, err
	}
	// It may be that a change is under way, or was left.
	release, err := k.Record.Hold(ctx)
	if err != nil {
		return Keys{}, err
	}
	defer release()
	keys, _, err = k.match(ctx, true)
	return keys, err
}

// Trusted are the keys whose signatures count. Where the file is lost, those on record say whose checkpoints are the log's.
func (k *Keyring) Trusted(ctx context.Context) ([]Verifier, error) {
	keys, err := ReadKeys(k.file())
	if !errors.Is(err, fs.ErrNotExist) {
		return keys.Trusted(), err
	}
	return k.ever(ctx)
}

// ever are all keys that were ever on record.
func (k *Keyring) ever(ctx context.Context) (keys []Verifier, err error) {
	onRecord, err := k.Record.Ever(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range onRecord {
		v, err := ParseVerifier(text)
		if err != nil {
			return nil, fmt.Errorf("the key on record: %w", err)
		}
		keys = append(keys, v)
	}
	return keys, nil
}

// Change makes a change and gives the keys that sign after it. A change that is on record already and was left before its
// end is finished and not made again. The origin is for a first key; lost says that a key takes the place of a lost one.
func (k *Keyring) Change(ctx context.Context, act Act, origin string, lost bool) (Keys, error) {
	release, err := k.Record.Hold(ctx)
	if err != nil {
		return Keys{}, err
	}
	defer release()
	last, _, err := k.Record.Keys(ctx)
	if err != nil {
		return Keys{}, err
	}
	now, finished, err := k.match(ctx, true)
	switch {
	case finished && last == act:
		return now, nil
	case act == ActNew && !lost && errors.Is(err, ErrNoKey):
	case act == ActNew && lost && errors.Is(err, errLost):
		if now.Retired, err = k.ever(ctx); err != nil {
			return Keys{}, err
		}
		origin = now.Retired[0].Origin()
	case act == ActNew && err == nil && lost:
		return Keys{}, ErrNotLost
	case act == ActNew && err == nil:
		return Keys{}, fmt.Errorf("%s: %w", k.File, ErrKeyExists)
	case err != nil:
		return Keys{}, err
	}
	next, err := now.after(act, origin)
	if err != nil {
		return Keys{}, err
	}
	file := k.file()
	if err := next.write(file + ".new"); err != nil {
		return Keys{}, unwritten(file, err)
	}
	if err := k.Record.Append(ctx, act, next.Public()); err != nil {
		return Keys{}, err
	}
	return next, unwritten(file, wholefile.Replace(file, file+".new"))
}

// unwritten says what to do where a key could not be written.
func unwritten(file string, err error) error {
	if err == nil {
		return nil
	}
	do := "see that its folder is there, and that this user can write to it"
	switch {
	case errors.Is(err, syscall.ENOSPC):
		do = "free some space on its disk, and run the command again"
	case errors.Is(err, syscall.EIO):
		do = "see that its disk works, and run the command again"
	}
	return fmt.Errorf("cannot write the signing key beside %s; %s: %w", file, do, err)
}

// after gives the keys after a change.
func (k Keys) after(act Act, origin string) (Keys, error) {
	switch {
	case act == ActRotate && len(k.Signers) > 1:
		return Keys{}, ErrTwoKeys
	case act == ActFinish && len(k.Signers) < 2:
		return Keys{}, ErrOneKey
	case act == ActFinish:
		return Keys{k.Signers[1:], append(slices.Clone(k.Retired), k.Signers[0].Verifier)}, nil
	case act == ActRotate:
		origin = k.Origin()
	}
	s, err := NewSigner(origin)
	return Keys{append(slices.Clone(k.Signers), s), k.Retired}, err
}

// errLost is the mark of a key that is on record and has no file.
var errLost = errors.New("lost")

// match reads the file and holds it against the record. Whoever holds the record may finish a change that is on it.
func (k *Keyring) match(ctx context.Context, held bool) (keys Keys, finished bool, err error) {
	_, onRecord, err := k.Record.Keys(ctx)
	if err != nil {
		return Keys{}, false, err
	}
	file := k.file()
	keys, err = ReadKeys(file)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return Keys{}, false, err
	case missing && onRecord == nil:
		return Keys{}, false, ErrNoKey
	case !missing && slices.Equal(keys.Public(), onRecord):
		return keys, false, nil
	}
	if fresh, err := ReadKeys(file + ".new"); held && err == nil && slices.Equal(fresh.Public(), onRecord) {
		return fresh, true, unwritten(file, wholefile.Replace(file, file+".new"))
	}
	switch {
	case missing:
		err = fmt.Errorf("%w: %s is %w; put it back from where it is kept, or if nobody has it any more, begin anew with: govern key new --lost",
			ErrNotTheKeys, file, errLost)
	case onRecord == nil:
		err = fmt.Errorf("%w: %s is not of this log, or the log was cut; put back the newest state, or name another file with log.signing_key", ErrNotTheKeys, file)
	default:
		err = fmt.Errorf("%w: %s holds others; put back the newest state and the newest keys", ErrNotTheKeys, file)
	}
	return Keys{}, false, err
}

// file is the file itself, where its name is a link.
func (k *Keyring) file() string {
	if real, err := filepath.EvalSymlinks(k.File); err == nil {
		return real
	}
	return k.File
}

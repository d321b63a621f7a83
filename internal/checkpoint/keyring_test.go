package checkpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// memory is a record that can end a change before or after it is on record.
type memory struct {
	act           Act
	keys, ever    []string
	before, after error
	held          bool
}

func (m *memory) Hold(context.Context) (func(), error) {
	if m.held {
		return nil, errors.New("held already")
	}
	m.held = true
	return func() { m.held = false }, nil
}

func (m *memory) Keys(context.Context) (Act, []string, error) { return m.act, m.keys, nil }

func (m *memory) Append(_ context.Context, act Act, keys []string) error {
	if m.before != nil {
		return m.before
	}
	m.act, m.keys, m.ever = act, keys, append(m.ever, keys...)
	return m.after
}

func (m *memory) Ever(context.Context) ([]string, error) {
	return slices.Compact(slices.Sorted(slices.Values(m.ever))), nil
}

func newKeyring(t *testing.T) (*Keyring, *memory) {
	t.Helper()
	m := &memory{}
	return &Keyring{File: filepath.Join(t.TempDir(), "govern.db.signing-key"), Record: m}, m
}

func (k *Keyring) must(t *testing.T, act Act) Keys {
	t.Helper()
	keys, err := k.Change(t.Context(), act, sofa, false)
	require.NoError(t, err)
	loaded, err := k.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, keys.Public(), loaded.Public())
	return keys
}

func TestChangesOfKeys(t *testing.T) {
	k, record := newKeyring(t)
	_, err := k.Load(t.Context())
	require.ErrorIs(t, err, ErrNoKey)
	for _, act := range []Act{ActRotate, ActFinish} {
		_, err = k.Change(t.Context(), act, sofa, false)
		require.ErrorIs(t, err, ErrNoKey)
	}

	first := k.must(t, ActNew)
	require.Len(t, first.Signers, 1)
	require.Equal(t, sofa, first.Origin())
	require.Equal(t, first.Public(), record.keys)
	info, err := os.Stat(k.File)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	kept, err := os.ReadFile(k.File)
	require.NoError(t, err)

	_, err = k.Change(t.Context(), ActNew, sofa, false)
	require.ErrorIs(t, err, ErrKeyExists)
	_, err = k.Change(t.Context(), ActNew, sofa, true)
	require.ErrorIs(t, err, ErrNotLost)
	_, err = k.Change(t.Context(), ActFinish, "", false)
	require.ErrorIs(t, err, ErrOneKey)
	unchanged, err := os.ReadFile(k.File)
	require.NoError(t, err)
	require.Equal(t, kept, unchanged)

	both := k.must(t, ActRotate)
	require.Len(t, both.Signers, 2)
	require.Equal(t, first.Public()[0], both.Public()[0])
	require.Equal(t, sofa, both.Signers[1].Origin())
	_, err = k.Change(t.Context(), ActRotate, "", false)
	require.ErrorIs(t, err, ErrTwoKeys)

	last := k.must(t, ActFinish)
	require.Equal(t, both.Public()[1:], last.Public())
	require.Len(t, last.Retired, 1)
	require.Equal(t, first.Public()[0], last.Retired[0].String())
	text, err := os.ReadFile(k.File)
	require.NoError(t, err)
	require.NotContains(t, string(text), first.Signers[0].secret, "the secret of a retired key is gone")
	require.NoFileExists(t, k.File+".new")
	require.False(t, record.held)
}

// What signed before a change still counts after it.
func TestCheckpointsOfRetiredKeys(t *testing.T) {
	k, _ := newKeyring(t)
	signed, err := Sign(example(t), k.must(t, ActNew).Signers...)
	require.NoError(t, err)
	k.must(t, ActRotate)
	keys := k.must(t, ActFinish)
	_, err = Open(signed, keys.Trusted())
	require.NoError(t, err)
	_, err = Open(signed, []Verifier{keys.Signers[0].Verifier})
	require.ErrorIs(t, err, ErrUntrusted)
}

// A change that ends in between leaves no key in use that is not on record, and no record that lies: the next look, or the
// same command again, mends it.
func TestChangesThatEndInBetween(t *testing.T) {
	power := errors.New("the power went off")
	for _, act := range []Act{ActNew, ActRotate, ActFinish} {
		prepare := func(t *testing.T) (*Keyring, *memory, []string) {
			k, record := newKeyring(t)
			var now []string
			for _, earlier := range []Act{ActNew, ActRotate, ActFinish} {
				if earlier == act {
					break
				}
				now = k.must(t, earlier).Public()
			}
			return k, record, now
		}
		t.Run("before the record/"+string(act), func(t *testing.T) {
			k, record, now := prepare(t)
			record.before = power
			_, err := k.Change(t.Context(), act, sofa, false)
			require.ErrorIs(t, err, power)
			record.before = nil
			keys, err := k.Load(t.Context())
			if act == ActNew {
				require.ErrorIs(t, err, ErrNoKey)
			} else {
				require.NoError(t, err)
				require.Equal(t, now, keys.Public())
			}
			require.NotEqual(t, now, k.must(t, act).Public())
		})
		t.Run("after the record, then a look/"+string(act), func(t *testing.T) {
			k, record, now := prepare(t)
			record.after = power
			_, err := k.Change(t.Context(), act, sofa, false)
			require.ErrorIs(t, err, power)
			record.after = nil
			keys, err := k.Load(t.Context())
			require.NoError(t, err)
			require.Equal(t, record.keys, keys.Public())
			require.NotEqual(t, now, keys.Public())
			require.NoFileExists(t, k.File+".new")
		})
		t.Run("after the record, then again/"+string(act), func(t *testing.T) {
			k, record, _ := prepare(t)
			record.after = power
			_, err := k.Change(t.Context(), act, sofa, false)
			require.ErrorIs(t, err, power)
			record.after = nil
			onRecord := record.keys
			require.Equal(t, onRecord, k.must(t, act).Public(), "it is finished, and not made twice")
		})
	}
}

// No key signs that is not on record, whatever came in the place of the file or of the record.
func TestKeysThatAreNotOnRecord(t *testing.T) {
	other, _ := newKeyring(t)
	other.must(t, ActNew)
	foreign, err := os.ReadFile(other.File)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, k *Keyring, m *memory)
		want  []string
	}{
		"another key": {
			func(t *testing.T, k *Keyring, _ *memory) { require.NoError(t, os.WriteFile(k.File, foreign, 0o600)) },
			[]string{"not the signing key on record", "put back the newest state and the newest keys"},
		},
		"an older record": {
			func(_ *testing.T, _ *Keyring, m *memory) { m.keys = nil },
			[]string{"not of this log, or the log was cut", "put back the newest state"},
		},
		"no file": {
			func(t *testing.T, k *Keyring, _ *memory) { require.NoError(t, os.Remove(k.File)) },
			[]string{"is lost", "govern key new --lost"},
		},
		"a leftover that is not on record": {
			func(t *testing.T, k *Keyring, _ *memory) {
				require.NoError(t, os.Remove(k.File))
				require.NoError(t, os.WriteFile(k.File+".new", foreign, 0o600))
			},
			[]string{"is lost"},
		},
		"readable by the group": {
			func(t *testing.T, k *Keyring, _ *memory) { require.NoError(t, os.Chmod(k.File, 0o640)) },
			[]string{"0640", "chmod 600 "},
		},
		"readable by all": {
			func(t *testing.T, k *Keyring, _ *memory) { require.NoError(t, os.Chmod(k.File, 0o604)) },
			[]string{"0604", "chmod 600 "},
		},
		"cut": {
			func(t *testing.T, k *Keyring, _ *memory) { require.NoError(t, os.Truncate(k.File, 40)) },
			[]string{"does not hold signing keys"},
		},
		"empty": {
			func(t *testing.T, k *Keyring, _ *memory) { require.NoError(t, os.Truncate(k.File, 0)) },
			[]string{"does not hold signing keys"},
		},
		"a folder": {
			func(t *testing.T, k *Keyring, _ *memory) {
				require.NoError(t, os.Remove(k.File))
				require.NoError(t, os.Mkdir(k.File, 0o700))
			},
			[]string{"cannot read the signing key"},
		},
		"of two logs": {
			func(t *testing.T, k *Keyring, _ *memory) {
				s := newSigner(t, "example.com/other")
				mine, err := os.ReadFile(k.File)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(k.File, append(mine, s.secret+"\n"...), 0o600))
			},
			[]string{"does not hold signing keys"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			k, record := newKeyring(t)
			secret := k.must(t, ActNew).Signers[0].secret
			c.spoil(t, k, record)
			for _, do := range []func() (Keys, error){
				func() (Keys, error) { return k.Load(t.Context()) },
				func() (Keys, error) { return k.Change(t.Context(), ActRotate, "", false) },
				func() (Keys, error) { return k.Change(t.Context(), ActNew, sofa, false) },
			} {
				keys, err := do()
				require.Error(t, err)
				require.Zero(t, keys)
				for _, want := range append(c.want, k.File) {
					assert.Contains(t, err.Error(), want)
				}
				assert.NotContains(t, err.Error(), strings.SplitN(secret, "+", 5)[4])
			}
		})
	}
}

// A lost key can be replaced, in so many words; what it signed still counts, and the log keeps its name.
func TestALostKey(t *testing.T) {
	k, _ := newKeyring(t)
	before := k.must(t, ActNew)
	require.NoError(t, os.Remove(k.File))
	trusted, err := k.Trusted(t.Context())
	require.NoError(t, err)
	require.Len(t, trusted, 1)
	require.Equal(t, before.Public()[0], trusted[0].String())
	keys, err := k.Change(t.Context(), ActNew, "example.com/other", true)
	require.NoError(t, err)
	require.Equal(t, sofa, keys.Origin())
	require.Equal(t, before.Public()[0], keys.Retired[0].String())
	loaded, err := k.Load(t.Context())
	require.NoError(t, err)
	require.Equal(t, keys.Public(), loaded.Public())
	trusted, err = k.Trusted(t.Context())
	require.NoError(t, err)
	require.Len(t, trusted, 2, "the new one, and the one that it replaces")

	empty, _ := newKeyring(t)
	_, err = empty.Change(t.Context(), ActNew, sofa, true)
	require.ErrorIs(t, err, ErrNoKey)
	trusted, err = empty.Trusted(t.Context())
	require.NoError(t, err)
	require.Empty(t, trusted)
}

// A link is followed: the key stays where it was put.
func TestALinkToTheKey(t *testing.T) {
	k, _ := newKeyring(t)
	k.must(t, ActNew)
	real := filepath.Join(t.TempDir(), "real")
	require.NoError(t, os.Rename(k.File, real))
	require.NoError(t, os.Symlink(real, k.File))
	k.must(t, ActRotate)
	info, err := os.Lstat(k.File)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}

// So do the keys before it that nobody needed any more.
func TestALostKeyForgetsNoOlderOne(t *testing.T) {
	k, _ := newKeyring(t)
	first := k.must(t, ActNew)
	k.must(t, ActRotate)
	second := k.must(t, ActFinish)
	require.NoError(t, os.Remove(k.File))
	trusted, err := k.Trusted(t.Context())
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{first.Public()[0], second.Public()[0]}, texts(trusted))

	fresh, err := k.Change(t.Context(), ActNew, "", true)
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{first.Public()[0], second.Public()[0]}, texts(fresh.Retired))
	again, err := ReadKeys(k.File)
	require.NoError(t, err)
	assert.ElementsMatch(t, texts(fresh.Retired), texts(again.Retired))
}

func texts(keys []Verifier) (all []string) {
	for _, v := range keys {
		all = append(all, v.String())
	}
	return all
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/checkpoint"
	"github.com/policy-dispatch/govern/internal/merkle"
)

func (a *app) logProve() *cobra.Command {
	cmd := &cobra.Command{Use: "prove N", Short: "Print a proof that an entry is in the log", Args: args("the number N of an entry, the first is 0"),
		Long: `Print a proof that entry N is in the log, with a fresh checkpoint. Entries are counted from 0, in the order of the log.
Who has the bytes of the entry and a public key can check the proof elsewhere, without the log: govern log verify-proof.
The form is C2SP's tlog-proof, which other tools read too.`,
		Example: "  govern log prove 12 > entry-12.tlog-proof"}
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		n, err := checkpoint.ParseNumber(given[0])
		if err != nil {
			return misuse(err)
		}
		keys, err := s.signingKeys(cmd.Context())
		if err != nil {
			return err
		}
		c, signed, err := checkpoint.Fresh(cmd.Context(), s.store, keys)
		if err != nil {
			return err
		}
		if n >= c.Size {
			return misuse(fmt.Errorf("there is no entry %d", n)).hint(fmt.Sprintf("the log has %d; they are counted from 0", c.Size))
		}
		hashes, err := merkle.ProveRecord(cmd.Context(), s.store, n, c.Size)
		if err != nil {
			return err
		}
		leaf, err := s.leaf(cmd.Context(), n)
		if err != nil {
			return err
		}
		if merkle.CheckRecord(hashes, c.Head, n, leaf) != nil {
			return (&failure{code: exitBroken, err: fmt.Errorf("entry %d does not lead to the root of the log: something other than govern changed the state", n)}).
				hint("see what it was with govern log verify")
		}
		_, err = fmt.Fprint(a.stdout, checkpoint.EntryProof{Index: n, Hashes: hashes, Signed: signed}.Text())
		return err
	})
	return cmd
}

// leaf hashes an entry as it is in the log now.
func (s *system) leaf(ctx context.Context, n int64) (merkle.Hash, error) {
	for e, err := range s.store.EntriesFrom(ctx, n) {
		return merkle.Leaf(e.Body), err
	}
	return merkle.Hash{}, fmt.Errorf("entry %d of the log is missing", n)
}

func (a *app) logConsistency() *cobra.Command {
	cmd := &cobra.Command{Use: "consistency OLD [NEW]", Short: "Print a proof that the log has only grown", Args: oneOrTwo,
		Long: `Print a proof that the log of NEW begins with the whole log of OLD: nothing of it was changed or taken away. Each is a
number of entries, or the file of a checkpoint; without NEW it is the log as it is now. Who has a checkpoint of OLD and a
public key can check the proof elsewhere: govern log verify-proof.
The form is that of a request to a witness in C2SP's tlog-witness: "old N", hashes, an empty line, the checkpoint of NEW.`,
		Example: "  govern log consistency last-year.checkpoint > growth.proof\n  govern log consistency 120 240"}
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, given []string) error {
		keys, err := s.signingKeys(cmd.Context())
		if err != nil {
			return err
		}
		later, signed, err := checkpoint.Fresh(cmd.Context(), s.store, keys)
		if err != nil {
			return err
		}
		if len(given) > 1 {
			if later, signed, err = a.checkpointAt(cmd.Context(), s, given[1], keys); err != nil {
				return err
			}
		}
		old, _, err := a.checkpointAt(cmd.Context(), s, given[0], keys)
		if err != nil {
			return err
		}
		if old.Size > later.Size {
			return misuse(fmt.Errorf("OLD has %d entries, and NEW %d", old.Size, later.Size)).hint("usage: " + cmd.UseLine())
		}
		hashes, err := merkle.ProveTree(cmd.Context(), s.store, old.Size, later.Size)
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(a.stdout, checkpoint.GrowthProof{Old: old.Size, Hashes: hashes, Signed: signed}.Text())
		return err
	})
	return cmd
}

func oneOrTwo(cmd *cobra.Command, given []string) error {
	if len(given) == 0 {
		return args("OLD")(cmd, given)
	}
	if len(given) > 2 {
		return surplus(cmd, given[2])
	}
	return nil
}

// checkpointAt gives the checkpoint of this log that has a size, or that a file holds.
func (a *app) checkpointAt(ctx context.Context, s *system, given string, keys checkpoint.Keys) (checkpoint.Checkpoint, []byte, error) {
	c := checkpoint.Checkpoint{Origin: keys.Origin()}
	size, err := checkpoint.ParseNumber(given)
	if err != nil {
		signed, err := a.readAll(ctx, given, checkpoint.MaxBytes)
		if err != nil {
			return c, nil, err
		}
		if c, err = checkpoint.Open(signed, keys.Trusted()); err != nil {
			return c, nil, &failure{code: exitDenied, err: fmt.Errorf("%s: %w", given, err)}
		}
		err = checkpoint.Continues(ctx, s.store, c)
		if errors.Is(err, checkpoint.ErrCut) || errors.Is(err, checkpoint.ErrForked) {
			err = &failure{code: exitDenied, err: fmt.Errorf("%s: %w", given, err)}
		}
		return c, signed, err
	}
	now, err := s.store.Head(ctx)
	if err != nil {
		return c, nil, err
	}
	if size > now.Size {
		return c, nil, misuse(fmt.Errorf("the log has %d entries, and not %d", now.Size, size))
	}
	c.Size = size
	if c.Root, err = merkle.RootAt(ctx, s.store, size); err != nil {
		return c, nil, err
	}
	if err := checkpoint.Continues(ctx, s.store, c); err != nil { // it is signed as what the log was
		return c, nil, (&failure{code: exitBroken, err: err}).hint("something other than govern changed the state; see what it was with govern log verify")
	}
	signed, err := checkpoint.Sign(c, keys.Signers...)
	return c, signed, err
}

// mostEntryBytes bounds what is read as one entry.
const mostEntryBytes = 256 << 20

// readAll reads a file, or standard input for "-".
func (a *app) readAll(ctx context.Context, file string, most int) ([]byte, error) {
	in, err := a.open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	b, err := readAtMost(ctx, in, most)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fileError(file, err)
	case len(b) > most:
		return nil, misuse(fmt.Errorf("%s is longer than %d bytes", file, most)).hint("check the path")
	}
	return b, nil
}

func (a *app) logVerifyProof() *cobra.Command {
	var keys []string
	var entry, old string
	cmd := &cobra.Command{Use: "verify-proof PROOF", Short: "Check a proof, with a public key and without the log", Args: args("the file PROOF, - for standard input"),
		Long: `Check a proof that govern log prove or consistency printed. It takes no state and no network.

A proof of an entry wants the bytes of the entry, --entry: the line of an export, as it is. A proof that the log has only
grown wants the older checkpoint, --old. Whose signatures count says --key: a public key as govern key show prints it, or
a file that holds some, one a line. Without it those of the state's own signing key count, where that is at hand.

Exit code: 0 if the proof holds, 2 for a mistake in the command, 3 if it does not hold.`,
		Example: `  govern log verify-proof --key govern.vkey --entry entry-12.json entry-12.tlog-proof
  govern log verify-proof --key govern.vkey --old last-year.checkpoint growth.proof`}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringArrayVar(&keys, "key", nil, "trust this public `KEY`, or the keys in this file; may be repeated")
	cmd.Flags().StringVar(&entry, "entry", "", "the `FILE` with the bytes of the entry")
	cmd.Flags().StringVar(&old, "old", "", "the `FILE` of the older checkpoint")
	cmd.RunE = func(cmd *cobra.Command, given []string) error {
		trusted, err := a.trusted(cmd, keys)
		if err != nil {
			return err
		}
		proof, err := a.readAll(cmd.Context(), given[0], checkpoint.MaxBytes)
		if err != nil {
			return err
		}
		what, err := a.checkProof(cmd.Context(), proof, entry, old, trusted)
		if _, ok := errors.AsType[*failure](err); ok {
			return err
		}
		return a.tell(f, what, err)
	}
	return cmd
}

// shown is what a proof shows.
type shown struct {
	Verified bool   `json:"verified"`
	Problem  string `json:"problem,omitzero"`
	Origin   string `json:"origin,omitzero"`
	Size     int64  `json:"size,omitzero"`
	Entry    *int64 `json:"entry,omitzero"`
	Old      *int64 `json:"old,omitzero"`
}

// checkProof gives what a proof shows. An error that is a *failure is a mistake in the command, any other one in the proof.
func (a *app) checkProof(ctx context.Context, text []byte, entryFile, oldFile string, trusted []checkpoint.Verifier) (shown, error) {
	entry, growth, err := checkpoint.ParseProof(text)
	if err != nil {
		return shown{}, err
	}
	if entry != nil {
		if entryFile == "" || oldFile != "" {
			return shown{}, misuse(errors.New("this is the proof of an entry")).hint("give the bytes of the entry with --entry FILE, and no --old")
		}
		line, err := a.readAll(ctx, entryFile, mostEntryBytes)
		if err != nil {
			return shown{}, err
		}
		c, err := entry.Check(bytes.TrimSuffix(line, []byte("\n")), trusted)
		return shown{Verified: err == nil, Origin: c.Origin, Size: c.Size, Entry: &entry.Index}, err
	}
	if oldFile == "" || entryFile != "" {
		return shown{}, misuse(errors.New("this is the proof that a log has only grown")).hint("give the older checkpoint with --old FILE, and no --entry")
	}
	signed, err := a.readAll(ctx, oldFile, checkpoint.MaxBytes)
	if err != nil {
		return shown{}, err
	}
	old, err := checkpoint.Open(signed, trusted)
	if err != nil {
		return shown{}, fmt.Errorf("%s: %w", oldFile, err)
	}
	c, err := growth.Check(old, trusted)
	return shown{Verified: err == nil, Origin: c.Origin, Size: c.Size, Old: &growth.Old}, err
}

func (a *app) tell(f *format, v shown, wrong error) error {
	if wrong != nil {
		v = shown{Problem: wrong.Error()}
	}
	var err error
	switch {
	case f.json():
		err = writeJSON(a.stdout, v)
	case wrong != nil:
		return signedByOthers(fmt.Errorf("the proof does not hold: %w", wrong))
	case v.Entry != nil:
		_, err = fmt.Fprintf(a.stdout, "entry %d is in the log %s of %s\n", *v.Entry, printable(v.Origin), entries(v.Size))
	default:
		_, err = fmt.Fprintf(a.stdout, "the log %s of %s begins with all of its first %d\n", printable(v.Origin), entries(v.Size), *v.Old)
	}
	if err == nil && wrong != nil {
		return quietError(exitDenied)
	}
	return err
}

// signedByOthers says what can be done where no trusted key signed a checkpoint.
func signedByOthers(err error) error {
	f := &failure{code: exitDenied, err: err}
	if errors.Is(err, checkpoint.ErrUntrusted) {
		return f.hint("a checkpoint that is older than a change of keys was signed by an older key: give the public half of each that you trust with --key")
	}
	return f
}

func entries(n int64) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// trusted are the public keys that were given, or else those of the state's own signing key.
func (a *app) trusted(cmd *cobra.Command, given []string) ([]checkpoint.Verifier, error) {
	if len(given) > 0 {
		return a.parseKeys(cmd.Context(), given)
	}
	g, err := a.readConfig(cmd)
	if err != nil {
		return nil, err
	}
	file := signingKeyFile(g.config)
	keys, err := checkpoint.ReadKeys(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no signing key %s", file)
	}
	if err != nil {
		return nil, misuse(fmt.Errorf("whose signatures count? No --key is given, and %w", err)).hint("give a public key, as govern key show prints it, or a file of them with --key")
	}
	return keys.Trusted(), nil
}

// parseKeys reads public keys, and files that hold some: one a line, beside empty lines and comments.
func (a *app) parseKeys(ctx context.Context, given []string) ([]checkpoint.Verifier, error) {
	var keys []checkpoint.Verifier
	for _, text := range given {
		key, err := checkpoint.ParseVerifier(text)
		if err == nil {
			keys = append(keys, key)
			continue
		}
		content, readErr := a.readAll(ctx, text, checkpoint.MaxBytes)
		if readErr != nil {
			return nil, misuse(fmt.Errorf("--key: %w, or the name of a file that holds some", err))
		}
		before := len(keys)
		n := 0
		for line := range strings.Lines(string(content)) {
			n++
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			if key, err = checkpoint.ParseVerifier(line); err != nil {
				return nil, misuse(fmt.Errorf("%s:%d: %w", text, n, err))
			}
			keys = append(keys, key)
		}
		if len(keys) == before {
			return nil, misuse(fmt.Errorf("%s holds no key", text)).hint("write public keys into it, as govern key show prints them")
		}
	}
	return keys, nil
}

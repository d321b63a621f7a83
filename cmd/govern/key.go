package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/checkpoint"
	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func (a *app) keyCommand() *cobra.Command {
	cmd := group(&cobra.Command{
		Use: "key", Short: "The keys that sign checkpoints of the log: make, change, show",
		Long: `A signing key vouches for the log: it signs checkpoints and proofs, which anybody with its public half can check. Its
secret half stands in a file of its own beside the state (log.signing_key names another), for this user alone, and is
never shown. Every change of the keys is an entry of the log.`,
	})
	cmd.AddCommand(a.keyNew(), a.keyRotate(), a.keyShow())
	return cmd
}

func (a *app) keyNew() *cobra.Command {
	var origin string
	var lost bool
	cmd := &cobra.Command{Use: "new", Short: "Make the signing key of a log that has none", Args: args(),
		Long: `Make the signing key of a log that has none, and print its public half. Give that to whoever is to check the log, on a
way that others cannot change. A key is never overwritten.

Keep a copy of the file of the secret half where only you can read it. If it is lost, --lost begins anew with another
key, and the log says so for good.`,
		Example: "  govern key new --origin example.com/govern"}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().StringVar(&origin, "origin", "", "the `NAME` of the log for others; without it, one that is made of the state's own. It stays the same when keys change")
	cmd.Flags().BoolVar(&lost, "lost", false, "the key on record is lost: make another")
	cmd.RunE = a.withNewState(func(cmd *cobra.Command, s *system, _ []string) error {
		switch {
		case lost && origin != "":
			return misuse(errors.New("--lost and --origin do not go together")).hint("leave --origin out; the log keeps its name")
		case !cmd.Flags().Changed("origin"):
			origin = s.origin()
		}
		if err := checkpoint.CheckOrigin(origin); err != nil {
			return misuse(err)
		}
		return a.changeKeys(cmd.Context(), s, f, checkpoint.ActNew, origin, lost)
	})
	return cmd
}

func (a *app) keyRotate() *cobra.Command {
	var finish bool
	cmd := &cobra.Command{Use: "rotate", Short: "Change the signing key, in two steps", Args: args(),
		Long: `Make a second signing key, and print the public halves of both. From then on both sign, so that whoever knows either
can check what is signed. Once everybody who checks has the newer one, --finish drops the older: it signs no more, and
its secret half is gone. What it signed before still counts.`,
		Example: "  govern key rotate\n  govern key rotate --finish"}
	f := formatFlag(cmd, "text", "json")
	cmd.Flags().BoolVar(&finish, "finish", false, "drop the older key")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		act := checkpoint.ActRotate
		if finish {
			act = checkpoint.ActFinish
		}
		return a.changeKeys(cmd.Context(), s, f, act, "", false)
	})
	return cmd
}

func (a *app) changeKeys(ctx context.Context, s *system, f *format, act checkpoint.Act, origin string, lost bool) error {
	keys, err := s.keyring().Change(ctx, act, origin, lost)
	if err != nil {
		return keyError(err)
	}
	return a.showKeys(f, keys)
}

func (a *app) keyShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show", Short: "Print the public halves of the keys that sign", Args: args(),
		Long: `Print the public half of each key that signs, one a line (NAME+HASH+BASE64), behind a comment with the name of the log.
What is printed can be kept in a file and given to --key of the commands that check.`,
		Example: "  govern key show > govern.vkey"}
	f := formatFlag(cmd, "text", "json")
	cmd.RunE = a.withState(func(cmd *cobra.Command, s *system, _ []string) error {
		keys, err := s.signingKeys(cmd.Context())
		if err != nil {
			return err
		}
		return a.showKeys(f, keys)
	})
	return cmd
}

func (a *app) showKeys(f *format, keys checkpoint.Keys) error {
	if f.json() {
		return writeJSON(a.stdout, map[string]any{"origin": keys.Origin(), "keys": keys.Public()})
	}
	_, err := fmt.Fprintf(a.stdout, "# origin %s\n%s\n", keys.Origin(), strings.Join(keys.Public(), "\n"))
	return err
}

// signingKeyFile is where the signing keys of a configuration's state are. Like the store's key they stand beside the
// state itself, whatever link leads there, and people are told the whole path.
func signingKeyFile(c config.Config) string {
	if c.Log.SigningKey != "" {
		return c.Log.SigningKey
	}
	return wholePath(c.State) + ".signing-key"
}

// origin is the name of a log that nobody has named: public, and no other state's.
func (s *system) origin() string {
	return "govern/" + ijson.HMAC(s.store.Key(), "govern log origin v1", nil)[:16]
}

func (s *system) keyring() *checkpoint.Keyring {
	return &checkpoint.Keyring{File: signingKeyFile(s.config), Record: keyRecord{s}}
}

// signingKeys are the keys that sign.
func (s *system) signingKeys(ctx context.Context) (checkpoint.Keys, error) {
	keys, err := s.keyring().Load(ctx)
	return keys, keyError(err)
}

// keyError makes a mistake of a key that is not as it has to be. What the store says of itself stays as it is.
func keyError(err error) error {
	if err == nil || dispatch.KindOf(err) != dispatch.Broken {
		return err
	}
	var path *fs.PathError
	for _, known := range []error{checkpoint.ErrNoKey, checkpoint.ErrKeyExists, checkpoint.ErrTwoKeys, checkpoint.ErrOneKey, checkpoint.ErrNotLost, checkpoint.ErrNotTheKeys,
		checkpoint.ErrKeyFile} {
		if errors.Is(err, known) {
			return misuse(err)
		}
	}
	if errors.As(err, &path) && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)) {
		return misuse(err)
	}
	return err
}

// keyRecord puts changes of keys on record in the log of the state.
type keyRecord struct{ s *system }

func (r keyRecord) Hold(ctx context.Context) (release func(), err error) {
	return r.s.store.Hold(ctx, dispatch.TaskKey{ID: "signing keys"})
}

func (r keyRecord) Keys(ctx context.Context) (checkpoint.Act, []string, error) {
	act, keys, err := r.s.dispatcher.SigningKeys(ctx)
	return checkpoint.Act(act), keys, err
}

func (r keyRecord) Ever(ctx context.Context) ([]string, error) {
	return r.s.dispatcher.EverySigningKey(ctx)
}

func (r keyRecord) Append(ctx context.Context, act checkpoint.Act, keys []string) error {
	return r.s.dispatcher.RecordSigningKeys(ctx, string(act), keys, operator())
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/journal"
)

// filtersHelp explains the flags, in the help of every command that has them.
const filtersHelp = `Filters choose entries. Each can be repeated: an entry matches with any of the words of one filter, and has to match all
filters. What an entry of its kind does not have matches no filter; --tenant "" and --task "" match what is of none.
--status is what the caller got: of a decision that began a call of an outside tool that of its outcome, and "started" as long
as none is on record.
--since and --until (which is not included) are moments in RFC 3339, or durations back from now, such as 8h.`

// filters are the flags of a journal.Filter.
type filters struct {
	journal.Filter
	since, until string
}

func filterFlags(cmd *cobra.Command) *filters {
	f := &filters{}
	for _, flag := range []struct {
		words       *[]string
		name, usage string
	}{
		{&f.Tenants, "tenant", "only entries of the tenant with this `ID`"},
		{&f.Tasks, "task", "only entries of the task with this `ID`"},
		{&f.Kinds, "kind", "only entries of this `KIND`: " + strings.Join(words(dispatch.Kinds), ", ")},
		{&f.Actors, "actor", "only entries of what this `NAME` proposed or is given"},
		{&f.Tools, "tool", "only decisions and actions of calls of the tool with this `NAME`"},
		{&f.Calls, "call", "only entries of calls with this `ID`"},
		{&f.Effects, "effect", "only decisions with this `EFFECT`: " + strings.Join(words(dispatch.Effects), ", ")},
		{&f.Statuses, "status", "only decisions whose caller got this `STATUS`"},
		{&f.PolicyVersions, "policy-version", "only decisions, actions and activations of this `VERSION` of the policy"},
	} {
		cmd.Flags().StringArrayVar(flag.words, flag.name, nil, flag.usage)
	}
	cmd.Flags().StringVar(&f.since, "since", "", "only entries from this `MOMENT` on")
	cmd.Flags().StringVar(&f.until, "until", "", "only entries from before this `MOMENT`")
	return f
}

func words[W ~string](all []W) (out []string) {
	for _, w := range all {
		out = append(out, string(w))
	}
	return out
}

// read checks the flags. A word that nothing can have is a mistake, and not an empty answer.
func (f *filters) read(now time.Time) (err error) {
	for _, flag := range []struct {
		name         string
		given, known []string
	}{
		{"kind", f.Kinds, words(dispatch.Kinds)},
		{"effect", f.Effects, words(dispatch.Effects)},
	} {
		for _, word := range flag.given {
			if !slices.Contains(flag.known, word) {
				return misuse(fmt.Errorf("--%s: there is no %[1]s %q", flag.name, word)).near(word, flag.known, "there is "+strings.Join(flag.known, ", "))
			}
		}
	}
	if f.Since, err = pastMoment("since", f.since, now); err == nil {
		f.Until, err = pastMoment("until", f.until, now)
	}
	return err
}

// pastMoment reads a moment, or a duration back from now; nothing is the zero time.
func pastMoment(flag, s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return t, misuse(fmt.Errorf("--%s is %q", flag, s)).hint("give a moment such as 2030-01-31T17:00:00Z, or a duration back from now with its unit, such as 8h")
	}
	return t, nil
}

// any says that not every entry is wanted.
func (f *filters) any() bool {
	return f.since != "" || f.until != "" || len(slices.Concat(f.Tenants, f.Tasks, f.Kinds, f.Actors, f.Tools, f.Calls, f.Effects, f.Statuses, f.PolicyVersions)) > 0
}

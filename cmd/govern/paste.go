package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// command is a command line that works on the same state under the same policy as this one, whatever flags and
// environment said: people paste it.
func (g *governed) command(words ...string) string {
	words = append([]string{"govern"}, words...)
	if g.file != "" {
		words = append(words, "--config", g.file)
	}
	for _, list := range []struct {
		flag          string
		given, inFile []string
	}{{"--policy", g.config.Policy, g.inFile.Policy}, {"--org", g.config.Org, g.inFile.Org}, {"--site", g.config.Site, g.inFile.Site}} {
		if !slices.Equal(list.given, list.inFile) {
			for _, path := range list.given {
				words = append(words, list.flag, path)
			}
		}
	}
	if g.config.State != g.inFile.State {
		words = append(words, "--state", g.config.State)
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return strings.Join(words, " ")
}

// forTask adds the flags that choose a task and its actor, where the configuration does not.
func (g *governed) forTask(task, actor string, words ...string) []string {
	if task != g.inFile.Task {
		words = append(words, "--task", task)
	}
	return g.forActor(actor, words...)
}

func (g *governed) forActor(actor string, words ...string) []string {
	if actor != g.inFile.Actor {
		words = append(words, "--actor", actor)
	}
	return words
}

// forMode adds the flag for a dry run, where the approval was asked for in one and the configuration does not say so.
func (s *system) forMode(ap dispatch.Approval, words ...string) []string {
	if ap.Mode == dispatch.DryRun && s.config.Tasks[ap.Task.ID].Mode != string(dispatch.DryRun) {
		words = append(words, "--dry-run")
	}
	return words
}

// shellWord quotes what a shell would take apart. What a terminal would obey or hide stands in it as its bytes, in the
// quotes that read them (POSIX 2024, and most shells before).
func shellWord(s string) string {
	if printable(s) != s {
		return "$'" + visible(strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s), octal) + "'"
	}
	plain := func(r rune) bool {
		return r > 127 || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:=@%+,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// octal is a character as a shell reads it between $' and '. Unlike hex digits, three octal ones take in no digit after them.
func octal(r rune) string {
	var b strings.Builder
	for _, c := range []byte(string(r)) {
		fmt.Fprintf(&b, `\%03o`, c)
	}
	return b.String()
}

// createTask is the command that makes a task.
func (s *system) createTask(id, actor, profile string) string {
	words := s.forActor(actor, "task", "create", id)
	if profile != s.defaultProfile() {
		words = append(words, "--profile", profile)
	}
	return s.command(words...)
}

// nextName counts a name's last number up to one that is not taken: labels-1 gives labels-2.
func nextName(name string, taken map[string]string) string {
	base, n := name, 1
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if last, err := strconv.Atoi(name[i+1:]); err == nil {
			base, n = name[:i], last
		}
	}
	for {
		n++
		if next := fmt.Sprintf("%s-%d", base, n); taken[next] == "" {
			return next
		}
	}
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// elsewhere are the README's commands that its test cannot run, and why that is no loss.
var elsewhere = map[string]string{
	"make test":                          "this is one of its tests",
	"make build":                         "the test binary is govern already",
	"opa test policy data/readable.json": ".ci/lint runs it",
}

// TestReadmeCommands types what the README says, in its order, beside a copy of the files that it names. Where output
// is shown, it is what comes. A command must succeed unless the next one looks at its exit code.
func TestReadmeCommands(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"examples", "policy", "data", "scenarios"} {
		require.NoError(t, os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join("../..", folder))))
	}
	config, err := os.ReadFile("../../config.yaml")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), config, 0o600))

	const exitCode = "echo $?"
	commands := readmeCommands(t)
	require.Greater(t, len(commands), 15)
	seen := tokens{}
	last := 0
	for i, c := range commands {
		if elsewhere[c.line] != "" {
			continue
		}
		line := strings.Replace(seen.fill(c.line), "go run ./cmd/govern", "govern", 1)
		out, code := shell(t, dir, fmt.Sprintf("(exit %d); %s", last, line))
		last = code
		switch looked := i+1 < len(commands) && commands[i+1].line == exitCode; {
		case looked:
		case i == 0:
			require.Equal(t, exitDenied, code, "the README explains the exit code of its first command")
		default:
			require.Equal(t, exitOK, code, "line %d: %s\n%s", c.number, c.line, out)
		}
		if c.shown != "" {
			seen.compare(t, c, out)
		}
	}
}

func shell(t *testing.T, dir, line string) (output string, code int) {
	var out bytes.Buffer
	sh := exec.CommandContext(t.Context(), "sh", "-c", line)
	sh.Dir, sh.Stdout, sh.Stderr = dir, &out, &out
	err := sh.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), exit.ExitCode()
	}
	require.NoError(t, err)
	return out.String(), 0
}

// command is one command of the README, with the output shown under it.
type command struct {
	number int
	line   string
	shown  string
}

func readmeCommands(t *testing.T) []command { return commandsIn(readme(t)) }

// commandsIn reads the fenced blocks: in sh each line is a command, in console each line after a dollar sign.
func commandsIn(text string) []command {
	var all []command
	block := ""
	for i, line := range strings.Split(text, "\n") {
		typed, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			block = strings.TrimPrefix(line, "```")
		case block == "sh", block == "console" && isCommand:
			all = append(all, command{number: i + 1, line: typed})
		case block == "console":
			all[len(all)-1].shown += line + "\n"
		}
	}
	return all
}

func readme(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	return string(b)
}

// tokens are the ids and digests that stand in the README, and those that came in their place. A digest is written as
// its first eight digits and an ellipsis.
type tokens map[string]string

var (
	tokenForm = regexp.MustCompile(`(?:ap|op)-[0-9a-f]{16}|[0-9a-f]{8}…`)
	anyLines  = regexp.MustCompile(`(?m)^…\n`)
)

// fill puts what came in place of what is written.
func (k tokens) fill(line string) string {
	return tokenForm.ReplaceAllStringFunc(line, func(written string) string { return k[written] })
}

// compare holds the output against what the README shows. There, an ellipsis stands for anything within a line, or on
// a line of its own for any lines.
func (k tokens) compare(t *testing.T, c command, out string) {
	t.Helper()
	var written []string
	pattern := tokenForm.ReplaceAllStringFunc(regexp.QuoteMeta(c.shown), func(token string) string {
		written = append(written, token)
		if prefix, _, ok := strings.Cut(token, "-"); ok {
			return "(" + prefix + `-[0-9a-f]{16})`
		}
		return `([0-9a-f]{64})`
	})
	pattern = anyLines.ReplaceAllString(pattern, "(?:.*\n)*?")
	pattern = strings.ReplaceAll(pattern, "…", ".*")
	pattern = strings.ReplaceAll(pattern, "\n", " *\n") // an empty last column leaves spaces
	found := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(out)
	require.NotNil(t, found, "line %d: %s\nthe README shows\n%s\nand there came\n%s", c.number, c.line, c.shown, out)
	for i, actual := range found[1:] {
		if k[written[i]] == "" {
			k[written[i]] = actual
		}
		require.Equal(t, k[written[i]], actual, "line %d: %s", c.number, written[i])
	}
}

// Whatever the README points at is there, and its proposal is one of the example's.
func TestReadmePointsAtWhatIsThere(t *testing.T) {
	text := readme(t)
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(text, -1) {
		assert.FileExists(t, filepath.Join("../..", link[1]))
	}
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	for _, target := range regexp.MustCompile(`(?m)^make (.+)$`).FindAllStringSubmatch(text, -1) {
		assert.Contains(t, string(makefile), "\n"+target[1]+":")
	}
	example, err := os.ReadFile("../../examples/warehouse/proposals.jsonl")
	require.NoError(t, err)
	for _, proposal := range regexp.MustCompile(`(?m)^{"call_id".+$`).FindAllString(text, -1) {
		assert.Contains(t, string(example), proposal+"\n")
	}
}

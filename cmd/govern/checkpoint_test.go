package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/checkpoint"
)

// collector is a server that takes checkpoints, and answers when it is told with what.
type collector struct {
	*httptest.Server
	got    chan string
	answer chan int
	header http.Header
}

func newCollector(t *testing.T) *collector {
	c := &collector{got: make(chan string, 100), answer: make(chan int, 100)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		c.header = r.Header
		c.got <- string(b)
		select {
		case code := <-c.answer:
			w.WriteHeader(code)
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// size opens what was taken.
func (c *collector) size(t *testing.T, keys checkpoint.Keys) int64 {
	t.Helper()
	opened, err := checkpoint.Open([]byte(<-c.got), keys.Trusted())
	require.NoError(t, err)
	return opened.Size
}

// keeping is a desktop whose runs send checkpoints to a URL.
func keeping(t *testing.T, url, more string) (desktop, checkpoint.Keys) {
	t.Helper()
	d := newDesktop(t)
	d.read("s.db", "key", "new", "--origin", "example.com/desk")
	d.write("config.yaml", openConfig+"log:\n  checkpoints: ["+url+"]\n"+more)
	keys, err := checkpoint.ReadKeys(d.path("s.db.signing-key"))
	require.NoError(t, err)
	return d, keys
}

// A run sends a checkpoint at once, at its end, and in between when the log has grown, with the token of the file. What is
// slow or fails there delays no answer.
func TestARunSendsCheckpoints(t *testing.T) {
	c := newCollector(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("t0ken\n"), 0o600))
	d, keys := keeping(t, c.URL+"/desk", "  checkpoint_token_file: "+token+"\n")
	stdin, agent := io.Pipe()
	results, stdout := io.Pipe()
	var stderr strings.Builder
	done := make(chan int, 1)
	go func() {
		done <- run(t.Context(), []string{"run", "-", "--config", d.path("config.yaml"), "--state", d.path("s.db")}, stdin, stdout, &stderr)
	}()
	require.EqualValues(t, 1, c.size(t, keys), "at once")
	answers := bufio.NewScanner(results)
	for _, id := range []string{"a", "b", "c"} {
		_, err := io.WriteString(agent, call(id, "note", map[string]any{"id": id})+"\n")
		require.NoError(t, err)
		require.True(t, answers.Scan(), "nobody waits for the server, which does not answer yet")
		require.Contains(t, answers.Text(), `"status":"ok"`)
	}
	c.answer <- http.StatusNoContent // to the first one, or to nobody if the end comes before it
	c.answer <- http.StatusNoContent
	require.NoError(t, agent.Close())
	size := c.size(t, keys)
	require.Equal(t, exitOK, <-done)
	require.Greater(t, size, int64(3), "at the end")
	require.Equal(t, "Bearer t0ken", c.header.Get("Authorization"))
	require.NotContains(t, stderr.String(), "checkpoint")
}

// Failures are told, once as long as they stay the same, counted at the end, and stop nothing.
func TestARunCountsWhatFailed(t *testing.T) {
	c := newCollector(t)
	d, keys := keeping(t, c.URL+"/desk", "")
	for range 10 {
		c.answer <- http.StatusInsufficientStorage
	}
	var stderr strings.Builder
	a := &app{stdout: io.Discard, stderr: &stderr}
	s := d.system(a, "s.db")
	ticks := make(chan time.Time)
	end := a.keepCheckpoints(t.Context(), s, ticks)
	require.EqualValues(t, 1, c.size(t, keys))
	ticks <- time.Time{}
	require.EqualValues(t, 1, c.size(t, keys), "what failed is tried again")
	ticks <- time.Time{} // taken when the one before is over
	require.EqualValues(t, 1, c.size(t, keys))
	require.GreaterOrEqual(t, end(), 3)
	require.Equal(t, 1, strings.Count(stderr.String(), "it answered 507 Insufficient Storage"), stderr.String())
	require.NoError(t, s.close())
}

// A run without failures sends nothing twice.
func TestALogThatDoesNotGrowIsNotSentAgain(t *testing.T) {
	c := newCollector(t)
	d, keys := keeping(t, c.URL+"/desk", "")
	for range 10 {
		c.answer <- http.StatusOK
	}
	a := &app{stdout: io.Discard, stderr: io.Discard}
	s := d.system(a, "s.db")
	ticks := make(chan time.Time)
	end := a.keepCheckpoints(t.Context(), s, ticks)
	require.EqualValues(t, 1, c.size(t, keys))
	ticks <- time.Time{}
	ticks <- time.Time{}
	require.NoError(t, s.ensureTask(t.Context()))
	ticks <- time.Time{}
	require.EqualValues(t, 2, c.size(t, keys))
	ticks <- time.Time{} // taken when the one before is over
	require.Zero(t, end())
	require.Empty(t, c.got)
	require.NoError(t, s.close())
}

// system starts the program's own, for a test that looks inside.
func (d desktop) system(a *app, state string) *system {
	d.t.Helper()
	var s *system
	root := a.root()
	root.SetArgs([]string{"look", "--config", d.path("config.yaml"), "--state", d.path(state)})
	root.AddCommand(&cobra.Command{Use: "look", RunE: func(cmd *cobra.Command, _ []string) (err error) {
		s, err = a.start(cmd, true)
		return err
	}})
	require.NoError(d.t, root.ExecuteContext(d.t.Context()))
	return s
}

// With an interval the command goes on until it is interrupted, which is its end and no failure, unless something could not
// be written.
func TestCheckpointsUntilInterrupted(t *testing.T) {
	for target, want := range map[string]int{"kept": exitOK, "none/kept": exitBroken} {
		t.Run(target, func(t *testing.T) {
			d, keys := keeping(t, "unused", "")
			ctx, stop := context.WithCancel(t.Context())
			out, in := io.Pipe()
			var stderr strings.Builder
			done := make(chan int, 1)
			go func() {
				done <- run(ctx, []string{"log", "checkpoint", "--every", "1s", "--format", "json", "--to", d.path(target), "--config", d.path("config.yaml"),
					"--state", d.path("s.db")}, strings.NewReader(""), in, &stderr)
			}()
			printed := bufio.NewScanner(out)
			require.True(t, printed.Scan())
			require.Contains(t, printed.Text(), `"size":1,`)
			d.read("s.db", "task", "create", "other")
			require.True(t, printed.Scan())
			require.Contains(t, printed.Text(), `"size":2,`)
			stop()
			require.Equal(t, want, <-done)
			if want == exitOK {
				require.Empty(t, stderr.String())
				signed, err := os.ReadFile(d.path(target))
				require.NoError(t, err)
				_, err = checkpoint.Open(signed, keys.Trusted())
				require.NoError(t, err)
			} else {
				require.Contains(t, stderr.String(), "is not written to")
			}
		})
	}
}

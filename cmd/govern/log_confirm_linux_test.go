package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// terminal is a pair of a screen with a keyboard, and what a program has as its standard input.
func terminal(t *testing.T) (screen, stdin *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("this machine has no terminals: ", err)
	}
	t.Cleanup(func() { screen.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	stdin, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { stdin.Close() })
	return screen, stdin
}

func echoes(t require.TestingT, f *os.File) bool {
	settings, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	require.NoError(t, err)
	return settings.Lflag&unix.ECHO != 0
}

// What is typed is not shown, and the terminal is left as it was, also by a command that is stopped.
func TestConfirmShowsNothingOfWhatIsTyped(t *testing.T) {
	state := filepath.Join(t.TempDir(), "govern.db")
	s, err := sqlite.Open(t.Context(), state, sqlite.Options{})
	require.NoError(t, err)
	seal, err := dispatch.SealOf(s.Key(), dispatch.DefaultTenant, ijson.Raw(`"S3CR3T"`))
	require.NoError(t, err)
	require.NoError(t, s.Close())

	for _, stopped := range []bool{false, true} {
		screen, stdin := terminal(t)
		require.True(t, echoes(t, stdin))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan int, 1)
		var out strings.Builder
		go func() {
			done <- run(ctx, []string{"log", "confirm", seal.Digest, "--state", state}, stdin, &out, io.Discard)
		}()
		require.Eventually(t, func() bool { return !echoes(t, stdin) }, 10*time.Second, time.Millisecond)
		if stopped {
			stop()
			assert.Equal(t, exitBroken, <-done)
			assert.True(t, echoes(t, stdin))
			continue
		}
		_, err := screen.WriteString("S3CR3T\n")
		require.NoError(t, err)
		assert.Equal(t, exitOK, <-done)
		assert.Equal(t, "yes: the seal is of this value\n", out.String())
		assert.True(t, echoes(t, stdin))
		_, err = stdin.WriteString("|")
		require.NoError(t, err)
		shown := make([]byte, 100)
		n, err := screen.Read(shown)
		require.NoError(t, err)
		assert.NotContains(t, string(shown[:n]), "S3C")
		assert.Contains(t, string(shown[:n]), "|", "the terminal works")
		stop()
	}
}

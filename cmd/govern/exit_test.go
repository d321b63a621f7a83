package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// A run that ends early keeps what it came to: the first of 1, 5, 3, 4 over all of it. A mistake in the command is one
// only while nothing was judged.
func TestCodeOfARunThatEndsEarly(t *testing.T) {
	mistake, broken := misuse(errors.New("x")), errors.New("disk")
	for _, row := range []struct {
		name   string
		before int
		judged int
		err    error
		want   int
	}{
		{"a mistake before anything", exitOK, 0, mistake, exitMisuse},
		{"a mistake after something", exitOK, 1, mistake, exitBroken},
		{"stopped by a signal before anything", exitOK, 0, misuse(context.Canceled), exitBroken},
		{"broken", exitDenied, 1, broken, exitBroken},
		{"busy after a denial", exitDenied, 1, dispatch.ErrUnavailable, exitDenied},
		{"busy after a call that waits", exitWaiting, 1, dispatch.ErrUnavailable, exitDenied},
		{"busy after something unknown", exitUnknown, 1, dispatch.ErrUnavailable, exitUnknown},
		{"busy after something broken", exitBroken, 1, dispatch.ErrUnavailable, exitBroken},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := &proposals{code: row.before, n: row.judged}
			assert.Equal(t, row.want, exitCode(r.ended(row.err)))
		})
	}
}

func TestInputThatBreaksOff(t *testing.T) {
	var stdout, stderr bytes.Buffer
	in := io.MultiReader(strings.NewReader(add("m1")+"\n"), iotest.ErrReader(errors.New("cable pulled")))
	code := run(t.Context(), []string{"run", "--state", filepath.Join(t.TempDir(), "s.db"), "-"}, in, &stdout, &stderr)
	assert.Equal(t, exitBroken, code)
	assert.Equal(t, 1, strings.Count(stdout.String(), "\n"), "what was judged before was answered")
	assert.Contains(t, stderr.String(), "the proposals end early: cable pulled")
}

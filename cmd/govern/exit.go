package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// Exit codes are an interface.
const (
	exitOK      = 0 // all ok, replayed or simulated
	exitBroken  = 1 // a fault of govern or of its machine
	exitMisuse  = 2 // wrong arguments, configuration or input files
	exitDenied  = 3 // something was denied or failed
	exitWaiting = 4 // something waits for a person
	exitUnknown = 5 // the outcome of something is unknown
)

// failure is an error with its exit code and, for people, a remedy.
type failure struct {
	code int
	err  error
	fix  string
}

func (e *failure) Error() string { return e.err.Error() }
func (e *failure) Unwrap() error { return e.err }

// hint adds what a person can do, in one line.
func (e *failure) hint(fix string) *failure {
	e.fix = printable(fix)
	return e
}

// linesOf gives what an error says, a line for each of the errors that it joins. A line break anywhere else came with a
// name or a text of somebody else's, and begins no line of ours.
func linesOf(err error) []string {
	whole := err.Error()
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var lines, parts []string
		for _, part := range e.Unwrap() {
			parts = append(parts, part.Error())
			lines = append(lines, linesOf(part)...)
		}
		if heading, ok := strings.CutSuffix(whole, strings.Join(parts, "\n")); ok {
			if heading != "" {
				lines = append([]string{printable(strings.TrimSuffix(heading, "\n"))}, lines...)
			}
			return lines
		}
	case interface{ Unwrap() error }:
		inner := e.Unwrap()
		if inner == nil {
			break
		}
		before, after, ok := strings.Cut(whole, inner.Error())
		if lines := linesOf(inner); ok && len(lines) > 1 {
			lines[0] = printable(before) + lines[0]
			lines[len(lines)-1] += printable(after)
			return lines
		}
	}
	return []string{printable(whole)}
}

func misuse(err error) *failure { return &failure{code: exitMisuse, err: err} }

// quietError ends the program with a code, after everything has been said already.
type quietError int

func (e quietError) Error() string { return "done" }

func exitCode(err error) int {
	var quiet quietError
	var f *failure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &quiet):
		return int(quiet)
	case errors.Is(err, context.Canceled):
		return exitBroken // a signal came, whatever it came into
	case errors.As(err, &f):
		return f.code
	}
	switch dispatch.KindOf(err) {
	case dispatch.Misuse:
		return exitMisuse
	case dispatch.Refused:
		return exitDenied
	default:
		return exitBroken
	}
}

// hint is the outermost remedy that anything on the way of an error added.
func hint(err error) string {
	var f *failure
	for errors.As(err, &f) {
		if f.fix != "" {
			return f.fix
		}
		err = f.err
	}
	return ""
}

// statusCode is the exit code that one result asks for.
func statusCode(r dispatch.Result) int {
	if slices.ContainsFunc(r.Reasons, func(reason dispatch.Reason) bool { return reason.Code == dispatch.LateOutcome }) {
		return exitBroken
	}
	switch r.Status {
	case dispatch.StatusOK, dispatch.StatusReplayed, dispatch.StatusResumed, dispatch.StatusDryRun:
		return exitOK
	case dispatch.StatusApprovalRequired:
		return exitWaiting
	case dispatch.StatusOutcomeUnknown:
		return exitUnknown
	case dispatch.StatusInternalError, dispatch.StatusPolicyError:
		return exitBroken
	case dispatch.StatusRetryExhausted:
		return statusCode(*r.Last)
	default:
		return exitDenied
	}
}

// worst is which of two exit codes of a run stands: broken, then unknown, denied, waiting.
func worst(a, b int) int {
	for _, code := range []int{exitBroken, exitUnknown, exitDenied, exitWaiting} {
		if a == code || b == code {
			return code
		}
	}
	return exitOK
}

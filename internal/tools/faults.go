package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/outbound"
)

// Faults makes tools fail on purpose, for scenarios and tests. Only code can ask for it: no configuration leads here.
//
// The counters count down as faults happen. Set them first; then leave them to the tools, which may run concurrently.
type Faults struct {
	// ReadFailures is how many reads of documents that exist time out before anything is read.
	ReadFailures int
	// LoseDraftReply loses the reply to the next record that is created.
	LoseDraftReply bool
	// Tools are faults of named tools; of several for one tool, the earlier happen first.
	Tools []ToolFault

	mu sync.Mutex
}

// ToolFault makes the next calls of one tool fail.
type ToolFault struct {
	Tool  string
	Fail  Failure
	Times int
}

// Failure is a way to fail.
type Failure string

// The ways to fail. Unavailable needs a tool outside this process, and BadResult in it one that promises something of what it
// gives: an output schema or limit.
const (
	Timeout     Failure = "timeout"     // the operation is not begun
	Panic       Failure = "panic"       // the tool panics before its operation
	LostReply   Failure = "lost_reply"  // the operation takes place, and its caller cannot know
	Unavailable Failure = "unavailable" // the tool cannot be reached
	BadResult   Failure = "bad_result"  // the tool's result is not what it promised
)

// WithFaults gives the same tools, failing as f says. Tools made from the same f share its counters. The faults are
// inside the guard, and after what is known before anything is tried. A tool outside that is at no upstream in memory is at
// an empty one then: what fails on purpose reaches no network.
func WithFaults(tools map[string]dispatch.Tool, f *Faults) map[string]dispatch.Tool {
	failing := maps.Clone(tools)
	for name, t := range tools {
		switch t := unguarded(t).(type) {
		case local:
			t.faults = f
			failing[name] = Guarded(t)
		case outside:
			failing[name] = Guarded(t.failing(f, Lookup{}))
		case finder:
			t.outside = t.outside.failing(f, t.lookup)
			failing[name] = Guarded(t)
		}
	}
	return failing
}

func (t outside) failing(f *Faults, lookup Lookup) outside {
	if !t.simulated {
		t = t.at(&Upstream{}, lookup)
	}
	t.faults = f
	return t
}

// Check refuses faults that could never happen to these tools.
func (f *Faults) Check(tools map[string]dispatch.Tool) error {
	if f.ReadFailures < 0 {
		return fmt.Errorf("faults: read_failures is %d; it must not be negative", f.ReadFailures)
	}
	if f.ReadFailures > 0 && !anyRuns(tools, documentOperation) {
		return errors.New("faults: read_failures needs a tool that reads documents")
	}
	if f.LoseDraftReply && !anyRuns(tools, recordOperation) {
		return errors.New("faults: lose_draft_reply needs a tool that creates records")
	}
	for _, fault := range f.Tools {
		if err := fault.check(tools); err != nil {
			return fmt.Errorf("faults: %w", err)
		}
	}
	return nil
}

func anyRuns(tools map[string]dispatch.Tool, operation string) bool {
	for _, t := range tools {
		if t.Definition().Local == operation {
			return true
		}
	}
	return false
}

func (f ToolFault) check(tools map[string]dispatch.Tool) error {
	t, ok := tools[f.Tool]
	if !ok {
		return fmt.Errorf("there is no tool %q; the tools are %s", f.Tool, strings.Join(slices.Sorted(maps.Keys(tools)), ", "))
	}
	l, isLocal := unguarded(t).(local)
	if !isLocal && !isOutside(t) {
		return fmt.Errorf("the tool %s cannot be made to fail", f.Tool)
	}
	switch f.Fail {
	case Timeout, Panic, LostReply:
	case BadResult:
		if isLocal && l.badResult() == nil {
			return fmt.Errorf("%s: the fault %s needs a tool that can break a promise; give its definition an output schema or limits.output_bytes", f.Tool, f.Fail)
		}
	case Unavailable:
		if isLocal {
			return fmt.Errorf("%s: the fault %s comes with outside tools; this tool runs in this process", f.Tool, f.Fail)
		}
	default:
		return fmt.Errorf("%s: there is no fault %q; the faults are %s, %s, %s, %s and %s",
			f.Tool, f.Fail, Timeout, Unavailable, BadResult, Panic, LostReply)
	}
	if f.Times < 1 {
		return fmt.Errorf("%s: times is %d; it must be at least 1", f.Tool, f.Times)
	}
	return nil
}

// badResult is a value that the tool has promised not to give, or nil if it promises nothing.
func (t local) badResult() ijson.Raw {
	for _, text := range []string{`null`, `false`, `0`, `""`, `[]`, `{}`} {
		if len(t.CheckOutput(ijson.Raw(text))) > 0 {
			return ijson.Raw(text)
		}
	}
	if most := t.definition.Limits.OutputBytes; most > 0 && most < ijson.DefaultLimits.Bytes {
		return ijson.Raw(`"` + strings.Repeat("x", most) + `"`)
	}
	return nil
}

// around gives the tool's run as it is, or as its next fault makes it. A nil f has no faults.
func (f *Faults) around(t local, run operation) operation {
	switch f.next(t.definition) {
	case Timeout:
		return func() dispatch.Outcome {
			return dispatch.Outcome{Status: dispatch.StatusTimeout, Retryable: true}
		}
	case Panic:
		return func() dispatch.Outcome { panic("a fault that was asked for") }
	case BadResult:
		return func() dispatch.Outcome {
			outcome := run()
			if outcome.Ran {
				outcome.Value = t.badResult()
			}
			return outcome
		}
	case LostReply:
		return func() dispatch.Outcome {
			outcome := run()
			if outcome.Ran {
				outcome.Status, outcome.Retryable = dispatch.StatusOutcomeUnknown, true
			}
			return outcome
		}
	}
	return run
}

// next takes the tool's next fault, or gives "" if it has none left.
func (f *Faults) next(def dispatch.Definition) Failure {
	if f == nil {
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if def.Local == documentOperation && f.ReadFailures > 0 {
		f.ReadFailures--
		return Timeout
	}
	if def.Local == recordOperation && f.LoseDraftReply {
		f.LoseDraftReply = false
		return LostReply
	}
	for i := range f.Tools {
		if fault := &f.Tools[i]; fault.Tool == def.Name && fault.Times > 0 {
			fault.Times--
			return fault.Fail
		}
	}
	return ""
}

// isOutside says whether a tool is one of this package that is outside this process.
func isOutside(t dispatch.Tool) bool {
	switch unguarded(t).(type) {
	case outside, finder:
		return true
	}
	return false
}

// sending gives how an outside tool sends as it is, or as its next fault makes it. A nil f has no faults.
func (f *Faults) sending(t outside) send {
	switch f.next(t.definition) {
	case Timeout:
		return t.never(outbound.Deadline)
	case Unavailable:
		return t.never(outbound.Unreached)
	case Panic:
		return func(context.Context, outbound.Request) (outbound.Answer, error) { panic("a fault that was asked for") }
	case LostReply:
		return func(ctx context.Context, r outbound.Request) (outbound.Answer, error) {
			answer, err := t.send(ctx, r)
			if err == nil {
				answer, err = outbound.Answer{Sent: true}, t.fault(outbound.Broken)
			}
			return answer, err
		}
	case BadResult:
		return func(ctx context.Context, r outbound.Request) (outbound.Answer, error) {
			answer, err := t.send(ctx, r)
			if err == nil {
				answer.ContentType, answer.Body = jsonType, []byte("{")
			}
			return answer, err
		}
	}
	return t.send
}

// never is a call of which nothing is sent.
func (t outside) never(kind outbound.Fault) send {
	return func(context.Context, outbound.Request) (outbound.Answer, error) {
		return outbound.Answer{}, t.fault(kind)
	}
}

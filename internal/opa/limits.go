package opa

import (
	"context"
	"fmt"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

const (
	// firstLook is when an evaluation that goes on is looked at for the first time, and nextLook after how long again.
	firstLook = 50 * time.Millisecond
	nextLook  = 25 * time.Millisecond
)

// mostMemory is by how much the process may grow while an evaluation goes on that has been looked at.
var mostMemory uint64 = 256 << 20 // tests have less

// limits end an evaluation when its time is over, when its context ends, or when it takes too much memory. Rego asks at
// every step whether it was cancelled. What such a step can do meanwhile is bounded in builtins.go.
type limits struct {
	ctx     context.Context
	rule    string
	timeout time.Duration
	ends    time.Time
	asked   atomic.Uint32
	over    atomic.Pointer[dispatch.PolicyError]
	timer   *time.Timer
	looked  atomic.Bool
	alive   uint64 // bytes at the first look
}

var spare = sync.Pool{New: func() any {
	l := new(limits)
	l.timer = time.AfterFunc(time.Hour, l.look)
	l.timer.Stop()
	return l
}}

// limit begins to count the time.
func limit(ctx context.Context, rule string, timeout time.Duration) *limits {
	l := spare.Get().(*limits)
	l.ctx, l.rule, l.timeout, l.ends, l.alive = ctx, rule, timeout, time.Now().Add(timeout), 0
	l.over.Store(nil)
	l.timer.Reset(min(firstLook, timeout))
	return l
}

// release ends their use. They are used again only if nobody who was left behind, and no timer, can ever have looked at
// them.
func (l *limits) release() {
	if l.timer.Stop() && !l.looked.Load() && l.over.Load() == nil {
		spare.Put(l)
	}
}

// look runs while the evaluation does.
func (l *limits) look() {
	l.looked.Store(true)
	alive, stacks := memory()
	switch {
	case !time.Now().Before(l.ends):
		l.over.Store(l.late())
	case l.alive > 0 && alive > l.alive+mostMemory, stacks > mostMemory:
		l.over.Store(failed("it took more than %d MiB of memory", mostMemory>>20))
	default:
		if l.alive == 0 {
			l.alive = alive
		}
		l.timer.Reset(min(nextLook, time.Until(l.ends)))
	}
}

func (l *limits) late() *dispatch.PolicyError {
	return &dispatch.PolicyError{Code: "policy_timeout", Detail: fmt.Sprintf("%s took longer than %v", l.rule, l.timeout)}
}

// Cancelled implements topdown.Cancel.
func (l *limits) Cancelled() bool {
	return l.over.Load() != nil || l.asked.Add(1)%32 == 0 && l.ctx.Err() != nil
}

// Cancel implements topdown.Cancel.
func (l *limits) Cancel() { l.over.Store(l.late()) }

// within evaluates a question in the time and memory that there is for it. What comes too late is no answer.
func (q *question) within(ctx context.Context, timeout time.Duration, input ast.Value) (ast.Value, error) {
	l := limit(ctx, q.rule, timeout)
	defer l.release()
	answer, err := q.answer(ctx, input, l)
	switch over := l.over.Load(); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case over != nil && topdown.IsCancel(err):
		return nil, over
	case !time.Now().Before(l.ends):
		return nil, l.late()
	}
	return answer, err
}

// mostLeft bounds how many calls of built-ins may go on after their evaluations have ended.
const mostLeft = 32

// left counts them.
var left atomic.Int32

// grace is what a built-in has that looks at the clock, to end by itself.
const grace = 100 * time.Millisecond

// aside runs what may not end in time on a goroutine of its own, which is left behind if it does not. Many cannot be, or
// they would take the machine from all others.
func (l *limits) aside(f func() ([]*ast.Term, error)) ([]*ast.Term, error) {
	if left.Load() >= mostLeft {
		return nil, topdown.Halt{Err: &dispatch.PolicyError{Code: "policy_timeout",
			Detail: fmt.Sprintf("%d calls of built-ins did not end in time and still run; no other is begun that may take long", mostLeft)}}
	}
	var outputs []*ast.Term
	var err error
	done := make(chan struct{})
	var parted atomic.Bool // whoever comes second of the end and the leaving
	go func() {
		defer close(done)
		defer func() {
			if fault := recover(); fault != nil {
				err = topdown.Halt{Err: failed("panic: %v", fault)}
			}
			if parted.Swap(true) {
				left.Add(-1)
			}
		}()
		outputs, err = f()
	}()
	timer := time.NewTimer(time.Until(l.ends) + grace)
	defer timer.Stop()
	select {
	case <-done:
		return outputs, err
	case <-l.ctx.Done():
	case <-timer.C:
	}
	l.Cancel()
	left.Add(1)
	if parted.Swap(true) {
		left.Add(-1)
	}
	return nil, topdown.Halt{Err: &topdown.Error{Code: topdown.CancelErr}}
}

// memory is how many bytes the last collection of garbage found in use, and how many the stacks have. One stack alone that
// outgrew half a gigabyte would end the process.
func memory() (alive, stacks uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64(), samples[1].Value.Uint64()
}

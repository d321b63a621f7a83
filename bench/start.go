package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// start measures the real binary: how long it takes to its first answer, and what it holds while it waits.
var start = subject{
	specs: []spec{
		{"start", "from the start of a process to its first result, on a state that is there", 200, atMost, " ms"},
		{"start-new", "the same, with a state to be made", 200, atMost, " ms"},
		{"idle-memory", "the resident memory of a process that waits for its second proposal", 60, atMost, " MiB"},
	},
	open: func(ctx context.Context, e *env) ([]duel, error) {
		file := e.file("govern")
		build := exec.CommandContext(ctx, "go", "build", "-o", file, "github.com/policy-dispatch/govern/cmd/govern")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("go build: %w\n%s", err, out)
		}
		b := executable{file: file, dir: e.dir}
		return []duel{
			{a: func(ctx context.Context) (float64, error) {
				s, err := b.again(ctx)
				return s.milliseconds(), err
			}},
			{a: func(ctx context.Context) (float64, error) {
				s, err := b.toFirstResult(ctx, name('s'))
				return s.milliseconds(), err
			}},
			{a: func(ctx context.Context) (float64, error) {
				s, err := b.again(ctx)
				return s.memory, err
			}},
		}, nil
	},
}

type executable struct{ file, dir string }

// started is what one process showed.
type started struct {
	took   time.Duration
	memory float64 // MiB
}

func (s started) milliseconds() float64 { return s.took.Seconds() * 1000 }

// again starts govern on a state that another process has left.
func (b executable) again(ctx context.Context) (started, error) {
	state := name('s')
	if _, err := b.toFirstResult(ctx, state); err != nil {
		return started{}, err
	}
	return b.toFirstResult(ctx, state)
}

// toFirstResult starts govern with one proposal waiting on its standard input, reads its result, looks at it while it
// waits for the next, and lets it end.
func (b executable) toFirstResult(ctx context.Context, state string) (s started, err error) {
	cmd := exec.CommandContext(ctx, b.file, "run", "--state", state, "-")
	cmd.Dir = b.dir
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return s, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return s, err
	}
	defer func() {
		in.Close()
		io.Copy(io.Discard, out)
		if ended := cmd.Wait(); err == nil {
			err = ended
		}
		if err != nil {
			err = fmt.Errorf("govern run: %w\n%s", err, said.String())
		}
	}()
	if _, err := io.WriteString(in, read(readable)+"\n"); err != nil {
		return s, err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	s.took = time.Since(begun)
	if err != nil {
		return s, err
	}
	var r dispatch.Result
	if err := ijson.Unmarshal(line, &r); err != nil {
		return s, err
	}
	if r.Status != dispatch.StatusOK {
		return s, fmt.Errorf("the wrong answer: %s", line)
	}
	s.memory, err = resident(cmd.Process.Pid)
	return s, err
}

// resident is the memory of a process that is in use, in MiB.
func resident(pid int) (float64, error) {
	value := valueIn(fmt.Sprintf("/proc/%d/status", pid), "VmRSS")
	kib, err := strconv.ParseFloat(strings.TrimSuffix(value, " kB"), 64)
	if err != nil {
		return 0, errors.New("the resident memory of a process is read from /proc, which is not there")
	}
	return kib / 1024, nil
}

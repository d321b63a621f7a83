package sqlite

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
)

// The test binary runs itself as the other processes.
func TestMain(m *testing.M) {
	if job := os.Getenv("GOVERN_TEST_JOB"); job != "" {
		if err := child(job, os.Args[1], os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child does a job on a store as another process.
func child(job, path, name string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	switch job {
	case "open":
		if err := s.Apply(ctx, creation(name)); err != nil {
			return err
		}
		fmt.Println(hex.EncodeToString(s.Key()))
	case "count": // takes a hundred steps of the shared task
		for range 100 {
			if err := increment(ctx, s, "shared"); err != nil {
				return err
			}
		}
	case "fill": // writes so much that the log is begun anew many times
		task := creation(name).Task
		if err := s.Apply(ctx, creation(name)); err != nil {
			return err
		}
		for range 40 {
			c := next(task)
			c.Entries[0].Body = make([]byte, large)
			if err := s.Apply(ctx, c); err != nil {
				return err
			}
			task = c.Task
		}
	case "hold": // until it is killed
		if _, err := s.Hold(ctx, named(name)); err != nil {
			return err
		}
		fmt.Println("held")
		_, err := io.Copy(io.Discard, os.Stdin)
		return err
	case "syncs": // says what it does, for whoever watches its system calls
		task := creation(name).Task
		if err := s.Apply(ctx, creation(name)); err != nil { // the first also begins the log
			return err
		}
		fmt.Println("one by one")
		for range 5 {
			c := next(task)
			if err := s.Apply(ctx, c); err != nil {
				return err
			}
			task = c.Task
		}
		batch := make([]*request, 64)
		for i := range batch {
			r, err := encode(creation(fmt.Sprint(i)))
			if err != nil {
				return err
			}
			batch[i] = &request{rows: r}
		}
		fmt.Println("together")
		s.writer.run(batch)
		fmt.Println("done")
	case "commit": // until it is killed, and says what is durable
		c := creation(name)
		for {
			if err := s.Apply(ctx, c); err != nil {
				return err
			}
			fmt.Println(c.Task.Revision)
			c = next(c.Task)
		}
	}
	return nil
}

// increment takes one step of a task that others step too.
func increment(ctx context.Context, s *Store, id string) error {
	release, err := s.Hold(ctx, named(id))
	if err != nil {
		return err
	}
	defer release()
	for {
		state, err := s.Load(ctx, named(id), dispatch.Lookup{})
		if err != nil {
			return err
		}
		err = s.Apply(ctx, next(state.Task))
		if errors.Is(err, dispatch.ErrMoved) && !holdsExcludeProcesses {
			continue
		}
		return err
	}
}

func process(t *testing.T, job, path, name string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, path, name)
	cmd.Env = append(os.Environ(), "GOVERN_TEST_JOB="+job)
	return cmd
}

func TestManyProcessesOpenOneNewFileAtOnce(t *testing.T) {
	path := newPath(t)
	outputs := make([]string, 8)
	var all sync.WaitGroup
	for i := range outputs {
		cmd := process(t, "open", path, fmt.Sprint(i))
		all.Go(func() {
			out, err := cmd.CombinedOutput()
			outputs[i] = string(out)
			assert.NoError(t, err, outputs[i])
		})
	}
	all.Wait()
	s := openFile(t, path)
	for _, out := range outputs {
		assert.Equal(t, hex.EncodeToString(s.Key())+"\n", out)
	}
	tasks, err := s.Tasks(t.Context(), dispatch.DefaultTenant)
	require.NoError(t, err)
	assert.Len(t, tasks, len(outputs))
}

func TestProcessesWriteOneFileInTurns(t *testing.T) {
	path := newPath(t)
	one, two := openFile(t, path), openFile(t, path)
	createTask(t, one, "shared")
	var all sync.WaitGroup
	for range 2 {
		cmd := process(t, "count", path, "")
		all.Go(func() {
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, string(out))
		})
	}
	for _, s := range []*Store{one, two} {
		all.Go(func() {
			for range 100 {
				if !assert.NoError(t, increment(t.Context(), s, "shared")) {
					return
				}
			}
		})
	}
	all.Wait()
	task, err := one.Task(t.Context(), named("shared"))
	require.NoError(t, err)
	assert.Equal(t, 400, task.Steps)
	n := 0
	for _, err := range two.Entries(t.Context(), dispatch.DefaultTenant, "shared") {
		require.NoError(t, err)
		n++
	}
	assert.Equal(t, 401, n)
}

func TestAnEndedProcessHoldsNothing(t *testing.T) {
	path := newPath(t)
	s := openFile(t, path)
	cmd := process(t, "hold", path, "labels-1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	defer in.Close()
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)

	if holdsExcludeProcesses {
		locked, err := lockByte(s.holds.file, slotOf(named("labels-1")))
		require.NoError(t, err)
		assert.False(t, locked, "another process holds the task")
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	release, err := s.Hold(t.Context(), named("labels-1"))
	require.NoError(t, err)
	release()
}

// What was answered is there after the process was killed in the middle of its work; what is there is whole.
func TestAKilledProcessLosesNothingAnswered(t *testing.T) {
	path := newPath(t)
	for round := range 3 {
		name := fmt.Sprint("task-", round)
		cmd := process(t, "commit", path, name)
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		answered := int64(0)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			_, err := fmt.Sscan(lines.Text(), &answered)
			require.NoError(t, err, lines.Text())
			if answered == 25 {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait())
		require.GreaterOrEqual(t, answered, int64(25))

		s, err := Open(t.Context(), path, Options{})
		require.NoError(t, err)
		task, err := s.Task(t.Context(), named(name))
		require.NoError(t, err)
		assert.GreaterOrEqual(t, task.Revision, answered)
		n := int64(0)
		for _, err := range s.Entries(t.Context(), dispatch.DefaultTenant, name) {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, task.Revision, n)
		require.NoError(t, s.Close())
	}
}

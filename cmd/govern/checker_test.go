//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// The checker compares a state with what a tool outside really received. It reads the state with SQL of its own and shares no
// code with govern.

// standing is a state's tables.
type standing struct {
	tasks      []taskRow
	operations []operationRow
	approvals  []approvalRow
	entries    []entryRow
}

type taskRow struct {
	id                     string
	cancelled              bool
	cost, attempts, output int64
	inFlight               []int
}

type operationRow struct {
	id, task, key, tool, state, outward string
	// account is that of its call.
	account            string
	step, run, lookups int
}

type approvalRow struct{ id, task, state, signature string }

type entryRow struct {
	task, kind string
	step       int
	said
}

// said is what an entry's body says, whatever its kind.
type said struct {
	Input struct {
		Call struct {
			Arguments struct {
				Account string `json:"account"`
			} `json:"arguments"`
		} `json:"call"`
		Tool struct {
			Name string `json:"name"`
			Cost int64  `json:"cost"`
		} `json:"tool"`
	} `json:"input"`
	Decision json.RawMessage `json:"decision"` // an object, or the word of a vote
	Started  *struct {
		Operation string `json:"operation"`
		Run       int    `json:"run"`
		Outward   string `json:"outward"`
	} `json:"started"`
	Dispatch  int             `json:"dispatch"`
	Operation string          `json:"operation"`
	Status    string          `json:"status"`
	State     string          `json:"state"`
	Late      bool            `json:"late"`
	Tool      string          `json:"tool"`
	Value     json.RawMessage `json:"value"`
	Approval  json.RawMessage `json:"approval"` // an id, or the whole of one
	Approvals []stood         `json:"approvals"`
}

type stood struct {
	ID            string `json:"id"`
	State         string `json:"state"`
	ExpiresAtStep int    `json:"expires_at_step"`
}

// effect is what the policy decided, of a decision.
func (e said) effect() string {
	var d struct {
		Effect string `json:"effect"`
	}
	_ = json.Unmarshal(e.Decision, &d)
	return d.Effect
}

// ran says that a decision let something run.
func (e entryRow) ran() bool {
	return e.kind == "decision" && (e.effect() == "allow" || e.effect() == "resume")
}

// stands are the approvals that an entry changed.
func (e said) stands() []stood {
	var one stood
	if json.Unmarshal(e.Approval, &one) == nil && one.ID != "" {
		return append([]stood{one}, e.Approvals...)
	}
	return e.Approvals
}

// used is the id of the approval that a decision names.
func (e said) used() (id string) {
	_ = json.Unmarshal(e.Approval, &id)
	return id
}

func scan(file, sql string, row func(*zsqlite.Stmt) error) error {
	conn, err := zsqlite.OpenConn(file, zsqlite.OpenReadOnly)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetBusyTimeout(patience)
	return sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: row})
}

// startedIn counts the calls of outside tools that are on record as started.
func startedIn(file string) (n int, err error) {
	err = scan(file, `SELECT count(*) FROM entries WHERE kind = 'decision' AND CAST(body AS TEXT) -> '$.started' IS NOT NULL`, func(s *zsqlite.Stmt) error {
		n = s.ColumnInt(0)
		return nil
	})
	return n, err
}

func standingOf(t require.TestingT, file string) (out standing) {
	rows := func(sql string, row func(*zsqlite.Stmt) error) { require.NoError(t, scan(file, sql, row)) }
	rows(`SELECT id, cancelled, spent_cost, spent_attempts, spent_output, in_flight FROM tasks WHERE id <> '' ORDER BY id`, func(s *zsqlite.Stmt) error {
		r := taskRow{id: s.ColumnText(0), cancelled: s.ColumnBool(1), cost: s.ColumnInt64(2), attempts: s.ColumnInt64(3), output: s.ColumnInt64(4)}
		var flying []struct {
			Step int `json:"step"`
		}
		if text := s.ColumnText(5); text != "" {
			require.NoError(t, json.Unmarshal([]byte(text), &flying))
		}
		for _, f := range flying {
			r.inFlight = append(r.inFlight, f.Step)
		}
		out.tasks = append(out.tasks, r)
		return nil
	})
	rows(`SELECT id, task, key, tool, state, coalesce(outward, ''), coalesce(CAST(proposal AS TEXT) ->> '$.arguments.account', ''), step, run, lookups
		FROM operations WHERE effect IS NOT NULL ORDER BY id`, func(s *zsqlite.Stmt) error {
		out.operations = append(out.operations, operationRow{id: s.ColumnText(0), task: s.ColumnText(1), key: s.ColumnText(2), tool: s.ColumnText(3), state: s.ColumnText(4),
			outward: s.ColumnText(5), account: s.ColumnText(6), step: s.ColumnInt(7), run: s.ColumnInt(8), lookups: s.ColumnInt(9)})
		return nil
	})
	rows(`SELECT id, task, state, signature FROM approvals ORDER BY seq`, func(s *zsqlite.Stmt) error {
		out.approvals = append(out.approvals, approvalRow{s.ColumnText(0), s.ColumnText(1), s.ColumnText(2), s.ColumnText(3)})
		return nil
	})
	rows(`SELECT task, kind, step, CAST(body AS TEXT) FROM entries ORDER BY seq`, func(s *zsqlite.Stmt) error {
		e := entryRow{task: s.ColumnText(0), kind: s.ColumnText(1), step: s.ColumnInt(2)}
		if e.kind == "activation" || e.kind == "baseline" || e.kind == "key" {
			return nil // of no task
		}
		out.entries = append(out.entries, e)
		return json.Unmarshal([]byte(s.ColumnText(3)), &out.entries[len(out.entries)-1].said)
	})
	return out
}

// check gives what is wrong with a state, held against what the tool received.
func check(s standing, got []received) (wrong []string) {
	c := checker{standing: s, got: got}
	c.requests()
	c.budgets()
	c.theApprovals()
	for _, o := range s.operations {
		c.operation(o)
	}
	c.groups()
	return c.wrong
}

type checker struct {
	standing
	got   []received
	wrong []string
}

func (c *checker) say(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// starts are the decisions that began a call outside.
func (c *checker) starts(of func(entryRow) bool) (out []entryRow) {
	for _, e := range c.entries {
		if e.kind == "decision" && e.Started != nil && of(e) {
			out = append(out, e)
		}
	}
	return out
}

// outcomes are those of the call that a step of a task began.
func (c *checker) outcomes(start entryRow) (out []entryRow) {
	for _, e := range c.entries {
		if e.kind == "outcome" && e.task == start.task && e.Dispatch == start.step {
			out = append(out, e)
		}
	}
	return out
}

// tool and account of a request.
func (r received) to() (tool, account string) {
	tool, account, _ = strings.Cut(strings.TrimPrefix(r.path, "/"), "/")
	if r.method == "POST" {
		var body struct {
			Account string `json:"account"`
		}
		_ = json.Unmarshal([]byte(r.body), &body)
		account = body.Account
	}
	return tool, account
}

// like gives the requests that were of calls of a tool with these arguments and, where the tool sees keys, under this one.
func (c *checker) like(tool, account, outward string) (out []received) {
	for _, r := range c.got {
		if t, a := r.to(); t == tool && a == account && (r.key == "" || r.key == outward) {
			out = append(out, r)
		}
	}
	return out
}

func effects(got []received) (n int) {
	for _, r := range got {
		if r.acted {
			n++
		}
	}
	return n
}

// requests holds each request against the calls that were started.
func (c *checker) requests() {
	for _, r := range c.got {
		tool, account := r.to()
		starts := c.starts(func(e entryRow) bool {
			return e.Input.Tool.Name == tool && e.Input.Call.Arguments.Account == account && (r.key == "" || r.key == e.Started.Outward)
		})
		if n := len(c.like(tool, account, r.key)); n > len(starts) {
			c.say("%d requests like %s %s under %q, and %d calls started", n, r.method, r.path, r.key, len(starts))
		}
		if r.unstarted {
			c.say("%s %s came before its call was on record as started", r.method, r.path)
		}
	}
}

// budgets counts what was begun: each once, and what nobody has heard of as under way.
func (c *checker) budgets() {
	for _, t := range c.tasks {
		var cost, attempts, output int64
		var flying []int
		for _, e := range c.entries {
			if e.task != t.id {
				continue
			}
			if e.kind == "action" {
				output += int64(len(e.Value))
			}
			if e.ran() {
				attempts, cost = attempts+1, cost+e.Input.Tool.Cost
			}
			if e.kind == "decision" && e.Started != nil {
				switch n := len(c.outcomes(e)); {
				case n == 0:
					flying = append(flying, e.step)
				case n > 1:
					c.say("step %d has %d outcomes", e.step, n)
				}
			}
		}
		if t.cost != cost || t.attempts != attempts || t.output != output {
			c.say("task %s has spent %d, %d attempts, %d bytes, and the record says %d, %d, %d", t.id, t.cost, t.attempts, t.output, cost, attempts, output)
		}
		if !slices.Equal(slices.Sorted(slices.Values(t.inFlight)), flying) {
			c.say("task %s has steps %v in flight, and the record says %v", t.id, t.inFlight, flying)
		}
	}
	for _, e := range c.entries {
		if e.kind == "outcome" && len(c.starts(func(s entryRow) bool { return s.task == e.task && s.step == e.Dispatch })) != 1 {
			c.say("an outcome of step %d, which started nothing", e.Dispatch)
		}
	}
}

// theApprovals are consumed by one start each, unless that gave it back. The next call would be of the step after the last on record.
func (c *checker) theApprovals() {
	for _, a := range c.approvals {
		var granted, cancelled bool
		consumed, step := 0, 0
		var last stood
		for _, e := range c.entries {
			if e.task == a.task {
				step = e.step
				cancelled = cancelled || e.kind == "cancel"
			}
			if e.kind == "decision" && e.effect() == "allow" && e.used() == a.id {
				consumed++
			}
			for _, s := range e.stands() {
				if s.ID != a.id {
					continue
				}
				last = s
				granted = granted || s.State == "approved"
				if e.kind == "outcome" {
					consumed--
				}
			}
		}
		switch {
		case consumed != 0 && consumed != 1:
			c.say("approval %s was consumed %d times", a.id, consumed)
		case (consumed == 1) != (a.state == "consumed"):
			c.say("approval %s is %s, and %d calls consumed it", a.id, a.state, consumed)
		case granted && consumed == 0 && !cancelled && a.state != "approved" && !(a.state == "expired" && step >= last.ExpiresAtStep):
			c.say("approval %s was granted and is lost: it is %s", a.id, a.state)
		case last.State != a.state:
			c.say("approval %s is %s, and the record says %s", a.id, a.state, last.State)
		}
	}
}

// operation holds one against its entries and its requests.
func (c *checker) operation(o operationRow) {
	starts := c.starts(func(e entryRow) bool { return e.Started.Operation == o.id })
	if len(starts) == 0 {
		c.say("operation %s was never started", o.id)
		return
	}
	// Whether it took place, as the record tells it.
	state, run, step, actions := "", 0, 0, 0
	unheard := false
	for _, e := range c.entries {
		switch {
		case e.kind == "decision" && e.Started != nil && e.Started.Operation == o.id:
			state, run, step = "started", e.Started.Run, e.step
		case (e.kind == "outcome" || e.kind == "settlement") && e.Operation == o.id:
			state = e.State
		case e.kind == "action" && slices.ContainsFunc(starts, func(s entryRow) bool { return s.task == e.task && s.step == e.Dispatch }):
			actions++
		}
	}
	if o.state != state || o.run != run || o.step != step {
		c.say("operation %s is %s by run %d of step %d, and the record says %s, %d, %d", o.id, o.state, o.run, o.step, state, run, step)
	}
	if wanted := map[bool]int{true: 1}[o.state == "committed"]; actions != wanted {
		c.say("operation %s is %s, and has %d actions", o.id, o.state, actions)
	}

	var open []received
	for _, s := range starts {
		came := c.outcomes(s)
		unheard = unheard || len(came) == 0
		for _, r := range c.like(s.Input.Tool.Name, s.Input.Call.Arguments.Account, s.Started.Outward) {
			if r.way.open() {
				open = append(open, r)
			}
		}
	}
	if (o.state == "unknown" || o.state == "started") && !unheard && len(open) == 0 {
		c.say("operation %s is %s, though whoever called heard what came of it", o.id, o.state)
	}
	for _, s := range starts {
		for _, e := range c.outcomes(s) {
			// That a repetition was refused says nothing of a call before it that nobody heard of.
			if e.Status == "outcome_unknown" && len(open) == 0 && !(unheard && s.effect() == "resume") {
				c.say("the outcome of step %d is unknown, though the tool answered", s.step)
			}
		}
	}
	if o.outward == "" || strings.HasPrefix(o.tool, "pay_"+byOperator) {
		return // its requests have no key; see groups
	}
	n := 0
	for _, key := range outwards(starts) {
		for _, r := range c.got {
			if r.acted && r.key == key {
				n++
			}
		}
	}
	c.effects(o.id, n, []operationRow{o})
}

func outwards(starts []entryRow) (keys []string) {
	for _, s := range starts {
		if !slices.Contains(keys, s.Started.Outward) {
			keys = append(keys, s.Started.Outward)
		}
	}
	return keys
}

// effects says what is wrong with so many effects of some operations.
func (c *checker) effects(name string, n int, of []operationRow) {
	committed, open := 0, 0
	for _, o := range of {
		switch o.state {
		case "committed":
			committed++
		case "started", "unknown":
			open++
		}
	}
	if n < committed {
		c.say("%s: %d effects, and %d operations are committed", name, n, committed)
	}
	if n > committed+open {
		c.say("%s: %d effects, and only %d operations committed and %d open", name, n, committed, open)
	}
}

// groups holds effects without a key against all operations that ask for just these.
func (c *checker) groups() {
	seen := map[string]bool{}
	for _, o := range c.operations {
		name := o.tool + " " + o.account
		if !strings.HasPrefix(o.tool, "pay_"+byOperator) || seen[name] {
			continue
		}
		seen[name] = true
		var all []operationRow
		for _, other := range c.operations {
			if other.tool == o.tool && other.account == o.account {
				all = append(all, other)
			}
		}
		c.effects(name, effects(c.like(o.tool, o.account, "")), all)
	}
	for _, r := range c.got {
		if tool, account := r.to(); r.acted && !slices.ContainsFunc(c.operations, func(o operationRow) bool { return o.tool == tool && o.account == account }) {
			c.say("an effect of %s on %s, and no operation", tool, account)
		}
	}
}

// holdsUp checks a folder's state against what reached the tool, and the log.
func (u *upstream) holdsUp(t testing.TB, h home) standing {
	t.Helper()
	u.quiet(t)
	return u.holdsStill(t, h)
}

// holdsStill is holdsUp while calls are under way.
func (u *upstream) holdsStill(t testing.TB, h home) standing {
	t.Helper()
	s := standingOf(t, h.state())
	require.Empty(t, check(s, u.of(h.dir).requests()))
	noFaults(t, h.state())
	return s
}

package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	zsqlite "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// The independent checker: it reads the file of a state with SQL of its own and encoding/json, and shares no code with
// what wrote it. What it holds against the promises is what is there, whoever put it there.

// faultsOf says everything that is wrong with the state in a file. Nobody may be writing it.
func faultsOf(file string) ([]string, error) {
	conn, err := zsqlite.OpenConn(file, zsqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	c := &checker{conn: conn, tasks: map[string]*checkedTask{}, approvals: map[string]*checkedApproval{},
		operations: map[string]map[string]string{}, records: map[string]map[string]string{}}
	if c.key, err = os.ReadFile(file + ".key"); err != nil {
		c.fault("the key: %v", err)
	}
	for _, part := range []func() error{c.checkFile, c.readEntries, c.compareTasks, c.compareApprovals, c.compareRest} {
		if err := part(); err != nil {
			c.fault("the file cannot be read: %v", err)
			break
		}
	}
	return c.faults, nil
}

type checker struct {
	conn       *zsqlite.Conn
	key        []byte
	faults     []string
	tasks      map[string]*checkedTask
	approvals  map[string]*checkedApproval
	operations map[string]map[string]string
	records    map[string]map[string]string
}

// checkedTask is a task as the entries so far leave it.
type checkedTask struct {
	row      map[string]string // as the table must have it
	step, n  int
	revision int
	spent    [3]int64
	decision *checkedEntry // of the present step
	acted    bool          // the present step has its action
	closed   bool          // it was cancelled
}

type checkedApproval struct {
	checkedStand
	key      string // tenant and task
	proposal map[string]any
	sealed   bool // the proposal shows seals, and not what was signed
	used     int
}

// checkedEntry is every member that the checker looks at, of every kind of entry.
type checkedEntry struct {
	Kind, Tenant, Task, Time     string
	Step, N                      int
	Profile, Actor, Deadline     string
	CallID                       *string `json:"call_id"`
	Input                        checkedInput
	Sealed                       bool
	Decision                     json.RawMessage
	Status                       string
	Approvals                    []checkedStand
	Approval                     json.RawMessage
	Tool, Target, Operation      string
	Signature                    string
	Value, Record                json.RawMessage
	ValueBytes                   int `json:"value_bytes"`
	Reviewer                     string
	Reviewers                    []string
	PolicyVersion                string `json:"policy_version"`
	effect, version, word, under string // the decision's effect and version, the review's word, the action's approval
	terms                        *checkedTerms
}

type checkedInput struct {
	Mode string
	Task struct{ Tenant, ID, Actor string }
	Call struct {
		ID, Tool  string
		Arguments json.RawMessage
		Target    *string
		Signature *string
	}
	Tool *struct {
		Effect, Approval string
		Cost             int64
	}
	State struct{ Step int }
}

type checkedStand struct {
	ID, Signature, Actor, Definition, Mode, State string
	Step                                          int
	Terms                                         checkedTerms
	Votes                                         []checkedVote
	ExpiresAtStep                                 int    `json:"expires_at_step"`
	ExpiresAt                                     string `json:"expires_at"`
	PolicyVersion                                 string `json:"policy_version"`
}

type checkedTerms struct {
	Approvers int
	Roles     []string
	Stages    []struct {
		Name      string
		Approvers int
		Roles     []string
	}
	DistinctFromActor bool `json:"distinct_from_actor"`
	Lifetime          int
	TTL               string
	ReasonRequired    bool `json:"reason_required"`
}

type checkedVote struct {
	Reviewer, Decision, Reason, Stage, Time string
	Roles                                   []string
	Lifetime                                int
}

func (c *checker) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Sprintf(format, args...))
}

// rows gives every row of a query, each column as text.
func (c *checker) rows(query string) (out []map[string]string, err error) {
	err = sqlitex.ExecuteTransient(c.conn, query, &sqlitex.ExecOptions{ResultFunc: func(stmt *zsqlite.Stmt) error {
		row := map[string]string{}
		for i := range stmt.ColumnCount() {
			row[stmt.ColumnName(i)] = stmt.ColumnText(i)
		}
		out = append(out, row)
		return nil
	}})
	return out, err
}

func (c *checker) checkFile() error {
	found, err := c.rows("PRAGMA integrity_check")
	if err != nil {
		return err
	}
	for _, row := range found {
		if said := row["integrity_check"]; said != "ok" {
			c.fault("the file is damaged: %s", said)
		}
	}
	meta, err := c.rows("SELECT hex(value) AS id FROM meta WHERE name = 'key'")
	if err != nil {
		return err
	}
	id := sha256.Sum256(append([]byte("govern store key v1\x00"), c.key...))
	if len(meta) != 1 || !strings.EqualFold(meta[0]["id"], hex.EncodeToString(id[:])) {
		c.fault("the key is not the state's")
	}
	return nil
}

// readEntries goes through the entries of each task, and holds each against all before it.
func (c *checker) readEntries() error {
	rows, err := c.rows("SELECT tenant, task, step, n, kind, CAST(body AS TEXT) AS body, rowid AS number FROM entries ORDER BY tenant, task, step, n, rowid")
	if err != nil {
		return err
	}
	last := map[string]int{}
	for _, row := range rows {
		at := fmt.Sprintf("%s/%s %s.%s %s", row["tenant"], row["task"], row["step"], row["n"], row["kind"])
		e, err := readEntry(row["body"])
		if err != nil {
			c.fault("%s: its body cannot be read: %v", at, err)
			continue
		}
		if own := fmt.Sprintf("%s/%s %d.%d %s", e.Tenant, e.Task, e.Step, e.N, e.Kind); own != at {
			c.fault("%s: its body says that it is %s", at, own)
			continue
		}
		number, _ := strconv.Atoi(row["number"])
		if number <= last[row["tenant"]+"/"+row["task"]] {
			c.fault("%s: committed before the entry that it follows", at)
		}
		last[row["tenant"]+"/"+row["task"]] = number
		c.entry(at, e)
	}
	return nil
}

func readEntry(body string) (*checkedEntry, error) {
	var e checkedEntry
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		return nil, err
	}
	var err error
	switch e.Kind {
	case "decision":
		var d struct {
			Effect        string
			PolicyVersion string `json:"policy_version"`
			Approval      *checkedTerms
		}
		err = json.Unmarshal(e.Decision, &d)
		e.effect, e.version, e.terms = d.Effect, d.PolicyVersion, d.Approval
	case "review", "reopen":
		var s checkedStand
		err = json.Unmarshal(e.Approval, &s)
		e.Approvals = []checkedStand{s}
		if err == nil && e.Kind == "review" {
			err = json.Unmarshal(e.Decision, &e.word)
		}
	case "action":
		if e.Approval != nil {
			err = json.Unmarshal(e.Approval, &e.under)
		}
	}
	return &e, err
}

func (c *checker) entry(at string, e *checkedEntry) {
	name := e.Tenant + "/" + e.Task
	t := c.tasks[name]
	switch {
	case t == nil:
		t = &checkedTask{row: map[string]string{"tenant": e.Tenant, "id": e.Task, "cancelled": "0"}, n: -1}
		c.tasks[name] = t
		if e.Kind != "task" && name != "/" || e.Step != 0 || e.N != 0 {
			c.fault("%s: the first entry of its task, and not its creation", at)
		}
	case e.Step == t.step && e.N == t.n+1:
		if e.Kind == "decision" {
			c.fault("%s: a second decision in one step", at)
		}
	case e.Step == t.step+1 && e.N == 0:
		if e.Kind != "decision" {
			c.fault("%s: a step that begins without a decision", at)
		}
	default:
		c.fault("%s: follows %d.%d: entries are missing or come twice", at, t.step, t.n)
	}
	if e.Time < t.row["updated"] {
		c.fault("%s: before the entry that it follows", at)
	}
	t.step, t.n = e.Step, e.N
	t.row["updated"] = e.Time
	if e.Kind != "action" {
		t.revision++
	}
	switch e.Kind {
	case "task":
		t.row["profile"], t.row["actor"], t.row["deadline"] = e.Profile, e.Actor, e.Deadline
	case "cancel":
		t.closed, t.row["cancelled"] = true, "1"
	case "decision":
		c.decision(at, t, e)
	case "action":
		c.action(at, t, e)
	case "review", "reopen", "expiry":
	case "activation", "baseline", "key":
		if name != "/" {
			c.fault("%s: an act without a task that stands in one", at)
		}
	default:
		c.fault("%s: a kind that there is not", at)
	}
	for _, s := range e.Approvals {
		c.stand(at, name, e, s)
	}
	for _, id := range slices.Sorted(maps.Keys(c.approvals)) {
		if a := c.approvals[id]; t.closed && a.key == name && (a.State == "pending" || a.State == "approved") {
			c.fault("%s: the approval %s of a cancelled task is %s", at, id, a.State)
		}
	}
}

func (c *checker) decision(at string, t *checkedTask, e *checkedEntry) {
	t.decision, t.acted = e, false
	in := e.Input
	if in.State.Step != e.Step || in.Task.ID != e.Task || in.Task.Tenant != e.Tenant || in.Task.Actor != e.Actor || e.Actor != t.row["actor"] {
		c.fault("%s: decided for another task, actor or step", at)
	}
	if e.effect == "allow" {
		if in.Tool == nil {
			c.fault("%s: allows a tool that there is not", at)
			return
		}
		t.spent[0] += in.Tool.Cost
		t.spent[1]++
	}
	if s := in.Call.Signature; s != nil && !e.Sealed && *s != c.sign(e.Tenant, e.Task, e.Actor, in.Call.Tool, in.Call.Arguments) {
		c.fault("%s: its signature is not that of its call", at)
	}
}

// action holds what ran against the decision of its step, which precedes it.
func (c *checker) action(at string, t *checkedTask, e *checkedEntry) {
	gave := len(e.Value)
	if e.ValueBytes > 0 {
		gave = e.ValueBytes
	}
	t.spent[2] += int64(gave)
	d := t.decision
	if d == nil || d.Step != e.Step || d.effect != "allow" {
		c.fault("%s: no decision of its step allows it", at)
		return
	}
	if t.acted {
		c.fault("%s: a second action of one step", at)
	}
	t.acted = true
	if t.closed {
		c.fault("%s: its task is cancelled", at)
	}
	in := d.Input
	if d.CallID == nil || e.CallID == nil || *d.CallID != *e.CallID || in.Call.Tool != e.Tool || d.Actor != e.Actor ||
		in.Call.Signature == nil || *in.Call.Signature != e.Signature || in.Call.Target != nil && *in.Call.Target != e.Target || d.version != e.PolicyVersion {
		c.fault("%s: not the call that its decision allows", at)
	}
	if in.Mode != "enforce" && in.Tool != nil && in.Tool.Effect == "write" {
		c.fault("%s: a write in a dry run", at)
	}
	if (d.terms != nil || in.Tool != nil && in.Tool.Approval == "always") && e.under == "" {
		c.fault("%s: ran without the approval that it demands", at)
	}
	if e.under != "" {
		c.used(at, d, e)
	}
	if in.Tool == nil || in.Tool.Effect != "write" {
		return
	}
	if e.Operation != "" {
		id := strings.Join([]string{e.Tenant, e.Task, e.Actor, e.Operation}, "/")
		if c.operations[id] != nil {
			c.fault("%s: a second action of the operation %s", at, id)
		}
		c.operations[id] = map[string]string{"signature": e.Signature, "tool": e.Tool, "step": fmt.Sprint(e.Step), "result": string(e.Value)}
	}
	if e.Record != nil {
		id := strings.Join([]string{e.Tenant, e.Task, e.Tool, e.Target}, "/")
		if c.records[id] != nil {
			c.fault("%s: a second record %s", at, id)
		}
		c.records[id] = map[string]string{"value": string(e.Record)}
	}
}

// used holds the approval under which an action ran against the call and against the people who gave it.
func (c *checker) used(at string, d, e *checkedEntry) {
	a := c.approvals[e.under]
	if a == nil {
		c.fault("%s: ran under an approval that nobody asked for", at)
		return
	}
	if a.used++; a.used > 1 {
		c.fault("%s: the approval %s is used a second time", at, a.ID)
	}
	consumed := slices.ContainsFunc(d.Approvals, func(s checkedStand) bool { return s.ID == e.under && s.State == "consumed" })
	if !consumed {
		c.fault("%s: the approval %s is not consumed with it", at, a.ID)
	}
	if a.Signature != e.Signature || a.Mode != d.Input.Mode || a.Actor != e.Actor || a.key != e.Tenant+"/"+e.Task {
		c.fault("%s: the approval %s is of another call", at, a.ID)
	}
	if e.Step > a.ExpiresAtStep || e.Time > a.ExpiresAt {
		c.fault("%s: the approval %s was past its limits", at, a.ID)
	}
	terms := checkedTerms{}
	if d.terms != nil {
		terms = *d.terms
	}
	if !terms.metBy(a.Votes, a.Actor) {
		c.fault("%s: the votes for the approval %s do not meet its terms", at, a.ID)
	}
	var voted []string
	for _, v := range a.Votes {
		voted = append(voted, v.Reviewer)
	}
	if !slices.Equal(voted, e.Reviewers) {
		c.fault("%s: names other reviewers than voted", at)
	}
}

// metBy counts the people whose word is good under the terms, in all and in each stage.
func (t checkedTerms) metBy(votes []checkedVote, actor string) bool {
	one := func(roles, wanted []string) bool {
		return len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool { return slices.Contains(roles, w) })
	}
	all, stages := map[string]bool{}, map[string]map[string]bool{}
	for _, s := range t.Stages {
		stages[s.Name] = map[string]bool{}
	}
	for _, v := range votes {
		if v.Decision != "approved" {
			return false
		}
		if t.DistinctFromActor && v.Reviewer == actor || t.ReasonRequired && v.Reason == "" || !one(v.Roles, t.Roles) {
			continue
		}
		all[v.Reviewer] = true
		for _, s := range t.Stages {
			if s.Name == v.Stage && one(v.Roles, s.Roles) {
				stages[s.Name][v.Reviewer] = true
			}
		}
	}
	for _, s := range t.Stages {
		if len(stages[s.Name]) < max(s.Approvers, 1) {
			return false
		}
	}
	return len(all) >= max(t.Approvers, 1)
}

// moves are what each kind of entry may do to an approval.
var moves = map[string][]string{
	"decision": {" pending", "approved pending", "pending pending", "approved consumed", "pending expired", "approved expired", "pending withdrawn", "approved withdrawn"},
	"review":   {"pending pending", "pending approved", "pending rejected"},
	"reopen":   {"pending pending", "approved pending", "rejected pending", "expired pending"},
	"expiry":   {"pending expired", "approved expired"},
	"cancel":   {"pending withdrawn", "approved withdrawn"},
	"task":     {"pending withdrawn", "approved withdrawn"},
}

func (c *checker) stand(at, task string, e *checkedEntry, s checkedStand) {
	old := c.approvals[s.ID]
	before := checkedStand{}
	if old == nil {
		old = &checkedApproval{key: task}
		c.approvals[s.ID] = old
		if e.Kind != "decision" || e.effect != "require_approval" || s.Step != e.Step || e.CallID == nil || e.Input.Call.Signature == nil || *e.Input.Call.Signature != s.Signature {
			c.fault("%s: the approval %s begins without a decision that asks for it", at, s.ID)
		} else {
			old.sealed = e.Sealed
			old.proposal = map[string]any{"call_id": *e.CallID, "tool": e.Input.Call.Tool, "arguments": plainJSON(string(e.Input.Call.Arguments))}
		}
	} else {
		before = old.checkedStand
		if before.Signature != s.Signature || before.Actor != s.Actor || before.Definition != s.Definition || before.Mode != s.Mode || before.Step != s.Step || old.key != task {
			c.fault("%s: the approval %s becomes one of another call", at, s.ID)
		}
	}
	if !slices.Contains(moves[e.Kind], before.State+" "+s.State) {
		c.fault("%s: the approval %s goes from %q to %q", at, s.ID, before.State, s.State)
	}
	if s.State == "consumed" && e.effect != "allow" {
		c.fault("%s: the approval %s is consumed, and nothing is allowed", at, s.ID)
	}
	closed := before
	closed.State = s.State
	if s.State != "pending" && e.Kind != "review" && !reflect.DeepEqual(closed, s) {
		c.fault("%s: the approval %s is changed as it is closed", at, s.ID)
	}
	want := before.Votes
	switch e.Kind {
	case "reopen":
		want = nil
	case "review":
		want = slices.DeleteFunc(slices.Clone(before.Votes), func(v checkedVote) bool { return v.Reviewer == e.Reviewer })
		if n := len(s.Votes); n > 0 && s.Votes[n-1].Reviewer == e.Reviewer && s.Votes[n-1].Decision == e.word {
			want = append(want, s.Votes[n-1])
		} else {
			c.fault("%s: the vote of %s is not counted", at, e.Reviewer)
		}
	}
	if len(want)+len(s.Votes) > 0 && !reflect.DeepEqual(want, s.Votes) {
		c.fault("%s: the approval %s gets or loses votes that nobody gave", at, s.ID)
	}
	if s.State == "approved" && !s.Terms.metBy(s.Votes, s.Actor) {
		c.fault("%s: the approval %s is approved, and its votes do not meet its terms", at, s.ID)
	}
	old.checkedStand = s
}

// compare holds the rows of a table against those that the entries give.
func (c *checker) compare(table string, want map[string]map[string]string, rows []map[string]string) {
	left := maps.Clone(want)
	for _, row := range rows {
		id := row["row"]
		delete(row, "row")
		delete(left, id)
		if want[id] == nil {
			c.fault("%s: the row %s is in no entry", table, id)
			continue
		}
		for _, column := range slices.Sorted(maps.Keys(want[id])) {
			if row[column] != want[id][column] {
				c.fault("%s: %s of %s is %s, and the entries say %s", table, column, id, row[column], want[id][column])
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		c.fault("%s: the row %s is missing", table, id)
	}
}

func (c *checker) compareTasks() error {
	want := map[string]map[string]string{}
	for id, t := range c.tasks {
		t.row["steps"], t.row["entries"], t.row["revision"] = fmt.Sprint(t.step), fmt.Sprint(t.n+1), fmt.Sprint(t.revision)
		t.row["spent_cost"], t.row["spent_attempts"], t.row["spent_output"] = fmt.Sprint(t.spent[0]), fmt.Sprint(t.spent[1]), fmt.Sprint(t.spent[2])
		want[id] = t.row
	}
	rows, err := c.rows("SELECT tenant || '/' || id AS row, tenant, id, profile, actor, steps, cancelled, deadline, updated, entries, revision, spent_cost, spent_attempts, spent_output FROM tasks")
	c.compare("tasks", want, rows)
	return err
}

func (c *checker) compareApprovals() error {
	rows, err := c.rows("SELECT id AS row, tenant || '/' || task AS key, CAST(proposal AS TEXT) AS proposal, id, actor, signature, definition, mode, step, state, terms, votes, expires_at_step, expires_at, policy_version FROM approvals")
	if err != nil {
		return err
	}
	want := map[string]map[string]string{}
	for id, a := range c.approvals {
		terms, _ := json.Marshal(a.Terms)
		votes, _ := json.Marshal(append([]checkedVote{}, a.Votes...))
		want[id] = map[string]string{"key": a.key, "actor": a.Actor, "signature": a.Signature, "definition": a.Definition, "mode": a.Mode,
			"step": fmt.Sprint(a.Step), "state": a.State, "terms": string(terms), "votes": string(votes),
			"expires_at_step": fmt.Sprint(a.ExpiresAtStep), "expires_at": a.ExpiresAt, "policy_version": a.PolicyVersion}
	}
	for _, row := range rows {
		var terms checkedTerms
		var votes []checkedVote
		var call struct {
			Tool      string
			Arguments json.RawMessage
		}
		for column, into := range map[string]any{"terms": &terms, "votes": &votes, "proposal": &call} {
			if err := json.Unmarshal([]byte(row[column]), into); err != nil {
				c.fault("approvals: %s of %s cannot be read: %v", column, row["row"], err)
			}
		}
		again, _ := json.Marshal(terms)
		row["terms"] = string(again)
		again, _ = json.Marshal(append([]checkedVote{}, votes...))
		row["votes"] = string(again)
		tenant, task, _ := strings.Cut(row["key"], "/")
		if a := c.approvals[row["row"]]; (a == nil || !a.sealed) && row["signature"] != c.sign(tenant, task, row["actor"], call.Tool, call.Arguments) {
			c.fault("approvals: the signature of %s is not that of the call which it shows", row["row"])
		}
		if a := c.approvals[row["row"]]; a != nil && a.proposal != nil && !reflect.DeepEqual(plainJSON(row["proposal"]), any(a.proposal)) {
			c.fault("approvals: %s shows another call than the one that was asked for", row["row"])
		}
	}
	c.compare("approvals", want, rows)
	for _, id := range slices.Sorted(maps.Keys(c.approvals)) {
		if a := c.approvals[id]; a.State == "consumed" && a.used != 1 {
			c.fault("approvals: %s is consumed, and %d actions ran under it", id, a.used)
		}
	}
	return nil
}

func (c *checker) compareRest() error {
	rows, err := c.rows("SELECT tenant || '/' || task || '/' || actor || '/' || key AS row, signature, tool, step, CAST(result AS TEXT) AS result FROM operations")
	if err != nil {
		return err
	}
	c.compare("operations", c.operations, rows)
	rows, err = c.rows("SELECT tenant || '/' || task || '/' || tool || '/' || target AS row, CAST(value AS TEXT) AS value FROM records")
	c.compare("records", c.records, rows)
	return err
}

// sign computes the keyed signature of a call, from canonical arguments.
func (c *checker) sign(tenant, task, actor, tool string, arguments json.RawMessage) string {
	framed := func(h hash.Hash, parts ...string) string {
		for _, p := range parts {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
			h.Write([]byte(p))
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	var tuple bytes.Buffer
	tuple.WriteByte('[')
	for _, s := range []string{tenant, task, actor, tool} {
		quoted, _ := json.Marshal(s) // names have nothing to escape
		tuple.Write(append(quoted, ','))
	}
	tuple.Write(arguments)
	tuple.WriteString(",null]")
	return framed(hmac.New(sha256.New, c.key), "govern keyed signature v1", framed(sha256.New(), "govern signature v1", tuple.String()))
}

func plainJSON(text string) any {
	var v any
	_ = json.Unmarshal([]byte(text), &v) // what cannot be read equals nothing
	return v
}

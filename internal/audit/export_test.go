package audit

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func audited(t testing.TB, export []byte, o Options) Report {
	t.Helper()
	r, err := Export(t.Context(), bytes.NewReader(export), o)
	require.NoError(t, err)
	return r
}

// two is a log of two tasks: leaf 0 is the activation, 1 to 9 are of a, 10 to 18 of b.
func two() log { return slices.Concat(operatorActs(), story("a"), story("b")) }

func TestASoundExportIsVerified(t *testing.T) {
	lines := two().lines(t)
	r := audited(t, file(lines), Options{Checkpoints: []Checkpoint{checkpointAt(lines, 0), checkpointAt(lines, 19), checkpointAt(lines, 7)}})
	assert.Empty(t, r.Findings)
	assert.True(t, r.Verified)
	assert.EqualValues(t, 19, r.Size)
	assert.Equal(t, checkpointAt(lines, 19).Root.String(), r.Root)
	for _, c := range r.Checkpoints {
		assert.Equal(t, agrees, c.Result)
	}
	assert.Len(t, r.Unchecked, 2)
	alone := audited(t, file(lines), Options{})
	require.Len(t, alone.Unchecked, 3)
	assert.Contains(t, alone.Unchecked[0], "no checkpoint", "nobody can tell whether its end, a whole task or its order is there")
	assert.True(t, audited(t, nil, Options{}).Verified, "an empty log")
	assert.True(t, audited(t, bytes.TrimSuffix(file(lines), []byte("\n")), Options{}).Verified, "the last line feed is of no entry")
}

// Without a checkpoint nobody can tell whether the end is there, nor whether a byte was changed that nothing repeats.
func TestAnExportSaysWhatNoCheckpointIsOf(t *testing.T) {
	lines := two().lines(t)
	const keyless, tableless = "signatures: an export comes without the store's key", "tables: an export has none"
	for name, c := range map[string]struct {
		kept []int
		want []string
	}{
		"no checkpoint":    {nil, []string{"whether all is there (the end, whole tasks), and bytes that nothing repeats: there is no checkpoint to hold them against", keyless, tableless}},
		"one of a part":    {[]int{7, 3}, []string{"the end, and from entry 7 on bytes that nothing repeats: no checkpoint is of them", keyless, tableless}},
		"one of the whole": {[]int{7, 19}, []string{keyless, tableless}},
	} {
		t.Run(name, func(t *testing.T) {
			var o Options
			for _, size := range c.kept {
				o.Checkpoints = append(o.Checkpoints, checkpointAt(lines, size))
			}
			assert.Equal(t, c.want, audited(t, file(lines), o).Unchecked)
		})
	}
}

// Every way of tampering with the bytes of an export is named, with its place and nothing else.
func TestB070TamperedExports(t *testing.T) {
	for name, c := range map[string]struct {
		tamper func(lines [][]byte) []byte
		kept   []int // sizes of checkpoints that were kept
		want   []string
	}{
		"a byte that makes it no JSON":            {func(l [][]byte) []byte { l[4][0] = '['; return file(l) }, nil, []string{"4 changed"}},
		"an action that is no JSON":               {func(l [][]byte) []byte { l[3][0] = '['; return file(l) }, nil, []string{"3 changed"}},
		"a byte of white space":                   {func(l [][]byte) []byte { l[4] = append(l[4], ' '); return file(l) }, nil, []string{"4 changed"}},
		"an entry that is none":                   {func(l [][]byte) []byte { l[4] = []byte(`{"kind":"decision"}`); return file(l) }, nil, []string{"4 changed"}},
		"a byte in an input":                      {replace(4, `"path":"/b"`, `"path":"/c"`), nil, []string{"4 input_digest_differs"}},
		"a byte that nothing else repeats":        {replace(1, `"by":"operator"`, `"by":"operat0r"`), nil, []string{}},
		"the same, and a checkpoint":              {replace(1, `"by":"operator"`, `"by":"operat0r"`), []int{19}, []string{"0 forked"}},
		"the same, and some checkpoints":          {replace(12, `"text":"7 packs"`, `"text":"9 packs"`), []int{4, 10, 15, 19}, []string{"10 forked"}},
		"an entry is dropped":                     {func(l [][]byte) []byte { return file(slices.Delete(l, 4, 5)) }, nil, []string{"4 missing_step"}},
		"an entry is dropped, and checkpoints":    {func(l [][]byte) []byte { return file(slices.Delete(l, 4, 5)) }, []int{3, 19}, []string{"4 missing_step"}},
		"a step is dropped, and a checkpoint":     {func(l [][]byte) []byte { return file(slices.Delete(l, 2, 4)) }, []int{19}, []string{"2 missing_step"}},
		"steps are dropped, and checkpoints":      {func(l [][]byte) []byte { return file(slices.Delete(l, 2, 7)) }, []int{2, 15, 19}, []string{"2 missing_step", "2 approval_unasked", "2 approval_move", "2 vote_not_given"}},
		"an action is dropped, and a checkpoint":  {func(l [][]byte) []byte { return file(slices.Delete(l, 3, 4)) }, []int{19}, []string{"3 dropped"}},
		"a creation is dropped, and a checkpoint": {func(l [][]byte) []byte { return file(slices.Delete(l, 1, 2)) }, []int{19}, []string{"1 task_not_created"}},
		"an action is dropped":                    {func(l [][]byte) []byte { return file(slices.Delete(l, 3, 4)) }, nil, []string{"3 dropped"}},
		"a creation is dropped":                   {func(l [][]byte) []byte { return file(slices.Delete(l, 1, 2)) }, nil, []string{"1 task_not_created"}},
		"the last action is dropped":              {func(l [][]byte) []byte { return file(l[:17]) }, nil, []string{"17 dropped"}},
		"the first three are dropped":             {func(l [][]byte) []byte { return file(l[3:]) }, nil, []string{"0 dropped", "1 version_not_activated"}},
		"the last three are cut":                  {func(l [][]byte) []byte { return file(l[:16]) }, []int{10, 19}, []string{"16 cut"}},
		"all is cut":                              {func(l [][]byte) []byte { return nil }, []int{19}, []string{"0 cut"}},
		"cut in mid-line":                         {func(l [][]byte) []byte { b := file(l); return b[:len(b)-9] }, nil, []string{"18 cut"}},
		"two neighbours swapped":                  {func(l [][]byte) []byte { l[4], l[5] = l[5], l[4]; return file(l) }, nil, []string{"4 swapped"}},
		"a decision and its action":               {func(l [][]byte) []byte { l[2], l[3] = l[3], l[2]; return file(l) }, nil, []string{"2 swapped"}},
		"two far from each other":                 {func(l [][]byte) []byte { l[2], l[8] = l[8], l[2]; return file(l) }, nil, []string{"2 swapped"}},
		"a line comes twice":                      {func(l [][]byte) []byte { return file(slices.Insert(l, 5, bytes.Clone(l[4]))) }, nil, []string{"5 inserted"}},
		"a line of another log": {func(l [][]byte) []byte {
			other := story("a")
			other[3]["door"] = "mcp"
			return file(slices.Insert(l, 5, other[3:4].lines(t)[0]))
		}, nil, []string{"5 forked"}},
		"an entry that never was": {func(l [][]byte) []byte {
			return file(slices.Insert(l, 7, []byte(`{"kind":"note","n":2,"step":3,"task":"a","tenant":"default","time":"2026-01-01T12:00:00.000Z"}`)))
		}, nil, []string{"7 unknown_kind"}},
		"a line that comes again late": {func(l [][]byte) []byte { return file(append(l, l[1])) }, nil, []string{"19 inserted"}},
		"two entries of a place too early": {func(l [][]byte) []byte {
			other := story("a")
			other[4]["door"] = "mcp"
			return file(slices.Insert(slices.Delete(l, 4, 5), 5, other[4:5].lines(t)[0]))
		}, nil, []string{"4 missing_step", "5 forked"}},
		"an empty line": {func(l [][]byte) []byte { return file(slices.Insert(l, 6, nil)) }, nil, []string{"6 changed"}},
	} {
		t.Run(name, func(t *testing.T) {
			whole := two().lines(t)
			var kept []Checkpoint
			for _, size := range c.kept {
				kept = append(kept, checkpointAt(whole, size))
			}
			r := audited(t, c.tamper(two().lines(t)), Options{Checkpoints: kept})
			assert.Equal(t, c.want, found(r), "%+v", r.Findings)
			assert.Equal(t, len(c.want) == 0, r.Verified)
			for _, f := range r.Findings {
				assert.Equal(t, *f.Leaf+1, f.Line)
			}
		})
	}
}

// Where entries are gone from inside, nobody can tell from their numbers how many there were, nor so whether the end is there.
func TestAGapHidesTheEnd(t *testing.T) {
	lines := two().lines(t)
	whole := Options{Checkpoints: []Checkpoint{checkpointAt(lines, 12), checkpointAt(lines, 19)}}
	r := audited(t, file(slices.Delete(slices.Clone(lines), 2, 4)), whole)
	assert.Equal(t, "whether the end is there: the log has 17 of the 19 entries of the checkpoint kept-19, and what is gone before may be all of the others, or not", r.Unchecked[0])
	assert.Len(t, audited(t, file(lines[:16]), whole).Unchecked, 2, "the end is gone, which is found")
}

// A checkpoint of another branch is told from one that the log has left.
func TestACheckpointOfAnotherBranch(t *testing.T) {
	lines := two().lines(t)
	other := checkpointAt(lines, 5)
	other.Root[0]++
	r := audited(t, file(lines), Options{Checkpoints: []Checkpoint{checkpointAt(lines, 9), other}})
	assert.Equal(t, []string{"0 forked"}, found(r))
	assert.Contains(t, r.Findings[0].Message, "is of another branch: the log agrees with one of 9 entries")
	assert.Equal(t, []string{differs, agrees}, []string{r.Checkpoints[0].Result, r.Checkpoints[1].Result})
}

func replace(line int, old, new string) func([][]byte) []byte {
	return func(l [][]byte) []byte {
		if !bytes.Contains(l[line], []byte(old)) {
			panic(old)
		}
		l[line] = bytes.ReplaceAll(l[line], []byte(old), []byte(new))
		return file(l)
	}
}

// at reaches into an entry.
func (l log) at(leaf int, path ...any) object {
	v := any(l[leaf])
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(object)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v.(object)
}

// Every promise that the entries of a log can break is named, at the entry that breaks it.
func TestBrokenMeanings(t *testing.T) {
	next := func(l log, e object, step, n int) log { // e once more, at another place of task a
		again := object{}
		for k, v := range e {
			again[k] = v
		}
		again["step"], again["n"] = step, n
		if in, ok := e["input"].(object); ok {
			copied := object{}
			for k, v := range in {
				copied[k] = v
			}
			copied["state"] = object{"step": step}
			again["input"] = copied
			delete(again, "input_digest")
		}
		return append(l, again)
	}
	withStand := func(l log, change func(object)) {
		for _, s := range []object{l.at(5, "approvals", 0), l.at(6, "approval"), l.at(7, "approvals", 0)} {
			change(s)
		}
	}
	for name, c := range map[string]struct {
		broken func(l log) log
		want   []string
	}{
		"a kind that there is not":           {func(l log) log { l[4]["kind"] = "note"; return l }, []string{"4 step_without_decision", "4 unknown_kind"}},
		"an operator's act in a task":        {func(l log) log { l[4]["kind"] = "activation"; return l }, []string{"4 step_without_decision", "4 wrong_subject"}},
		"a kind of another place":            {func(l log) log { l[0]["kind"] = "task"; return l }, []string{"0 wrong_subject", "2 version_not_activated"}},
		"a member that there is not":         {func(l log) log { l[4]["zeal"] = object{"a": []any{1.5}}; return l }, []string{}},
		"an action without an allow":         {func(l log) log { l.at(2, "decision")["effect"] = "deny"; return l }, []string{"3 action_without_decision"}},
		"an action without a decision":       {func(l log) log { return append(l[:2], next(nil, l[3], 0, 1)[0]) }, []string{"2 action_without_decision"}},
		"an action of another call":          {func(l log) log { l[8]["call_id"] = "c9"; return l }, []string{"8 action_differs"}},
		"an action of another target":        {func(l log) log { l[8]["target"] = "memo"; return l }, []string{"8 action_differs"}},
		"an action of another operation":     {func(l log) log { l[8]["operation"] = "k2"; return l }, []string{"8 action_differs"}},
		"an action of another version":       {func(l log) log { l[8]["policy_version"] = "x"; return l }, []string{"8 action_differs"}},
		"a second action":                    {func(l log) log { return next(l[:9], l[8], 4, 2) }, []string{"9 action_twice", "9 operation_twice", "9 record_twice"}},
		"a second action of a read":          {func(l log) log { return next(l[:4], l[3], 1, 2) }, []string{"4 action_twice"}},
		"a write in a dry run":               {func(l log) log { l.at(7, "input")["mode"] = "dry_run"; return l }, []string{"8 write_in_dry_run", "8 approval_of_another_call"}},
		"an effect without its approval":     {func(l log) log { delete(l[8], "approval"); return l }, []string{"8 effect_without_approval"}},
		"an effect under another's approval": {func(l log) log { l[8]["approval"] = "ap-x"; return l }, []string{"8 effect_without_approval"}},
		"an approval that is not consumed":   {func(l log) log { delete(l[7], "approvals"); return l }, []string{"8 effect_without_approval"}},
		"an approval that is consumed for nothing": {func(l log) log { l.at(7, "decision")["effect"] = "deny"; return l[:8] },
			[]string{"7 approval_move", "8 dropped"}},
		"an approval used twice": {func(l log) log {
			l = next(l, l[7], 6, 0)
			l = next(l, l[8], 6, 1)
			l[len(l)-1]["operation"], l[len(l)-1]["target"] = "k2", "memo"
			l[len(l)-2]["operation"] = "k2"
			l.at(len(l)-2, "input")["call"] = object{"tool": "record_draft", "arguments": object{}, "target": "memo", "signature": l[8]["signature"]}
			return l
		}, []string{"20 approval_used_twice"}},
		"two effects of one operation": {func(l log) log {
			l = next(l, l[7], 6, 0)
			delete(l[len(l)-1], "approvals")
			l.at(len(l)-1, "input")["tool"] = object{"effect": "write", "approval": "by_rule"}
			l[len(l)-1]["decision"] = object{"effect": "allow", "policy_version": policyVersion}
			l = next(l, l[8], 6, 1)
			delete(l[len(l)-1], "approval")
			delete(l[len(l)-1], "record")
			return l
		}, []string{"20 operation_twice"}},
		"an approval past its step": {func(l log) log { withStand(l, func(s object) { s["expires_at_step"] = 3 }); return l }, []string{"8 approval_past_limits"}},
		"an approval past its time": {func(l log) log {
			withStand(l, func(s object) { s["expires_at"] = "2026-01-01T11:00:00.000Z" })
			return l
		}, []string{"8 approval_past_limits"}},
		"an approval that lives on":    {func(l log) log { l.at(7, "approvals", 0)["expires_at_step"] = 9; return l }, []string{"7 approval_changed"}},
		"an approval of another call":  {func(l log) log { l.at(6, "approval")["signature"] = "s"; return l }, []string{"6 approval_of_another_call", "7 approval_of_another_call"}},
		"an approval nobody asked for": {func(l log) log { l.at(5, "decision")["effect"] = "deny"; return l }, []string{"5 approval_unasked"}},
		"an approval that moves oddly": {func(l log) log { l.at(6, "approval")["state"] = "expired"; return l }, []string{"6 approval_move", "7 approval_move"}},
		"a vote that says no": {func(l log) log {
			l[6]["decision"] = "rejected"
			l.at(6, "approval", "votes", 0)["decision"] = "rejected"
			return l
		}, []string{"6 terms_not_met", "8 terms_not_met"}},
		"a vote that nobody gave": {func(l log) log {
			l.at(7, "approvals", 0)["votes"] = []any{object{"reviewer": "eve", "decision": "approved"}}
			return l
		}, []string{"7 vote_not_given", "8 vote_not_given"}},
		"a vote of somebody else":        {func(l log) log { l[6]["reviewer"] = "eve"; return l }, []string{"6 vote_not_given"}},
		"a vote from the start":          {func(l log) log { l.at(5, "approvals", 0)["votes"] = l.at(6, "approval")["votes"]; return l }, []string{"5 vote_not_given"}},
		"votes that do not meet terms":   {func(l log) log { l.at(7, "decision")["approval"] = object{"approvers": 2}; return l }, []string{"8 terms_not_met"}},
		"reviewers that did not vote":    {func(l log) log { l[8]["reviewers"] = []any{"eve"}; return l }, []string{"8 vote_not_given"}},
		"other reviewers in a decision":  {func(l log) log { l[7]["reviewers"] = []any{"eve"}; return l }, []string{"8 vote_not_given"}},
		"a second decision in one step":  {func(l log) log { return next(l[:5], l[4], 2, 1) }, []string{"5 two_decisions"}},
		"a step without a decision":      {func(l log) log { return append(next(l[:2], l[3], 1, 0), l[10:]...) }, []string{"2 step_without_decision", "2 action_without_decision"}},
		"a missing step":                 {func(l log) log { return slices.Delete(l, 4, 5) }, []string{"4 missing_step"}},
		"missing steps":                  {func(l log) log { return slices.Delete(l, 2, 6) }, []string{"2 missing_step", "2 approval_unasked", "2 approval_move"}},
		"decided for another actor":      {func(l log) log { l.at(4, "input", "task")["actor"] = "eve"; return l }, []string{"4 wrong_subject"}},
		"decided at another step":        {func(l log) log { l.at(4, "input", "state")["step"] = 7; return l }, []string{"4 wrong_subject"}},
		"an actor without an assignment": {func(l log) log { l[4]["actor"] = "eve"; l.at(4, "input", "task")["actor"] = "eve"; return l }, []string{"4 wrong_subject"}},
		"a time that runs back":          {func(l log) log { l[4]["time"] = "2025-12-31T23:59:59.999Z"; return l }, []string{"4 time_runs_back"}},
		"an unknown version":             {func(l log) log { l.at(4, "decision")["policy_version"] = "x"; return l }, []string{"4 version_not_activated"}},
		"an activation that comes late": {func(l log) log {
			return append(l[1:], l[0])
		}, []string{"1 version_not_activated"}},
		"a baseline that excuses": {func(l log) log {
			return append(append(l[1:], object{"kind": "baseline", "tenant": "", "task": "", "step": 0, "n": 0, "time": "2026-01-01T12:00:00.000Z", "entries": 18}), next(nil, l[9], 6, 0)[0])
		}, []string{"19 version_not_activated"}},
		"a baseline that excuses more": {func(l log) log {
			return append(l, object{"kind": "baseline", "tenant": "", "task": "", "step": 0, "n": 1, "time": "2026-01-01T12:00:00.000Z", "entries": 19})
		}, []string{"19 wrong_baseline"}},
		"a cancelled task that acts": {func(l log) log {
			cancel := object{"kind": "cancel", "tenant": "default", "task": "a", "step": 0, "n": 1, "time": "2026-01-01T12:00:00.000Z"}
			return slices.Insert(l[:3], 2, cancel)
		}, []string{"3 after_cancel", "4 dropped"}},
		"a cancelled task with an approval": {func(l log) log {
			return append(l[:7], object{"kind": "cancel", "tenant": "default", "task": "a", "step": 3, "n": 2, "time": "2026-01-01T12:00:00.000Z"})
		}, []string{"7 after_cancel"}},
		"an input with another digest": {func(l log) log { l[4]["input_digest"] = "00"; return l }, []string{"4 input_digest_differs"}},
		"a record twice": {func(l log) log {
			l = next(l, l[7], 6, 0)
			delete(l[len(l)-1], "approvals")
			l.at(len(l)-1, "input")["tool"] = object{"effect": "write", "approval": "by_rule"}
			l[len(l)-1]["decision"] = object{"effect": "allow", "policy_version": policyVersion}
			l = next(l, l[8], 6, 1)
			delete(l[len(l)-1], "approval")
			l[len(l)-1]["operation"], l[len(l)-2]["operation"] = "k2", "k2"
			return l
		}, []string{"20 record_twice"}},
		"a cancelled task that is reviewed": {func(l log) log {
			cancel := object{"kind": "cancel", "tenant": "default", "task": "a", "step": 3, "n": 1, "time": "2026-01-01T12:00:00.000Z"}
			l[6]["n"] = 2
			return slices.Insert(l[:7], 6, cancel)
		}, []string{"6 after_cancel", "7 after_cancel"}},
		"a cancelled task that runs": {func(l log) log {
			cancel := object{"kind": "cancel", "tenant": "default", "task": "a", "step": 1, "n": 1, "time": "2026-01-01T12:00:00.000Z"}
			l[3]["n"] = 2
			return slices.Insert(l[:4], 3, cancel)
		}, []string{"3 dropped", "4 after_cancel"}},
		"an operator's act in a step":              {func(l log) log { return append(next(l, l[0], 0, 1), next(nil, l[0], 1, 0)[0]) }, []string{"20 wrong_subject"}},
		"an operator's act of a kind there is not": {func(l log) log { l = next(l, l[0], 0, 1); l[19]["kind"] = "note"; return l }, []string{"19 unknown_kind"}},
		"an allow of a tool that there is not":     {func(l log) log { l.at(2, "input")["tool"] = nil; return l }, []string{"2 wrong_subject"}},
		"a denial that was told as done":           {func(l log) log { l[4]["status"] = "ok"; return l }, []string{"4 status_differs"}},
		"a replay that was told as a denial":       {func(l log) log { l[9]["status"] = "resource_denied"; return l }, []string{"9 status_differs"}},
		"an action that did not run":               {func(l log) log { l[2]["status"] = "timeout"; return l }, []string{"3 status_differs"}},
		"an action of which nobody knows the end":  {func(l log) log { l[2]["status"] = "outcome_unknown"; return l }, []string{}},
		"that action is gone":                      {func(l log) log { l[2]["status"] = "outcome_unknown"; return slices.Delete(l, 3, 4) }, []string{"3 dropped"}},
		"a sealed decision":                        {func(l log) log { l[2]["sealed"], l[3]["value_bytes"] = true, 99; return l }, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			r := audited(t, file(c.broken(two()).lines(t)), Options{})
			assert.Equal(t, c.want, found(r), "%+v", r.Findings)
			for _, f := range r.Findings {
				assert.NotEmpty(t, f.Message)
			}
		})
	}
}

// Changes of the signing keys are held against the keys before them.
func TestChangesOfTheSigningKeys(t *testing.T) {
	const a, b, c, d = "shop+00000001+AA==", "shop+00000002+AB==", "shop+00000003+AC==", "shop+00000004+AD=="
	type change struct {
		act  string
		keys []any
	}
	for name, row := range map[string]struct {
		changes []change
		want    []string
	}{
		"all that happens":                   {[]change{{"new", []any{a}}, {"rotate", []any{a, b}}, {"finish", []any{b}}, {"new", []any{c}}, {"rotate", []any{c, d}}, {"new", []any{a}}}, []string{}},
		"two first keys":                     {[]change{{"new", []any{a, b}}, {"finish", []any{b}}}, []string{"1 keys_differ"}},
		"a new key that signs already":       {[]change{{"new", []any{a}}, {"new", []any{a}}}, []string{"2 keys_differ"}},
		"a new key of another log":           {[]change{{"new", []any{a}}, {"new", []any{"other+00000002+AB=="}}}, []string{"2 keys_differ"}},
		"no key":                             {[]change{{"new", []any{}}}, []string{"1 keys_differ"}},
		"a key that is none":                 {[]change{{"new", []any{7}}}, []string{"1 keys_differ"}},
		"a rotation from nothing":            {[]change{{"rotate", []any{a, b}}}, []string{"1 keys_differ"}},
		"a rotation that drops the key":      {[]change{{"new", []any{a}}, {"rotate", []any{c, b}}}, []string{"2 keys_differ"}},
		"a rotation the other way round":     {[]change{{"new", []any{a}}, {"rotate", []any{b, a}}}, []string{"2 keys_differ"}},
		"a rotation to the same key":         {[]change{{"new", []any{a}}, {"rotate", []any{a, a}}}, []string{"2 keys_differ"}},
		"a rotation to a key of another log": {[]change{{"new", []any{a}}, {"rotate", []any{a, "other+00000002+AB=="}}}, []string{"2 keys_differ"}},
		"a rotation that adds two":           {[]change{{"new", []any{a}}, {"rotate", []any{a, b, c}}}, []string{"2 keys_differ"}},
		"a third key":                        {[]change{{"new", []any{a}}, {"rotate", []any{a, b}}, {"rotate", []any{a, b, c}}}, []string{"3 keys_differ"}},
		"an end with the older key":          {[]change{{"new", []any{a}}, {"rotate", []any{a, b}}, {"finish", []any{a}}}, []string{"3 keys_differ"}},
		"an end with another key":            {[]change{{"new", []any{a}}, {"rotate", []any{a, b}}, {"finish", []any{c}}}, []string{"3 keys_differ"}},
		"an end without a rotation":          {[]change{{"new", []any{a}}, {"finish", []any{a}}}, []string{"2 keys_differ"}},
		"an act that there is not":           {[]change{{"new", []any{a}}, {"drop", []any{a}}}, []string{"2 keys_differ"}},
		"what follows is held against it":    {[]change{{"new", []any{a}}, {"rotate", []any{c, b}}, {"finish", []any{b}}}, []string{"2 keys_differ"}},
		"one is gone":                        {[]change{{"new", []any{a}}, {}, {"finish", []any{b}}}, []string{"2 dropped"}},
		"one is gone, and others stay":       {[]change{{"new", []any{a}}, {}, {"rotate", []any{b, c}}, {"finish", []any{b}}}, []string{"2 dropped", "3 keys_differ"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := operatorActs()
			for i, change := range row.changes {
				if change.act != "" {
					l = append(l, object{"kind": "key", "tenant": "", "task": "", "step": 0, "n": i + 1, "time": "2026-01-01T12:00:00.000Z",
						"act": change.act, "keys": change.keys, "by": "root"})
				}
			}
			r := audited(t, file(l.lines(t)), Options{})
			assert.Equal(t, row.want, found(r), "%+v", r.Findings)
		})
	}
}

// An export that a shell or an editor wrote anew as text is said to be that, once, and what to do.
func TestAnExportThatWasWrittenAnewAsText(t *testing.T) {
	export := file(two().lines(t))
	const remedy = "; export again with govern log export --output FILE, and hand the file on as bytes"
	crlf := bytes.ReplaceAll(export, []byte("\n"), []byte("\r\n"))
	for name, c := range map[string]struct {
		export []byte
		want   string
		found  int
	}{
		"line ends":             {crlf, "its lines end with CR and LF, so that the file was written anew as text" + remedy, 19},
		"a byte order mark":     {slices.Concat([]byte("\xef\xbb\xbf"), export), "it begins with a byte order mark, so that the file was written anew as text" + remedy, 2},
		"of UTF-16":             {[]byte("\xff\xfe{\x00\r\x00\n\x00}"), "it begins with a byte order mark, so that the file was written anew as text" + remedy, 2},
		"of UTF-16, big-endian": {[]byte("\xfe\xff\x00{\x00\r\x00\n"), "it begins with a byte order mark, so that the file was written anew as text" + remedy, 1},
		"both":                  {slices.Concat([]byte("\xef\xbb\xbf"), crlf), "it begins with a byte order mark, so that the file was written anew as text" + remedy, 19},
		"one line":              {bytes.Replace(crlf, []byte("\r\n"), []byte("\n"), 1), "its bytes are no entry as govern writes them: at byte", 18},
	} {
		t.Run(name, func(t *testing.T) {
			r := audited(t, c.export, Options{})
			require.Len(t, r.Findings, c.found)
			assert.Equal(t, Changed, r.Findings[0].Code)
			assert.Contains(t, r.Findings[0].Message, c.want)
			for _, f := range r.Findings[1:] {
				assert.NotContains(t, f.Message, remedy)
			}
		})
	}
}

// What cannot be read is no finding.
func TestAnExportThatCannotBeRead(t *testing.T) {
	broken := errors.New("the disk is broken")
	_, err := Export(t.Context(), io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken)), Options{})
	require.ErrorIs(t, err, broken)
}

// The document explains every code, and no other.
func TestCodesAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/evidence.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(text), "\n## Verify\n")
	require.True(t, ok)
	var documented []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
		documented = append(documented, m[1])
	}
	source, err := os.ReadFile("finding.go")
	require.NoError(t, err)
	var codes []string
	for _, m := range regexp.MustCompile(`(?m)^\s+[A-Z]\w+\s+Code = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1) {
		codes = append(codes, m[1])
	}
	require.Greater(t, len(codes), 30)
	assert.Equal(t, codes, documented, "in the order of the constants")
}

// Whatever a file holds, it is read to its end, line by line, and said to be in order only if nothing is wrong.
func FuzzExport(f *testing.F) {
	lines := two().lines(f)
	f.Add(file(lines))
	f.Add(file(lines[4:]))
	f.Add(file(slices.Concat(lines[:6], lines[4:9])))
	f.Add([]byte("{}\n\n[]"))
	f.Add(file(slices.Concat(operatorActs(), abroad(f, "a")).lines(f)))
	for _, line := range lines {
		f.Add(append(line, '\n'))
	}
	f.Fuzz(func(t *testing.T, export []byte) {
		r, err := Export(t.Context(), bytes.NewReader(export), Options{})
		require.NoError(t, err)
		whole := bytes.Count(export, []byte("\n"))
		assert.GreaterOrEqual(t, r.Size, int64(whole))
		assert.LessOrEqual(t, r.Size, int64(whole)+1)
		assert.Equal(t, len(r.Findings) == 0, r.Verified)
	})
}

package audit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// Code says what kind of thing is wrong, in a word that stays.
type Code string

// What can be wrong with the log as bytes.
const (
	Changed       Code = "changed"        // an entry is not what was committed
	Dropped       Code = "dropped"        // entries are gone from inside the log
	Inserted      Code = "inserted"       // an entry was added that was never committed there
	Swapped       Code = "swapped"        // entries changed their places
	Forked        Code = "forked"         // two entries have one place, or the log is another branch than a checkpoint's
	Cut           Code = "cut"            // the end of the log is gone
	RowDiffers    Code = "row_differs"    // the columns beside an entry say something else than it does
	TreeDiffers   Code = "tree_differs"   // the tree that the state keeps is not that over its own leaves
	HeadDiffers   Code = "head_differs"   // the head that the state keeps is not that of its tree, or not signed with its key
	KeyDiffers    Code = "key_differs"    // the key beside the state is another's
	SchemaDiffers Code = "schema_differs" // triggers, indexes or tables of the state are not those that govern made
	Damaged       Code = "damaged"        // SQLite cannot read its own file
	Untrusted     Code = "untrusted"      // no trusted key signed a checkpoint, or its signature is wrong
)

// What can be wrong with what the entries mean.
const (
	UnknownKind           Code = "unknown_kind"
	TaskNotCreated        Code = "task_not_created"
	MissingStep           Code = "missing_step"
	StepWithoutDecision   Code = "step_without_decision"
	TwoDecisions          Code = "two_decisions"
	WrongSubject          Code = "wrong_subject"
	TimeRunsBack          Code = "time_runs_back"
	AfterCancel           Code = "after_cancel"
	VersionNotActivated   Code = "version_not_activated"
	WrongBaseline         Code = "wrong_baseline"
	KeysDiffer            Code = "keys_differ"
	SignatureDiffers      Code = "signature_differs"
	InputDigestDiffers    Code = "input_digest_differs"
	ActionWithoutDecision Code = "action_without_decision"
	ActionDiffers         Code = "action_differs"
	ActionTwice           Code = "action_twice"
	StartDiffers          Code = "start_differs"
	BudgetExceeded        Code = "budget_exceeded"
	ResumeDiffers         Code = "resume_differs"
	RunDiffers            Code = "run_differs"
	EffectUnsettled       Code = "effect_unsettled"
	WritesOverlap         Code = "writes_overlap"
	OutcomeWithoutStart   Code = "outcome_without_start"
	OutcomeDiffers        Code = "outcome_differs"
	OutcomeTwice          Code = "outcome_twice"
	SettlementDiffers     Code = "settlement_differs"
	OperationMove         Code = "operation_move"
	StatusDiffers         Code = "status_differs"
	WriteInDryRun         Code = "write_in_dry_run"
	EffectWithoutApproval Code = "effect_without_approval"
	ApprovalUsedTwice     Code = "approval_used_twice"
	ApprovalOfAnotherCall Code = "approval_of_another_call"
	ApprovalPastLimits    Code = "approval_past_limits"
	ApprovalUnasked       Code = "approval_unasked"
	ApprovalChanged       Code = "approval_changed"
	ApprovalMove          Code = "approval_move"
	TermsNotMet           Code = "terms_not_met"
	VoteNotGiven          Code = "vote_not_given"
	OperationTwice        Code = "operation_twice"
	RecordTwice           Code = "record_twice"
	TableDiffers          Code = "table_differs"
)

// Finding is one thing that is wrong, and where. Place and task are there as far as they are known.
type Finding struct {
	// Leaf is the number of the entry in the log, from 0, and Line that of its line in an export, from 1.
	Leaf    *int64 `json:"leaf,omitzero"`
	Line    int64  `json:"line,omitzero"`
	Tenant  string `json:"tenant,omitzero"`
	Task    string `json:"task,omitzero"`
	Step    *int64 `json:"step,omitzero"`
	N       *int64 `json:"n,omitzero"`
	Kind    string `json:"kind,omitzero"`
	Code    Code   `json:"code"`
	Message string `json:"message"`
	// weak is a finding that the numbers of a task's entries gave: a tree that is there tells the place better.
	weak bool
	gone int64 // how many entries a finding says are gone, if it knows
}

// Checkpoint is a head of the log that somebody kept elsewhere.
type Checkpoint struct {
	Name string
	Size int64
	Root merkle.Hash
}

// CheckpointReport says how the log stands to a checkpoint.
type CheckpointReport struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Root string `json:"root"`
	// Result is "agrees", "differs", or "beyond" for a checkpoint of more entries than there are.
	Result string `json:"result"`
}

// Report is what an audit found.
type Report struct {
	Verified bool `json:"verified"`
	// Size counts the entries that were read, and Root is that of the tree over them.
	Size int64  `json:"size"`
	Root string `json:"root"`
	// Findings are the first ones in the order of the log, Found of them in all.
	Findings    []Finding          `json:"findings"`
	Found       int64              `json:"found"`
	Checkpoints []CheckpointReport `json:"checkpoints"`
	// Unchecked says what could not be held against anything, and why.
	Unchecked []string `json:"unchecked,omitzero"`
}

// mostFindings bounds what is kept of a log of which nothing is right.
const mostFindings = 10_000

// findings collects what is wrong. One entry has a code once: the first message stands.
type findings struct {
	list  []Finding
	found int64
	// lines says that leaves are also lines.
	lines bool
}

func (f *findings) add(x Finding) {
	if x.Leaf != nil && slices.ContainsFunc(f.list[max(0, len(f.list)-100):], func(y Finding) bool {
		return y.Leaf != nil && *y.Leaf == *x.Leaf && y.Code == x.Code
	}) {
		return
	}
	if f.found++; len(f.list) == mostFindings {
		return
	}
	if f.lines && x.Leaf != nil && x.Line == 0 {
		x.Line = *x.Leaf + 1
	}
	f.list = append(f.list, x)
}

// at adds a finding about an entry.
func (f *findings) at(e *entry, code Code, format string, args ...any) {
	f.add(about(e, code, format, args...))
}

// weakly adds a finding about an entry that its number within its task gave.
func (f *findings) weakly(e *entry, code Code, format string, args ...any) {
	x := about(e, code, format, args...)
	x.weak = code != MissingStep
	f.add(x)
}

func about(e *entry, code Code, format string, args ...any) Finding {
	return Finding{Leaf: new(e.leaf), Tenant: plainText(e.str(eTenant)), Task: plainText(e.str(eTask)), Step: new(e.step), N: new(e.n),
		Kind: plainText(e.str(eKind)), Code: code, Message: fmt.Sprintf(format, args...)}
}

// leaf adds a finding about a place in the log of which the entry is not known.
func (f *findings) leaf(leaf int64, code Code, format string, args ...any) {
	f.add(Finding{Leaf: new(leaf), Code: code, Message: fmt.Sprintf(format, args...)})
}

// state adds a finding about the state as a whole or about one of its tables, and about a task if it is one's.
func (f *findings) state(tenant, task string, code Code, format string, args ...any) {
	f.add(Finding{Tenant: tenant, Task: task, Code: code, Message: fmt.Sprintf(format, args...)})
}

// sorted gives the findings in the order of the log, and what has no place in it last.
func (f *findings) sorted() []Finding {
	slices.SortStableFunc(f.list, func(a, b Finding) int {
		switch {
		case a.Leaf == nil && b.Leaf == nil:
			return cmp.Compare(a.Message, b.Message)
		case a.Leaf == nil:
			return 1
		case b.Leaf == nil:
			return -1
		}
		return cmp.Compare(*a.Leaf, *b.Leaf)
	})
	return append([]Finding{}, f.list...)
}

// With gives the report with findings that were made beside the audit, behind its own.
func (r Report) With(findings []Finding) Report {
	r.Findings = append(slices.Clip(r.Findings), findings...)
	r.Found += int64(len(findings))
	r.Verified = r.Found == 0
	return r
}

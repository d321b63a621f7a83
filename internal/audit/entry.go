package audit

import (
	"errors"
	"fmt"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// entry is one entry of the log as it is read: its text, and where in it the members are that the audit looks at.
// Whatever else an entry has is held against the rules of JSON alone: a later govern may say more.
type entry struct {
	doc
	leaf int64
	hash merkle.Hash
	step int64
	n    int64
	at   [entryMembers]int32
}

// The members of entries, of every kind.
const (
	eAct = iota
	eActor
	eApproval
	eApprovals
	eBy
	eCallID
	eConfig
	eDeadline
	eDecision
	eDispatch
	eEntries
	eInput
	eInputDigest
	eKeys
	eKind
	eLate
	eN
	eOperation
	ePolicy
	ePolicyVersion
	eProfile
	eReason
	eRecord
	eReviewer
	eReviewers
	eRun
	eSealed
	eSignature
	eStarted
	eState
	eStatus
	eStep
	eTarget
	eTask
	eTenant
	eTime
	eTool
	eValue
	eValueBytes
	entryMembers
)

var entryNames = [entryMembers]string{"act", "actor", "approval", "approvals", "by", "call_id", "config", "deadline", "decision", "dispatch", "entries",
	"input", "input_digest", "keys", "kind", "late", "n", "operation", "policy", "policy_version", "profile", "reason", "record", "reviewer", "reviewers",
	"run", "sealed", "signature", "started", "state", "status", "step", "target", "task", "tenant", "time", "tool", "value", "value_bytes"}

// The members of a decision, of the input that it was made on, and of what is in that.
const (
	dApproval = iota
	dEffect
	dPolicyVersion
	dStatus
	decisionMembers
)

var decisionNames = [decisionMembers]string{"approval", "effect", "policy_version", "status"}

const (
	iCall = iota
	iMode
	iState
	iTask
	iTool
	inputMembers
)

var inputNames = [inputMembers]string{"call", "mode", "state", "task", "tool"}

const (
	cArguments = iota
	cSignature
	cTarget
	cTool
	callMembers
)

var callNames = [callMembers]string{"arguments", "signature", "target", "tool"}

const (
	stBudgets = iota
	stOperation
	stStep
	stateMembers
)

var stateNames = [stateMembers]string{"budgets", "operation", "step"}

// What a budget bounds, in the order in which it is counted, and what a decision is told of an operation.
var (
	budgetNames   = [3]string{"attempts", "cost", "output"}
	limitName     = [1]string{"limit"}
	standingNames = [2]string{"repeatable", "state"}
)

const (
	kActor = iota
	kID
	kTenant
	taskMembers
)

var taskNames = [taskMembers]string{"actor", "id", "tenant"}

const (
	tApproval = iota
	tCost
	tEffect
	tOutside
	toolMembers
)

var toolNames = [toolMembers]string{"approval", "cost", "effect", "outside"}

// read reads the text of an entry. It fails if govern cannot have written it.
func (e *entry) read(text []byte) error {
	if err := e.scan(text); err != nil {
		return err
	}
	if e.doc.kind(1) != '{' {
		return errors.New("not an object")
	}
	e.pick(1, entryNames[:], e.at[:])
	for _, m := range [...]int{eKind, eTenant, eTask, eTime} {
		if e.str(m) == nil {
			return fmt.Errorf("its %s is no string", entryNames[m])
		}
	}
	var whole bool
	if e.step, whole = e.number(e.at[eStep]); !whole {
		return errors.New("its step is no whole number")
	}
	if e.n, whole = e.number(e.at[eN]); !whole {
		return errors.New("its n is no whole number")
	}
	return nil
}

// raw and str give a member of the entry, as doc has it.
func (e *entry) raw(member int) []byte { return e.doc.raw(e.at[member]) }
func (e *entry) str(member int) []byte { return e.doc.str(e.at[member]) }

func (e *entry) is(kind string) bool { return string(e.doc.str(e.at[eKind])) == kind }

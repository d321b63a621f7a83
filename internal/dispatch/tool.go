package dispatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// ToolEffect is what a tool can do to the world.
type ToolEffect string

// The effects of tools. A tool that changes something is a write.
const (
	Pure  ToolEffect = "pure"
	Read  ToolEffect = "read"
	Write ToolEffect = "write"
)

// ApprovalRule says whether a tool asks for a person on every call.
type ApprovalRule string

// The approval rules of tools.
const (
	Always ApprovalRule = "always"
	ByRule ApprovalRule = "by_rule"
)

// Definition is a tool's advertised contract. The same definition is shown to models and checked.
type Definition struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	// Local names the operation inside this process that the tool runs.
	Local string `json:"local,omitzero"`
	// Outside says, in the words of its adapter, how a tool that is not in this process is reached.
	Outside ijson.Raw `json:"outside,omitzero"`
	// Recovery says how the outcome of an outside write is found out that nobody heard of.
	Recovery Recovery `json:"recovery,omitzero"`
	// Schema is the JSON Schema (2020-12) of the arguments.
	Schema ijson.Raw `json:"schema"`
	// Output is the JSON Schema (2020-12) of what the tool gives; nil means anything.
	Output   ijson.Raw    `json:"output,omitzero"`
	Effect   ToolEffect   `json:"effect"`
	Approval ApprovalRule `json:"approval"`
	// Scopes that a task needs for it.
	Scopes []string `json:"scopes"`
	// Target and Key are JSON Pointers (RFC 6901) into the arguments: what the call acts on, and the
	// idempotency key that names the intended effect across attempts. Empty means none.
	Target string `json:"target,omitzero"`
	Key    string `json:"key,omitzero"`
	// Drop are JSON Pointers of arguments that are removed before anything else is done with the call.
	Drop []string `json:"drop,omitzero"`
	// Sensitive are JSON Pointers of arguments that reach the schema check, the tool and the reviewer alone, and
	// SensitiveOutput those into what the tool gives that reach its caller alone.
	Sensitive       []string `json:"sensitive,omitzero"`
	SensitiveOutput []string `json:"sensitive_output,omitzero"`
	// Resource says which of the profile's named sets guard the target: "readable", "writable", or empty for none.
	Resource string `json:"resource,omitzero"`
	// Cost is what one run takes from the profile's budget of that name; in a profile without one it limits nothing.
	Cost int64 `json:"cost,omitzero"`
	// Labels are words for the policy: what kind of tool this is.
	Labels []string   `json:"labels,omitzero"`
	Limits ToolLimits `json:"limits,omitzero"`
}

// Recovery is what a tool states of calls whose outcome is not known. The zero value leaves them to an operator.
type Recovery struct {
	// Retention is how long the tool remembers the key of a call from the first one on: so long it can be repeated. 0 means that
	// it cannot.
	Retention Millis `json:"retention_ms,omitzero"`
	// Lookup says that the tool can be asked what became of a call, and Settle how long after a call could last have been sent
	// its word that nothing did may still be premature.
	Lookup bool   `json:"lookup,omitzero"`
	Settle Millis `json:"settle_ms,omitzero"`
}

// Millis is a length of time in milliseconds.
type Millis int64

// Duration is the same time.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// ToolLimits bound what a tool gives.
type ToolLimits struct {
	// Time bounds a call of an outside tool, which must have one.
	Time Millis `json:"time_ms,omitzero"`
	// OutputBytes bounds the canonical form of the value; 0 means no other limit than that of every JSON value.
	OutputBytes int `json:"output_bytes,omitzero"`
}

// IsOutside says that the tool is not in this process.
func (d *Definition) IsOutside() bool { return d.Local == "" }

// Digest identifies the definition: an approval given under one digest is worthless under another.
func (d Definition) Digest() (string, error) {
	b, err := ijson.Marshal(d)
	if err != nil {
		return "", err
	}
	return ijson.Digest("govern definition v1", b), nil
}

// Violation is one way in which arguments or a result break a tool's schema.
type Violation struct {
	// Path is a JSON Pointer into what was checked.
	Path string `json:"path"`
	// Message names the rule that was broken, never the value.
	Message string `json:"message"`
}

// Tool is one registered tool. Implementations must be safe for concurrent use.
type Tool interface {
	// Definition never changes during the life of the tool.
	Definition() Definition
	// Check compares canonical arguments with the schema; nil means that they match.
	Check(arguments ijson.Raw) []Violation
	// CheckOutput compares the canonical form of a value with the output schema; nil means that they match. Paths lead into what
	// the schema is about, which of a tool outside is a part of the value.
	CheckOutput(value ijson.Raw) []Violation
	// Project removes from the canonical form of a value what is not to be told. A saved value passes it again when it is replayed.
	Project(value ijson.Raw) ijson.Raw
	// Run carries out a call whose arguments passed Check. A tool inside this process must not keep an effect of its own: a write
	// returns the record to create as a value, and the store commits it with the decision. An outside tool sends what
	// call.Sending lets it, once, and says of a write what is known of it.
	Run(ctx context.Context, call Call) Outcome
}

// Finder is an outside tool that can be asked what became of a call.
type Finder interface {
	// Find asks, and changes nothing. It says Committed, Absent or Unknown.
	Find(ctx context.Context, call Call) Finding
}

// Finding is what a tool says has become of a call.
type Finding struct {
	State OperationState
	// Value is what the call gave, if it is committed and the tool says so.
	Value ijson.Raw
	// Detail explains to people what was not understood.
	Detail string
}

// Sending is what a call of an outside tool goes out under.
type Sending struct {
	// Key names the operation to the tool, across repetitions; empty for a read.
	Key string
	// Fence must be asked directly before the first byte, and before every later one of a write. Its error forbids to send.
	Fence func() error
}

// Outcome is what came of running a tool.
type Outcome struct {
	// Status is StatusOK, StatusNotFound, StatusTimeout, StatusOutcomeUnknown or StatusInternalError; of an outside tool also
	// StatusUnavailable and StatusInvalidResult.
	Status Status
	// Sent says that a byte of a call to an outside tool may have left this process.
	Sent bool
	// State is what is known of an outside write: Committed, Absent or Unknown, which an empty one means as well.
	State OperationState
	// Reasons tell the caller of a refusal by an outside tool.
	Reasons []Reason
	// Ran says that the operation took place, whatever the caller is told; there is an action only then.
	Ran bool
	// Retryable says that the same call may be proposed again.
	Retryable bool
	// Value is the observation, and for a write the result that a replay answers; of a replay nil if the saved one may
	// not be told any more.
	Value ijson.Raw
	// Record is what a local write creates under the call's target.
	Record ijson.Raw
	// SealedValue and SealedRecord are what is recorded and shown of Value and Record; nil if nothing in them is
	// sensitive. No tool gives them.
	SealedValue  ijson.Raw
	SealedRecord ijson.Raw
	// Detail explains a broken or withheld result to people; the caller does not get it.
	Detail string
}

// checked refuses an outcome that its tool's definition does not allow. Nothing has happened yet: a local
// tool keeps no effect of its own.
func (o Outcome) checked(t Tool, def Definition, target string) Outcome {
	broken := func(detail string) Outcome {
		return Outcome{Status: StatusInternalError, Detail: def.Name + ": " + detail}
	}
	if o.Detail != "" && def.discreet() {
		// It may repeat what the tool was given, in any form.
		o.Detail = def.Name + ": what the tool says is not recorded, since it handles what is sensitive"
	}
	switch o.Status {
	case StatusOK, StatusOutcomeUnknown:
		if !o.Ran {
			return broken("says " + string(o.Status) + " of an operation that did not run")
		}
	case StatusNotFound, StatusTimeout, StatusInternalError:
		if o.Ran {
			return broken("says " + string(o.Status) + " of an operation that ran")
		}
		return o
	default:
		return broken("gave an unknown status")
	}
	if o.Record != nil && (def.Effect != Write || target == "") {
		return broken("gave a record to create, and is no write with a target")
	}
	for _, raw := range []*ijson.Raw{&o.Value, &o.Record} {
		if *raw == nil {
			continue
		}
		canonical, err := ijson.Canonical(*raw, ijson.DefaultLimits)
		if err != nil {
			if def.discreet() {
				return broken("gave a result that is not I-JSON")
			}
			return broken("gave a result that is not I-JSON: " + err.Error())
		}
		*raw = canonical
	}
	if o.Value == nil {
		return broken("gave no result")
	}
	if detail := breach(t, def, o.Value, def.discreet()); detail != "" {
		return Outcome{Status: StatusInvalidResult, Detail: detail}
	}
	return o
}

// checkedOutside refuses what its tool's definition does not allow in an outcome of an outside tool. What took place stays so: an
// answer that cannot be kept is left out, and what is not said of a write is not known.
func (o Outcome) checkedOutside(t Tool, def Definition) Outcome {
	broken := func(detail string) Outcome {
		o.Value, o.Reasons, o.Retryable, o.Detail = nil, nil, false, def.Name+": "+detail
		switch {
		case o.Ran && (def.Effect != Write || o.State == Committed):
			o.Status = StatusInvalidResult
		case def.Effect == Write && (o.Sent || o.State != Absent):
			o.Status, o.State, o.Ran = StatusOutcomeUnknown, Unknown, false
		default:
			o.Status, o.Ran = StatusInternalError, false
		}
		return o
	}
	if o.Detail != "" && def.discreet() {
		// It may repeat what the tool was given, in any form.
		o.Detail = def.Name + ": what the tool says is not recorded, since it handles what is sensitive"
	}
	o.Record = nil
	if def.Effect != Write {
		o.State = ""
	}
	switch o.Status {
	case StatusOK:
		if !o.Ran || def.Effect == Write && o.State != Committed {
			return broken("says ok of a call of which it does not say that it took place")
		}
	case StatusInvalidResult:
		o.Value = nil
		if want := map[bool]OperationState{true: Committed, false: Absent}[o.Ran]; def.Effect == Write && o.State != want {
			return broken("says invalid_result, and not clearly whether it took place")
		}
		return o
	case StatusNotFound, StatusTimeout, StatusUnavailable, StatusCancelled, StatusInternalError:
		if o.Ran || def.Effect == Write && o.State != Absent {
			return broken("says " + string(o.Status) + " of a call of which it does not say that nothing took place")
		}
		o.Value = nil
		return o
	case StatusOutcomeUnknown:
		if def.Effect != Write || o.Ran {
			return broken("does not know the outcome of a call that has none")
		}
		o.State, o.Value = Unknown, nil
		return o
	default:
		return broken("gave an unknown status")
	}
	if o.Value == nil {
		return broken("gave no result")
	}
	canonical, err := ijson.Canonical(o.Value, ijson.DefaultLimits)
	if err != nil {
		return broken("gave a result that is not I-JSON")
	}
	o.Value = canonical
	if detail := breach(t, def, o.Value, def.discreet()); detail != "" {
		o.Value, o.Status, o.Detail, o.Ran = nil, StatusInvalidResult, detail, def.Effect == Write
	}
	return o
}

// savedResult is what a replay may answer: the saved result, unless the tool could not give it now, or seals stand in it and
// what they stand for is not there.
func savedResult(t Tool, def Definition, saved *Operation) Outcome {
	if saved.Exact == nil {
		for range SealsIn(saved.Result) {
			return Outcome{Detail: def.Name + ": the saved result has seals in it, and what they stand for is not kept beside it"}
		}
	}
	value := or(saved.Exact, saved.Result)
	if value == nil {
		return Outcome{}
	}
	value = t.Project(value)
	if detail := breach(t, def, value, def.discreet() || saved.Exact != nil); detail != "" {
		return Outcome{Detail: detail}
	}
	o := Outcome{Value: value}
	if saved.Exact != nil {
		o.SealedValue = t.Project(saved.Result)
	}
	return o
}

// breach says to people how a canonical value breaks what its tool promises to give; empty means that it does not. It
// names rules and lengths, never the value; and where the value is discreet, no name in it that the schema does not have.
func breach(t Tool, def Definition, value ijson.Raw, discreet bool) string {
	if most := def.Limits.OutputBytes; most > 0 && len(value) > most {
		return fmt.Sprintf("%s: the result is %d bytes long; limits.output_bytes is %d", def.Name, len(value), most)
	}
	var broken []string
	found := t.CheckOutput(value)
	if discreet {
		found = unnamed(found, def.Output, def.gave(value))
	}
	for _, v := range found {
		broken = append(broken, strings.TrimLeft(v.Path+" "+v.Message, " "))
	}
	if len(broken) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: the result breaks the output schema: %s", def.Name, strings.Join(broken, "; "))
}

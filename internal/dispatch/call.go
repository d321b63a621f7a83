package dispatch

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Call is a proposal after decoding: what is signed, shown, approved, decided on, executed and logged.
type Call struct {
	// ID names one attempt. It may repeat; nothing is keyed by it. A proposal that is none keeps its id if that
	// is a string, cut at 40 characters and marked with an ellipsis, which no valid id has.
	ID string
	// HasID says that there was a call id, be it a wrong or an empty one.
	HasID     bool
	Tool      string
	Arguments ijson.Raw
	// Proposal is the canonical form of the whole, without what was dropped.
	Proposal ijson.Raw
	// SealedArguments and SealedProposal are what policy, record and listings have in place of Arguments and Proposal; nil
	// if nothing in them is sensitive.
	SealedArguments ijson.Raw
	SealedProposal  ijson.Raw
	// Malformed says why the bytes are no proposal; empty means that they are one.
	Malformed string
	// Length counts the bytes that arrived.
	Length int64
	// Target and Key are what the tool's definition points at; empty means none.
	Target string
	Key    string
	// Signature is the keyed signature; empty for what is no proposal.
	Signature string
	// Effect is the keyed digest of the effect of a call of a known tool, where it matters: outside, and beside open operations.
	Effect string
	// Violations of the tool's schema.
	Violations []Violation
	// Sending is what a call of an outside tool goes out under; the dispatcher sets it.
	Sending Sending

	// unread is why the bytes are not I-JSON, and sensitive what stood where now there are seals.
	unread    error
	sensitive []ijson.Raw
}

const maxCallID = 40

var callIDForm = regexp.MustCompile(`^[A-Za-z0-9-]{1,40}$`)

// decode reads the envelope {"call_id","tool","arguments"}. It never fails: what is no proposal is a call
// that says so, since it is judged, counted and recorded like any other.
func decode(b []byte, length int64, lim ijson.Limits) Call {
	c := Call{Length: max(length, int64(len(b)))}
	if c.Length > int64(lim.Bytes) {
		c.Malformed = fmt.Sprintf("it is %d bytes long; the limit is %d", c.Length, lim.Bytes)
		return c
	}
	canonical, err := ijson.Canonical(b, lim)
	if err != nil {
		c.Malformed, c.unread = notIJSON(err), err
		return c
	}
	if err := c.envelope(canonical); err != nil {
		c.Malformed = err.Error()
		c.Tool, c.Arguments = "", nil
		return c
	}
	c.Proposal = canonical
	return c
}

func notIJSON(err error) string { return "it is not I-JSON: " + err.Error() }

func (c *Call) envelope(canonical ijson.Raw) error {
	members, ok := ijson.Members(canonical)
	if !ok {
		return errors.New("it is not an object")
	}
	var foreign, missing []string
	seen := map[string]ijson.Raw{}
	for _, m := range members {
		switch m.Name {
		case "call_id", "tool", "arguments":
			seen[m.Name] = m.Value
		default:
			foreign = append(foreign, m.Name)
		}
	}
	id, isString := ijson.String(seen["call_id"])
	if isString {
		c.ID, c.HasID = cut(id), true
	}
	for _, name := range []string{"call_id", "tool", "arguments"} {
		if _, ok := seen[name]; !ok {
			missing = append(missing, name)
		}
	}
	switch {
	case len(foreign) > 0:
		return fmt.Errorf("it has %d member(s) beside call_id, tool and arguments", len(foreign))
	case len(missing) > 0:
		return fmt.Errorf("it has no %s", missing[0])
	case !isString:
		return errors.New("it has a call_id that is not a string")
	case !callIDForm.MatchString(id):
		return fmt.Errorf("it has a call_id that is not 1 to %d letters, digits or hyphens", maxCallID)
	}
	if c.Tool, ok = ijson.String(seen["tool"]); !ok {
		return errors.New("it has a tool that is not a string")
	}
	c.Arguments = seen["arguments"]
	if c.Arguments.Kind() != '{' {
		return errors.New("it has arguments that are not an object")
	}
	return nil
}

// read decodes a proposal, and removes at the door what the definition of its tool drops: nothing that was not signed
// is checked, shown, recorded or run.
func (s *Snapshot) read(proposal []byte, length int64) (Call, error) {
	c := decode(proposal, length, s.Limits)
	if broken, ok := errors.AsType[*ijson.Error](c.unread); ok && s.discreet() {
		// Names in it may be, or hold, what is sensitive.
		c.Malformed = notIJSON(&ijson.Error{Offset: broken.Offset, Rule: broken.Rule})
	}
	tool := s.Tools[c.Tool]
	if c.Malformed != "" || tool == nil {
		return c, nil
	}
	return c, c.drop(tool.Definition().Drop)
}

func (c *Call) drop(pointers []string) (err error) {
	some := false
	for _, pointer := range pointers {
		var dropped bool
		c.Arguments, dropped = ijson.Remove(c.Arguments, pointer)
		some = some || dropped
	}
	if some {
		c.Proposal, err = c.withID(c.Proposal, c.ID)
	}
	return err
}

func cut(id string) string {
	r := []rune(id)
	if len(r) <= maxCallID {
		return id
	}
	return string(r[:maxCallID]) + "…"
}

// point fills in what the tool's definition says about the call.
func (c *Call) point(t Tool, def Definition) {
	c.Violations = t.Check(c.Arguments)
	if len(c.Violations) > 0 {
		if def.discreet() {
			c.Violations = unnamed(c.Violations, def.Schema, c.Arguments)
		}
		return
	}
	c.Target = stringAt(c.Arguments, def.Target)
	c.Key = stringAt(c.Arguments, def.Key)
	for _, p := range []struct{ pointer, value string }{{def.Target, c.Target}, {def.Key, c.Key}} {
		// An empty one would name nothing: a call could come without the key that keeps it from running twice.
		if p.pointer != "" && p.value == "" {
			c.Violations = append(c.Violations, Violation{Path: p.pointer, Message: "must not be empty"})
		}
	}
}

func stringAt(arguments ijson.Raw, pointer string) string {
	if pointer == "" {
		return ""
	}
	v, ok := ijson.Lookup(arguments, pointer)
	if !ok {
		return ""
	}
	s, _ := ijson.String(v)
	return s
}

// sign gives the call its keyed signature: an equality key over tenant, task, actor, tool and arguments that
// is no oracle for short secrets, since it is keyed with the store's key.
func (c *Call) sign(key []byte, task TaskKey, actor string) error {
	if c.Malformed != "" {
		return nil
	}
	tuple, err := ijson.Marshal([]any{task.Tenant, task.ID, actor, c.Tool, c.Arguments, nil})
	if err != nil {
		return err
	}
	c.Signature = ijson.HMAC(key, "govern keyed signature v1", []byte(ijson.Digest("govern signature v1", tuple)))
	return nil
}

// effect is the keyed digest of what the call would bring about, whoever asks and under whatever key.
func (c *Call) effect(key []byte, task TaskKey, def *Definition) (string, error) {
	arguments := c.Arguments
	if def.Key != "" {
		arguments, _ = ijson.Remove(arguments, def.Key)
	}
	tuple, err := ijson.Marshal([]any{task.Tenant, task.ID, c.Tool, arguments})
	if err != nil {
		return "", err
	}
	return ijson.HMAC(key, "govern keyed effect v1", []byte(ijson.Digest("govern effect v1", tuple))), nil
}

package dispatch

import (
	"bytes"
	"fmt"
	"iter"
	"slices"
	"unicode/utf8"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// Sensitive values reach the schema check, the tool and the reviewer. Everybody else, the policy and the record first,
// sees a seal in their place: which is equal for equal values of a tenant, and tells nothing more but a length.

// Seal stands for a sensitive value.
type Seal struct {
	// Digest is keyed with the store's key, so that who sees it cannot try out guesses.
	Digest string `json:"$sealed"`
	// Length is that of a string in characters (code points), and of anything else that of its canonical form in bytes.
	Length int `json:"length"`
}

// SealOf gives the seal of a canonical value.
func SealOf(key []byte, tenant string, value ijson.Raw) (Seal, error) {
	named, err := ijson.Marshal([]any{tenant, value})
	if err != nil {
		return Seal{}, err
	}
	s := Seal{Digest: ijson.HMAC(key, "govern sealed value v1", named), Length: len(value)}
	if text, ok := ijson.String(value); ok {
		s.Length = utf8.RuneCountInString(text)
	}
	return s, nil
}

// ReadSeal says whether a value has the form of a seal, and which it would be. Anybody can write what has that form.
func ReadSeal(value ijson.Raw) (Seal, bool) {
	var s Seal
	members, _ := ijson.Members(value)
	if len(members) != 2 || members[0].Name != "$sealed" || members[1].Name != "length" {
		return s, false
	}
	return s, ijson.Unmarshal(value, &s) == nil
}

// SealsIn gives what has the form of a seal in a canonical value, with the JSON Pointers that lead there.
func SealsIn(value ijson.Raw) iter.Seq2[string, Seal] {
	return func(yield func(string, Seal) bool) { sealsIn(value, "", yield) }
}

func sealsIn(value ijson.Raw, pointer string, yield func(string, Seal) bool) (more bool) {
	if !bytes.Contains(value, []byte(`"$sealed"`)) {
		return true
	}
	if seal, ok := ReadSeal(value); ok {
		return yield(pointer, seal)
	}
	members, _ := ijson.Members(value)
	for _, m := range members {
		if !sealsIn(m.Value, pointer+"/"+ijson.EscapeToken(m.Name), yield) {
			return false
		}
	}
	var elements []ijson.Raw
	if value.Kind() == '[' && ijson.Unmarshal(value, &elements) == nil {
		for i, v := range elements {
			if !sealsIn(v, fmt.Sprintf("%s/%d", pointer, i), yield) {
				return false
			}
		}
	}
	return true
}

// sealer makes the seals of one tenant.
type sealer struct {
	key    []byte
	tenant string
}

func (s sealer) seal(value ijson.Raw) (ijson.Raw, error) {
	made, err := SealOf(s.key, s.tenant, value)
	if err != nil {
		return nil, err
	}
	return ijson.Marshal(made)
}

// at seals what pointers lead to, and gives what stood there and the seals that stand there now. Where there is nothing
// there is nothing to seal.
func (s sealer) at(value ijson.Raw, pointers []string) (sealed ijson.Raw, values, seals []ijson.Raw, err error) {
	sealed = value
	for _, p := range pointers {
		found, ok := ijson.Lookup(value, p)
		if !ok {
			continue
		}
		made, err := s.seal(found)
		if err != nil {
			return nil, nil, nil, err
		}
		sealed, _ = ijson.Replace(sealed, p, made)
		values, seals = append(values, found), append(seals, made)
	}
	return sealed, values, seals, nil
}

// discreet says whether a tool takes or gives what is sensitive.
func (d *Definition) discreet() bool { return len(d.Sensitive)+len(d.SensitiveOutput) > 0 }

// sensitiveOutput are pointers into a value of the tool. What one outside gave stands under one name in it.
func (d *Definition) sensitiveOutput() []string {
	if !d.IsOutside() {
		return d.SensitiveOutput
	}
	pointers := make([]string, 0, len(d.SensitiveOutput))
	for _, p := range d.SensitiveOutput {
		pointers = append(pointers, OutsideGave+p)
	}
	return pointers
}

// OutsideGave leads to what a tool outside gave in a value that its adapter wrapped; output schema, projection and what is
// sensitive in what it gives are about that.
const OutsideGave = "/value"

// gave is what the tool itself gave of a value.
func (d *Definition) gave(value ijson.Raw) ijson.Raw {
	if !d.IsOutside() {
		return value
	}
	inner, _ := ijson.Lookup(value, OutsideGave)
	return inner
}

// discreet says whether any tool takes what is sensitive. A call that names its tool wrongly may be meant for that one.
func (s *Snapshot) discreet() bool {
	for _, t := range s.Tools {
		if len(t.Definition().Sensitive) > 0 {
			return true
		}
	}
	return false
}

// sealArguments gives the call the form in which everybody but schema, tool and reviewer sees it. Arguments that are not
// as the schema says are sealed as a whole: what is sensitive may stand under any name in them. So may it in a call of a
// tool that there is not.
//
// Nothing else is sealed, even if it is equal to what is sensitive: the agent could hide from the policy whatever it
// repeats there.
func (c *Call) sealArguments(s sealer, def *Definition) (err error) {
	switch {
	case def == nil, len(c.Violations) > 0 && def.discreet():
		c.SealedArguments, err = s.seal(c.Arguments)
	case len(def.Sensitive) > 0:
		var sealed ijson.Raw
		if sealed, c.sensitive, _, err = s.at(c.Arguments, def.Sensitive); len(c.sensitive) > 0 {
			c.SealedArguments = sealed
		}
	}
	if err != nil || c.SealedArguments == nil {
		return err
	}
	shown := *c
	shown.Arguments = c.SealedArguments
	c.SealedProposal, err = shown.withID(c.Proposal, c.ID)
	return err
}

// or gives the first form if there is one, or else the second.
func or(first, second ijson.Raw) ijson.Raw {
	if first != nil {
		return first
	}
	return second
}

// exactBeside gives what has to be kept beside a sealed form, or nil if nothing was sealed.
func exactBeside(sealed, exact ijson.Raw) ijson.Raw {
	if sealed == nil {
		return nil
	}
	return exact
}

// sealed adds the forms in which the outcome is recorded and shown: without what the definition calls sensitive in a
// value, and without any part that repeats that or what is sensitive in the call.
func (o Outcome) sealed(s sealer, def *Definition, sensitive []ijson.Raw) (Outcome, error) {
	if !o.Ran || o.Value == nil || !def.discreet() {
		return o, nil
	}
	value, given, seals, err := s.at(o.Value, def.sensitiveOutput())
	if err != nil {
		return o, err
	}
	e := newEchoes(s, slices.Concat(sensitive, given), seals)
	if value, err = e.seal(value); err != nil {
		return o, err
	}
	if !slices.Equal(value, o.Value) {
		o.SealedValue = value
	}
	if o.Record == nil {
		return o, nil
	}
	record, err := e.seal(o.Record)
	if !slices.Equal(record, o.Record) {
		o.SealedRecord = record
	}
	return o, err
}

// unnamed cuts from violations what names neither a property of the schema nor an element of an array: a name that an
// agent or a tool chose may be, or hold, what is sensitive.
func unnamed(found []Violation, schema, value ijson.Raw) []Violation {
	words := map[string]bool{}
	for _, word := range textsOf(schema) {
		words[word] = true
	}
	out := make([]Violation, 0, len(found))
	at := map[string]ijson.Raw{"": value} // what was gone through: an agent chooses how long the ways are
	for _, v := range found {
		known := ""
		for _, token := range ijson.Tokens(v.Path) {
			around := at[known]
			if !words[token] && around.Kind() != '[' {
				v.Message = "has something in it under a name that is not shown, which " + v.Message
				break
			}
			step := "/" + ijson.EscapeToken(token)
			if known += step; at[known] == nil {
				at[known], _ = ijson.Lookup(around, step)
			}
		}
		v.Path = known
		out = append(out, v)
	}
	return slices.Compact(out)
}

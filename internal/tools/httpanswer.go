package tools

import (
	"bytes"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/outbound"
)

// wrapped is an answer as a caller sees it. Every member but the value comes from the adapter, whatever the answer says.
type wrapped struct {
	Source      string    `json:"source"`
	Tool        string    `json:"tool"`
	Version     string    `json:"version"`
	CallID      string    `json:"call_id"`
	ContentType string    `json:"content_type"`
	Status      int       `json:"status"`
	Trust       string    `json:"trust"`
	Value       ijson.Raw `json:"value"`
}

// leastSecret is the least length of a secret that is looked for in answers: a shorter one is found in anything.
const leastSecret = 8

// What is wrong with an answer is told without a word of it: it may hold what must reach nobody.
var (
	errSecret   = errors.New("the answer repeats the value of a header that is secret")
	errType     = errors.New("the answer is not of a content type that the tool has")
	errText     = errors.New("the answer is not UTF-8")
	errTooLong  = errors.New("the answer is longer than limits.output_bytes lets it be, with what is put around it")
	errNoAnswer = errors.New("the answer makes no value")
)

// read gives an answer as strict JSON, with its content type. An empty one is null.
func (t outside) read(answer outbound.Answer) (value ijson.Raw, contentType string, err error) {
	if len(answer.Body) == 0 {
		return ijson.Raw("null"), "", nil
	}
	if t.tells(answer.Body) {
		return nil, "", errSecret
	}
	media, params, err := mime.ParseMediaType(answer.ContentType)
	contentType, ok := t.takes(media)
	if err != nil || !ok {
		return nil, "", errType
	}
	if charset, stated := params["charset"]; stated && !strings.EqualFold(charset, "utf-8") {
		return nil, "", errType
	}
	if contentType == textType {
		if !utf8.Valid(answer.Body) {
			return nil, "", errText
		}
		value, err = ijson.Marshal(string(answer.Body))
	} else {
		value, err = ijson.Canonical(answer.Body, ijson.DefaultLimits)
	}
	if err != nil {
		reason := "not JSON"
		if e, ok := errors.AsType[*ijson.Error](err); ok {
			reason = e.Rule
		}
		return nil, "", errors.New("the answer is not strict JSON: " + reason)
	}
	// Escapes can hide it in the bytes that came, and not in the canonical form.
	if t.tells(value) {
		return nil, "", errSecret
	}
	return value, contentType, nil
}

// takes gives the type that an answer is taken as, and false if its own is none that it may have. Who takes application/json takes
// what is made of it, as application/json: any word could stand in another name.
func (t outside) takes(media string) (contentType string, ok bool) {
	types := t.http.ContentTypes
	if slices.Contains(types, media) {
		return media, true
	}
	return jsonType, isJSON(media) && slices.Contains(types, jsonType)
}

// tells says whether bytes hold a secret, as it is or as JSON writes it.
func (t outside) tells(b []byte) bool {
	for _, s := range t.hidden {
		if bytes.Contains(b, s) {
			return true
		}
	}
	return false
}

// hide gives the forms in which a secret is looked for.
func hide(secrets map[string]string) (forms [][]byte) {
	for _, s := range secrets {
		if len(s) < leastSecret {
			continue
		}
		forms = append(forms, []byte(s))
		if quoted, err := ijson.Marshal(s); err == nil && string(quoted[1:len(quoted)-1]) != s {
			forms = append(forms, quoted[1:len(quoted)-1])
		}
	}
	return forms
}

// wrap makes what the caller gets of an answer that was read: what is kept of it, with what the adapter says.
func (t outside) wrap(call dispatch.Call, status int, contentType string, value ijson.Raw) (ijson.Raw, error) {
	whole, err := ijson.Marshal(wrapped{Source: t.url.origin(), Tool: t.definition.Name, Version: t.definition.Version, CallID: call.ID,
		ContentType: contentType, Status: status, Trust: untrustedContent, Value: project(value, t.http.Keep)})
	if err != nil {
		return nil, errNoAnswer
	}
	if len(whole) > t.definition.Limits.OutputBytes {
		return nil, errTooLong
	}
	if broken := t.CheckOutput(whole); len(broken) > 0 {
		return nil, fmt.Errorf("the answer breaks the output schema: %s", list(broken, func(v dispatch.Violation) string { return strings.TrimLeft(v.Path+" "+v.Message, " ") }))
	}
	return whole, nil
}

func (t outside) CheckOutput(value ijson.Raw) []dispatch.Violation {
	inner, ok := ijson.Lookup(value, dispatch.OutsideGave)
	if !ok {
		return []dispatch.Violation{{Message: "must be what a tool outside gave"}}
	}
	if t.output == nil {
		return nil
	}
	return t.output.check(inner)
}

// Project keeps of a value what the definition keeps of an answer.
func (t outside) Project(value ijson.Raw) ijson.Raw {
	inner, ok := ijson.Lookup(value, dispatch.OutsideGave)
	if !ok {
		return ijson.Raw("null")
	}
	value, _ = ijson.Replace(value, dispatch.OutsideGave, project(inner, t.http.Keep))
	return value
}

// project gives a canonical value with what pointers lead to, through objects alone. Nil pointers keep all of it.
func project(value ijson.Raw, pointers []string) ijson.Raw {
	if pointers == nil {
		return value
	}
	kept := map[string]any{}
	for _, p := range pointers {
		found, ok := throughObjects(value, p)
		if !ok {
			continue
		}
		tokens := ijson.Tokens(p)
		at := kept
		for _, token := range tokens[:len(tokens)-1] {
			inner, ok := at[token].(map[string]any)
			if !ok {
				inner = map[string]any{}
				at[token] = inner
			}
			at = inner
		}
		at[tokens[len(tokens)-1]] = found
	}
	out, err := ijson.Marshal(kept)
	if err != nil {
		return ijson.Raw("null")
	}
	return out
}

func throughObjects(value ijson.Raw, pointer string) (ijson.Raw, bool) {
	for _, token := range ijson.Tokens(pointer) {
		if value.Kind() != '{' {
			return nil, false
		}
		found, ok := ijson.Lookup(value, "/"+ijson.EscapeToken(token))
		if !ok {
			return nil, false
		}
		value = found
	}
	return value, true
}

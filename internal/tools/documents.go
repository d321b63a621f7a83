package tools

import (
	"fmt"
	"maps"
	"slices"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Document is one text of the document store.
type Document struct {
	Text        string
	Version     string
	ContentType string
}

// Documents is a keyed store of texts. Its keys look like paths, and name nothing but their text: a document that
// is not in it does not exist.
type Documents map[string]Document

// ReadDocuments reads a store of documents from JSON. Unknown members are refused, and so is a document without
// a text, a version or a content type; the text alone may be empty.
func ReadDocuments(b []byte) (Documents, error) {
	var read map[string]struct {
		Text        *string `json:"text"`
		Version     string  `json:"version"`
		ContentType string  `json:"content_type"`
	}
	if err := ijson.Unmarshal(b, &read); err != nil {
		return nil, err
	}
	docs := Documents{}
	for _, key := range slices.Sorted(maps.Keys(read)) {
		d := read[key]
		switch {
		case d.Text == nil:
			return nil, fmt.Errorf("%q has no text", key)
		case d.Version == "":
			return nil, fmt.Errorf("%q has no version", key)
		case d.ContentType == "":
			return nil, fmt.Errorf("%q has no content_type", key)
		}
		docs[key] = Document{Text: *d.Text, Version: d.Version, ContentType: d.ContentType}
	}
	return docs, nil
}

// reachable refuses a document whose key no tool would ever accept as its target.
func (docs Documents) reachable(tools map[string]dispatch.Tool) error {
	for _, key := range slices.Sorted(maps.Keys(docs)) {
		var readers []string
		accepted := false
		for _, name := range slices.Sorted(maps.Keys(tools)) {
			def := tools[name].Definition()
			if def.Local != documentOperation {
				continue
			}
			readers = append(readers, name)
			// Whatever else a call needs is beside the point: only what is said of the target counts.
			refused := slices.ContainsFunc(tools[name].Check(argument(def.Target, key)), func(v dispatch.Violation) bool { return v.Path == def.Target })
			accepted = accepted || !refused
		}
		if len(readers) > 0 && !accepted {
			return fmt.Errorf("%q can never be read: the schema of %s takes no such target", key, list(readers, itself))
		}
	}
	return nil
}

// argument gives arguments that hold nothing but a string at a pointer.
func argument(pointer, value string) ijson.Raw {
	var arguments any = value
	for _, token := range slices.Backward(ijson.Tokens(pointer)) {
		arguments = map[string]any{token: arguments}
	}
	raw, err := ijson.Marshal(arguments)
	if err != nil {
		return ijson.Raw("{}")
	}
	return raw
}

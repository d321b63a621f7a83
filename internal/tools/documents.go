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
	Text        string `json:"text"`
	Version     string `json:"version"`
	ContentType string `json:"content_type"`
}

// Documents is a keyed store of texts. Its keys look like paths, and name nothing but their text: a document that
// is not in it does not exist.
type Documents map[string]Document

// ReadDocuments reads a store of documents from JSON. Unknown members are refused, and so is a document without
// a version or a content type.
func ReadDocuments(b []byte) (Documents, error) {
	var docs Documents
	if err := ijson.Unmarshal(b, &docs); err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	for _, key := range slices.Sorted(maps.Keys(docs)) {
		if docs[key].Version == "" {
			return nil, fmt.Errorf("documents: %q has no version", key)
		}
		if docs[key].ContentType == "" {
			return nil, fmt.Errorf("documents: %q has no content_type", key)
		}
	}
	return docs, nil
}

// reachable refuses a document whose key the reading tool would never accept.
func (docs Documents) reachable(reader dispatch.Tool) error {
	for _, key := range slices.Sorted(maps.Keys(docs)) {
		arguments, err := ijson.Marshal(map[string]string{"path": key})
		if err != nil {
			return fmt.Errorf("documents: %q: %w", key, err)
		}
		if reader.Check(arguments) != nil {
			return fmt.Errorf("documents: %q can never be read: %s takes no such path", key, ReadDocument)
		}
	}
	return nil
}

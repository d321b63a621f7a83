package tools

import "github.com/policy-dispatch/govern/internal/dispatch"

// readDocument gives the text of the document that the target names, with where it came from.
func readDocument(_ dispatch.Definition, docs Documents) prepare {
	return func(call dispatch.Call) (operation, dispatch.Outcome) {
		doc, ok := docs[call.Target]
		if !ok {
			return nil, dispatch.Outcome{Status: dispatch.StatusNotFound}
		}
		return func() dispatch.Outcome { return done(observe(call.ID, call.Target, doc)) }, dispatch.Outcome{}
	}
}

// untrustedContent labels text that may say anything and authorises nothing.
const untrustedContent = "untrusted_content"

// observation is a document as a caller sees it. Every member but the text comes from the adapter, whatever the
// text says.
type observation struct {
	Source      string `json:"source"`
	Path        string `json:"path"`
	Version     string `json:"version"`
	CallID      string `json:"call_id"`
	ContentType string `json:"content_type"`
	Trust       string `json:"trust"`
	Text        string `json:"text"`
}

func observe(callID, key string, doc Document) observation {
	return observation{
		Source: key, Path: key, Version: doc.Version, CallID: callID, ContentType: doc.ContentType,
		Trust: untrustedContent, Text: doc.Text,
	}
}

package dispatch

import "github.com/policy-dispatch/govern/internal/ijson"

// Call is a proposal after decoding: what is signed, shown, approved, decided on, executed and logged.
type Call struct {
	ID        string
	Tool      string
	Arguments ijson.Raw // canonical
	Target    string
	Key       string
}

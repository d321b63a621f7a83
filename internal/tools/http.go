package tools

import (
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// Outside is how a tool outside this process is reached: the form of a definition's Outside. It has the names of what is
// secret, and never the values.
type Outside struct {
	HTTP     HTTP            `json:"http"`
	Recovery OutsideRecovery `json:"recovery,omitzero"`
}

// HTTP is a tool that takes one HTTP request a call.
type HTTP struct {
	Method string `json:"method"`
	// URL has JSON Pointers into the arguments in braces, in segments of its path and values of its query.
	URL     string            `json:"url"`
	Headers map[string]Header `json:"headers,omitzero"`
	// Success are the statuses that say it took place.
	Success []int `json:"success,omitzero"`
	// ContentTypes are those that an answer may have.
	ContentTypes []string `json:"content_types,omitzero"`
	// Keep are JSON Pointers into the answer, through objects alone; the rest is removed. Nil keeps all.
	Keep []string `json:"keep,omitzero"`
	// Networks may be reached though their addresses are not public.
	Networks []string `json:"networks,omitzero"`
	// Proxy carries the encrypted connection; empty means none.
	Proxy string `json:"proxy,omitzero"`
}

// Header says where the value of a header comes from: an environment variable or a file, with something before it, or here.
type Header struct {
	Env    string `json:"env,omitzero"`
	File   string `json:"file,omitzero"`
	Prefix string `json:"prefix,omitzero"`
	Value  string `json:"value,omitzero"`
}

// secret says whether the value comes from elsewhere.
func (h Header) secret() bool { return h.Value == "" }

// OutsideRecovery is what of a definition's recovery concerns HTTP.
type OutsideRecovery struct {
	Idempotency *Idempotency `json:"idempotency,omitzero"`
	Lookup      *Lookup      `json:"lookup,omitzero"`
	// Operator says that only a person can find out.
	Operator bool `json:"operator,omitzero"`
}

// Idempotency names the header by which the tool knows a repetition.
type Idempotency struct {
	Header string `json:"header"`
}

// Lookup is a question to the tool of what became of a call.
type Lookup struct {
	// URL is like that of the tool, and {key} in it is what Header carried.
	URL string `json:"url"`
	// Header carries the key of the call; empty if that of Idempotency does.
	Header string `json:"header,omitzero"`
	// State leads to the word in the answer that decides, by Committed and Absent; empty means that the status does.
	State     string   `json:"state,omitzero"`
	Committed []string `json:"committed,omitzero"`
	Absent    []string `json:"absent,omitzero"`
}

// keyHeaders are the headers that carry the outward key.
func (r OutsideRecovery) keyHeaders() (names []string) {
	if r.Idempotency != nil {
		names = append(names, r.Idempotency.Header)
	}
	if r.Lookup != nil && r.Lookup.Header != "" && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, r.Lookup.Header) }) {
		names = append(names, r.Lookup.Header)
	}
	return names
}

// Secrets are the values of headers, by tool and name, that its definition has the place of.
type Secrets map[string]map[string]string

// readOutside reads a definition's Outside strictly, with its defaults, and puts in order what has none.
func readOutside(def dispatch.Definition) (Outside, error) {
	var o Outside
	if err := ijson.Unmarshal(def.Outside, &o); err != nil {
		return o, err
	}
	if o.HTTP.Success == nil {
		o.HTTP.Success = []int{200, 201, 204}
		if def.Effect == dispatch.Read {
			o.HTTP.Success = []int{200}
		}
	}
	if o.HTTP.ContentTypes == nil {
		o.HTTP.ContentTypes = []string{jsonType}
	}
	slices.Sort(o.HTTP.Success)
	for _, list := range [][]string{o.HTTP.ContentTypes, o.HTTP.Keep, o.HTTP.Networks} {
		slices.Sort(list)
	}
	if l := o.Recovery.Lookup; l != nil {
		slices.Sort(l.Committed)
		slices.Sort(l.Absent)
	}
	return o, nil
}

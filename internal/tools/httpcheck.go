package tools

import (
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/outbound"
)

// Bounds and defaults of what an outside tool takes.
const (
	DefaultOutsideTime  = 10 * time.Second
	MostOutsideTime     = 5 * time.Minute
	DefaultOutsideBytes = 64 << 10
	// LeastOutsideBytes leaves room for what the adapter puts around an answer.
	LeastOutsideBytes = 1 << 10
	MostRetention     = 366 * 24 * time.Hour
	MostSettle        = 24 * time.Hour
)

const (
	jsonType = "application/json"
	textType = "text/plain"
)

// bodied are the methods whose requests have a body.
var bodied = []string{http.MethodPatch, http.MethodPost, http.MethodPut}

// checkOutside says what is wrong with how a tool outside this process is reached.
func checkOutside(def dispatch.Definition, o Outside, secrets map[string]string) (problems []DefinitionError) {
	c := outsideCheck{def: def, Outside: o}
	c.method()
	c.destination()
	c.headers(secrets)
	c.answer()
	c.recovery()
	c.limits()
	if def.Scopes == nil {
		c.wrong("/scopes", "a tool outside states what a profile must grant; write scopes, [] for nothing")
	}
	if def.Effect == dispatch.Write && def.Approval == "" {
		c.wrong("/approval", "a write outside states when a person is asked; write always or by_rule")
	}
	return c.problems
}

type outsideCheck struct {
	Outside
	def      dispatch.Definition
	problems []DefinitionError
}

func (c *outsideCheck) wrong(field, format string, args ...any) {
	c.problems = append(c.problems, DefinitionError{Field: field, Problem: fmt.Sprintf(format, args...)})
}

func (c *outsideCheck) method() {
	write := []string{http.MethodDelete, http.MethodPatch, http.MethodPost, http.MethodPut}
	read := []string{http.MethodGet, http.MethodHead, http.MethodPost}
	switch {
	case c.def.Effect == dispatch.Write && !slices.Contains(write, c.HTTP.Method):
		c.wrong("/http/method", "%q is no method of a write (left out, effect is write); there is %s", c.HTTP.Method, list(write, itself))
	case c.def.Effect == dispatch.Read && !slices.Contains(read, c.HTTP.Method):
		c.wrong("/http/method", "%q is no method of a read; there is %s", c.HTTP.Method, list(read, itself))
	}
}

func (c *outsideCheck) destination() {
	networks, field, err := parseNetworks(c.HTTP.Networks)
	if err != nil {
		c.wrong(field, "%v", err)
	}
	t, err := parseTemplate(c.HTTP.URL)
	if err != nil {
		c.wrong("/http/url", "%v", err)
		return
	}
	switch {
	case t.hasKey():
		c.wrong("/http/url", "the outward key goes in a header; name it in recovery.idempotency.header or recovery.lookup.header")
	case t.scheme == "http" && len(c.HTTP.Networks) == 0:
		c.wrong("/http/url", "http:// can be read and changed on the way; write https://, or state the networks of this machine's own neighbourhood that it is in")
	}
	c.address(t, networks)
	if c.HTTP.Proxy != "" {
		p, err := url.Parse(c.HTTP.Proxy)
		switch {
		case err != nil, p.Scheme != "http", p.Host == "", p.User != nil, p.Path != "" && p.Path != "/", p.RawQuery != "", p.Fragment != "":
			c.wrong("/http/proxy", "it is no proxy; write http://HOST:PORT, with no user")
		case t.scheme != "https":
			c.wrong("/http/proxy", "a proxy carries the encrypted connection of an https:// URL alone; remove it")
		}
	}
	c.places("/http/url", t)
	c.unused(t)
}

// address refuses a URL whose host is an address that is not to be reached; one that is a name is told when it is connected to.
func (c *outsideCheck) address(t template, networks []netip.Prefix) {
	u, err := url.Parse(t.origin())
	if err != nil {
		return
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		if err := outbound.CheckAddress(a, networks); err != nil {
			c.wrong("/http/url", "%v; name it in http.networks if it is meant", err)
		}
	}
}

func parseNetworks(texts []string) (networks []netip.Prefix, field string, err error) {
	for i, text := range texts {
		field := fmt.Sprintf("/http/networks/%d", i)
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, field, fmt.Errorf("%q is no network; write it like 10.1.0.0/16", text)
		}
		if err := outbound.CheckNetwork(n); err != nil {
			return nil, field, err
		}
		networks = append(networks, n)
	}
	return networks, "", nil
}

// places compares the places of a URL with the schema.
func (c *outsideCheck) places(field string, t template) {
	inPath := map[string]bool{}
	for _, p := range t.path {
		inPath[p.pointer] = true
	}
	for _, p := range t.pointers() {
		if p == c.def.Key {
			c.wrong(field, "%s is the idempotency key, which names an attempt to govern alone; the tool gets a key of govern's", p)
			continue
		}
		if slices.ContainsFunc(c.def.Drop, func(dropped string) bool { return within(p, dropped) }) {
			c.wrong(field, "%s is dropped, so no call would have it", p)
			continue
		}
		found, why := descend(c.def.Schema, p, func(_ ijson.Raw, required bool) string {
			if required || !inPath[p] {
				return ""
			}
			return fmt.Sprintf("the schema does not require %s, and a path without it is another; name it in required", p)
		})
		if why == "" && !slices.Contains([]string{"string", "integer", "number", "boolean"}, typeOf(found)) {
			why = fmt.Sprintf("the schema must say that %s is of type string, integer, number or boolean; nothing else has one form in a URL", p)
		}
		if why != "" {
			c.wrong(field, "%s", why)
		}
	}
}

// unused refuses arguments that would be approved and never be sent: of a request without a body each has a place in the URL.
func (c *outsideCheck) unused(t template) {
	if slices.Contains(bodied, c.HTTP.Method) {
		return
	}
	var walk func(schema ijson.Raw, at string)
	walk = func(schema ijson.Raw, at string) {
		others, _ := ijson.Lookup(schema, "/additionalProperties")
		if _, patterns := ijson.Lookup(schema, "/patternProperties"); string(others) != "false" || patterns {
			c.wrong("/schema", "a %s request sends what stands in its URL alone; say additionalProperties: false%s, without patternProperties, so that nothing is approved that is not sent",
				c.HTTP.Method, map[bool]string{true: "", false: " at " + at}[at == ""])
		}
		for _, name := range properties(schema) {
			here := at + "/" + ijson.EscapeToken(name)
			switch {
			case here == c.def.Key, slices.Contains(t.pointers(), here), slices.ContainsFunc(c.def.Drop, func(dropped string) bool { return within(here, dropped) }):
			case slices.ContainsFunc(append(t.pointers(), c.def.Key), func(p string) bool { return within(p, here) }):
				inner, _, _ := property(schema, name)
				walk(inner, here)
			default:
				c.wrong("/http/url", "a %s request sends what stands in its URL alone, and %s does not; give it a place such as ?%s={%s}", c.HTTP.Method, here, name, here)
			}
		}
	}
	walk(c.def.Schema, "")
}

var (
	headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$")
	// ours are headers that the adapter or the protocol sets.
	ours = []string{"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Proxy-Authorization",
		"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}
	// credentialForm is what headers of credentials are called.
	credentialForm = regexp.MustCompile(`(?i)auth|cookie|token|secret|password|credential|api-?key|signature`)
)

func (c *outsideCheck) headers(secrets map[string]string) {
	seen := map[string]string{}
	name := func(field, header string) {
		canonical := http.CanonicalHeaderKey(header)
		switch {
		case !headerForm.MatchString(header):
			c.wrong(field, "%q is no name of a header", header)
		case slices.Contains(ours, canonical):
			c.wrong(field, "%s is set by govern; remove it", canonical)
		case seen[canonical] != "":
			c.wrong(field, "%s is named twice; keep one", canonical)
		}
		seen[canonical] = field
	}
	for _, header := range slices.Sorted(maps.Keys(c.HTTP.Headers)) {
		field := "/http/headers/" + ijson.EscapeToken(header)
		name(field, header)
		h := c.HTTP.Headers[header]
		stated := 0
		for _, from := range []string{h.Env, h.File, h.Value} {
			if from != "" {
				stated++
			}
		}
		value := secrets[header]
		switch {
		case stated != 1:
			c.wrong(field, "say where its value comes from: {env: NAME}, {file: PATH} or {value: TEXT}")
		case h.Value != "" && h.Prefix != "":
			c.wrong(field+"/prefix", "a prefix goes before a value from elsewhere; write it into the value")
		case h.Value != "" && credentialForm.MatchString(header):
			c.wrong(field+"/value", "a value that stands here is shown and recorded; give a credential by env or file")
		}
		if strings.ContainsFunc(h.Prefix+h.Value+value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			c.wrong(field, "its value has a line break or another control character in it")
		}
		if value != strings.Trim(value, " ") || strings.ContainsFunc(value, func(r rune) bool { return r > 0x7f }) {
			// On its way it would become another text, which nobody would find in an answer.
			c.wrong(field, "what is secret of its value starts or ends with a blank, or is not ASCII; write it as the tool is to get it")
		}
	}
	for i, header := range c.Recovery.keyHeaders() {
		field := "/recovery/lookup/header"
		if i == 0 && c.Recovery.Idempotency != nil {
			field = "/recovery/idempotency/header"
		}
		name(field, header)
	}
}

func (c *outsideCheck) answer() {
	for i, s := range c.HTTP.Success {
		if s < 200 || s > 299 {
			c.wrong("/http/success", "%d does not say that anything took place; give statuses of 200 to 299", s)
		} else if i > 0 && c.HTTP.Success[i-1] == s {
			c.wrong("/http/success", "%d is named twice; keep one", s)
		}
	}
	if len(c.HTTP.Success) == 0 {
		c.wrong("/http/success", "no answer would say that it took place; name one, or leave it out")
	}
	if len(c.HTTP.ContentTypes) == 0 {
		c.wrong("/http/content_types", "no answer could be read; name one, or leave it out for application/json")
	}
	for i, t := range c.HTTP.ContentTypes {
		media, params, err := mime.ParseMediaType(t)
		if err != nil || len(params) > 0 || media != t || media != textType && !isJSON(media) {
			c.wrong(fmt.Sprintf("/http/content_types/%d", i), "%q is no type that can be read; there is application/json, others that end in +json, and text/plain", t)
		}
	}
	if c.HTTP.Keep != nil && len(c.HTTP.Keep) == 0 {
		c.wrong("/http/keep", "nothing would be kept; name what is, or leave it out for all")
	}
	for i, p := range c.HTTP.Keep {
		field := fmt.Sprintf("/http/keep/%d", i)
		switch {
		case !pointerForm.MatchString(p):
			c.wrong(field, "%q is no JSON Pointer into the answer, such as /id", p)
		case slices.ContainsFunc(c.HTTP.Keep[:i], func(other string) bool { return within(p, other) || within(other, p) }):
			c.wrong(field, "%s is named twice, or lies in another that is named; keep the outer one", p)
		}
	}
}

func (c *outsideCheck) recovery() {
	r, stated := c.Recovery, c.def.Recovery
	known := r.Idempotency != nil || r.Lookup != nil
	switch {
	case c.def.Effect != dispatch.Write && (known || r.Operator):
		c.wrong("/recovery", "a read changes nothing, so nothing of it has to be found out; remove it")
		return
	case c.def.Effect == dispatch.Write && !known && !r.Operator:
		c.wrong("/recovery", "a write outside states how its outcome is found out when no answer came: recovery.idempotency, recovery.lookup, or recovery.operator: true")
	case known && r.Operator:
		c.wrong("/recovery/operator", "an operator can always say what became of a call; remove it beside idempotency or lookup")
	}
	if retention := stated.Retention.Duration(); r.Idempotency != nil && (retention < time.Second || retention > MostRetention) {
		c.wrong("/recovery/idempotency/retention", "say how long the tool remembers a key, 1s to %s", MostRetention)
	}
	l := r.Lookup
	if l == nil {
		return
	}
	if settle := stated.Settle.Duration(); settle < 0 || settle > MostSettle {
		c.wrong("/recovery/lookup/settle", "it is %s; give 0s to %s", settle, MostSettle)
	}
	if l.Header == "" && r.Idempotency == nil {
		c.wrong("/recovery/lookup/header", "it is missing; name the header in which the call itself carries the key that is looked up")
	}
	t, err := parseTemplate(l.URL)
	own, errOwn := parseTemplate(c.HTTP.URL)
	switch {
	case err != nil:
		c.wrong("/recovery/lookup/url", "%v", err)
	case errOwn == nil && t.origin() != own.origin():
		c.wrong("/recovery/lookup/url", "the look-up is at %s and the tool at %s; a tool is asked where it is called", t.origin(), own.origin())
	default:
		c.places("/recovery/lookup/url", t)
	}
	if l.State == "" && len(l.Committed)+len(l.Absent) > 0 {
		c.wrong("/recovery/lookup/state", "it is missing; point at the word in the answer that committed and absent are compared with")
	}
	if l.State != "" && !pointerForm.MatchString(l.State) {
		c.wrong("/recovery/lookup/state", "%q is no JSON Pointer into the answer, such as /status", l.State)
	}
	if l.State != "" && len(l.Committed) == 0 {
		c.wrong("/recovery/lookup/committed", "it is missing; name the words that say that it took place")
	}
	for i, w := range l.Absent {
		if w == "" || slices.Contains(l.Committed, w) {
			c.wrong(fmt.Sprintf("/recovery/lookup/absent/%d", i), "%q cannot say that nothing took place", w)
		}
	}
	if slices.Contains(l.Committed, "") {
		c.wrong("/recovery/lookup/committed", "an empty word says nothing; remove it")
	}
}

func (c *outsideCheck) limits() {
	if d := c.def.Limits.Time.Duration(); d < time.Millisecond || d > MostOutsideTime {
		c.wrong("/limits/time", "it is %s; give 1ms to %s", d, MostOutsideTime)
	}
	if n := c.def.Limits.OutputBytes; n < LeastOutsideBytes || n > ijson.DefaultLimits.Bytes {
		c.wrong("/limits/output_bytes", "it is %d; of a tool outside give %d to %d", n, LeastOutsideBytes, ijson.DefaultLimits.Bytes)
	}
}

func isJSON(media string) bool { return media == jsonType || strings.HasSuffix(media, "+json") }

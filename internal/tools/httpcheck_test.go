package tools

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

func TestOutsideDefinitionsThatAreRefused(t *testing.T) {
	type edit = func(*dispatch.Definition, *Outside)
	lookup := func(change func(*dispatch.Definition, *Lookup)) edit {
		return func(d *dispatch.Definition, o *Outside) {
			d.Recovery = dispatch.Recovery{Lookup: true}
			o.Recovery = OutsideRecovery{Lookup: &Lookup{URL: "https://pay.example.com/lookup/{key}", Header: "X-Id"}}
			change(d, o.Recovery.Lookup)
		}
	}
	for name, c := range map[string]struct {
		edit edit
		want string
	}{
		"local as well":    {func(d *dispatch.Definition, _ *Outside) { d.Local = "record" }, "local: a tool runs in this process or outside; keep local or http"},
		"pure":             {func(d *dispatch.Definition, _ *Outside) { d.Effect = dispatch.Pure }, "effect: a tool outside is a read or a write"},
		"no scopes":        {func(d *dispatch.Definition, _ *Outside) { d.Scopes = nil }, "scopes: a tool outside states what a profile must grant; write scopes, [] for nothing"},
		"no approval":      {func(d *dispatch.Definition, _ *Outside) { d.Approval = "" }, "approval: a write outside states when a person is asked"},
		"another approval": {func(d *dispatch.Definition, _ *Outside) { d.Approval = "never" }, `approval: "never" says not when`},
		"no recovery": {func(d *dispatch.Definition, o *Outside) {
			d.Recovery, o.Recovery = dispatch.Recovery{}, OutsideRecovery{}
		}, "recovery: a write outside states how its outcome is found out"},
		"an operator beside":  {func(_ *dispatch.Definition, o *Outside) { o.Recovery.Operator = true }, "recovery/operator: an operator can always say"},
		"no retention":        {func(d *dispatch.Definition, _ *Outside) { d.Recovery.Retention = 0 }, "recovery/idempotency/retention: say how long"},
		"a long retention":    {func(d *dispatch.Definition, _ *Outside) { d.Recovery.Retention = 367 * 24 * 3600_000 }, "recovery/idempotency/retention: say how long"},
		"a write that reads":  {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Method = "GET" }, `http/method: "GET" is no method of a write`},
		"a small method":      {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Method = "post" }, `http/method: "post" is no method of a write`},
		"no method":           {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Method = "" }, `http/method: "" is no method`},
		"no URL":              {func(_ *dispatch.Definition, o *Outside) { o.HTTP.URL = "" }, "http/url: it is no URL of a tool"},
		"a key in the URL":    {func(_ *dispatch.Definition, o *Outside) { o.HTTP.URL += "&k={key}" }, "http/url: the outward key goes in a header"},
		"the agent's key":     {func(_ *dispatch.Definition, o *Outside) { o.HTTP.URL += "&k={/request_id}" }, "http/url: /request_id is the idempotency key"},
		"a place of nothing":  {func(_ *dispatch.Definition, o *Outside) { o.HTTP.URL += "&k={/notes}" }, "http/url: the schema has no property /notes; did you mean note?"},
		"an optional segment": {func(_ *dispatch.Definition, o *Outside) { o.HTTP.URL = "https://pay.example.com/{/note}" }, "http/url: the schema does not require /note, and a path without it is another"},
		"a dropped place":     {func(d *dispatch.Definition, _ *Outside) { d.Drop = []string{"/note"} }, "http/url: /note is dropped"},
		"a place for a list": {func(d *dispatch.Definition, _ *Outside) {
			d.Schema = ijson.Raw(`{"type":"object","properties":{"order_id":{"type":"string"},"request_id":{"type":"string"},"note":{"type":"array"}},"required":["order_id","request_id"]}`)
		}, "http/url: the schema must say that /note is of type string, integer, number or boolean"},
		"no TLS": {func(_ *dispatch.Definition, o *Outside) {
			o.HTTP.URL, o.HTTP.Networks = "http://pay.example.com/{/order_id}", nil
		}, "http/url: http:// can be read and changed on the way"},
		"a private address": {func(_ *dispatch.Definition, o *Outside) { o.HTTP.URL = "https://169.254.169.254/{/order_id}" }, "http/url: 169.254.169.254 is a link-local address"},
		"a private address behind a proxy": {func(_ *dispatch.Definition, o *Outside) {
			o.HTTP.URL, o.HTTP.Proxy = "https://169.254.169.254/{/order_id}", "http://proxy:3128"
		}, "http/url: 169.254.169.254 is a link-local address"},
		"a private address 6": {func(_ *dispatch.Definition, o *Outside) { o.HTTP.URL = "https://[::ffff:10.0.0.1]/{/order_id}" }, "http/url: 10.0.0.1 is a private address"},
		"a public network":    {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Networks = []string{"0.0.0.0/0"} }, "http/networks/0: 0.0.0.0/0 is not within one private range"},
		"no network":          {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Networks = []string{"10.0.0.1"} }, `http/networks/0: "10.0.0.1" is no network`},
		"a proxy with a user": {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Proxy = "http://u:p@proxy:3128" }, "http/proxy: it is no proxy"},
		"a proxy of another":  {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Proxy = "socks5://proxy:1080" }, "http/proxy: it is no proxy"},
		"a proxy of no TLS": {func(_ *dispatch.Definition, o *Outside) {
			o.HTTP.URL, o.HTTP.Proxy = "http://pay.example.com/{/order_id}", "http://proxy:3128"
		}, "http/proxy: a proxy carries the encrypted connection"},
		"a header of nothing": {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Headers["X-A"] = Header{} }, "http/headers/X-A: say where its value comes from"},
		"a header twice":      {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Headers["X-A"] = Header{Env: "A", Value: "a"} }, "http/headers/X-A: say where its value comes from"},
		"a credential here":   {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Headers["X-Api-Key"] = Header{Value: "a"} }, "http/headers/X-Api-Key/value: a value that stands here is shown and recorded"},
		"a prefix of a value": {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Headers["X-A"] = Header{Value: "a", Prefix: "b"} }, "http/headers/X-A/prefix: "},
		"a line break":        {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Headers["X-A"] = Header{Value: "a\r\nHost: b"} }, "http/headers/X-A: its value has a line break"},
		"a line break before": {func(_ *dispatch.Definition, o *Outside) {
			o.HTTP.Headers["Authorization"] = Header{Env: "A", Prefix: "a\n"}
		}, "http/headers/Authorization: its value has a line break"},
		"no header's name":     {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Headers["X A"] = Header{Value: "a"} }, `http/headers/X A: "X A" is no name of a header`},
		"our header":           {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Headers["host"] = Header{Value: "a"} }, "http/headers/host: Host is set by govern"},
		"a header in two ways": {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Headers["authorization"] = Header{Value: "a"} }, "http/headers/authorization: Authorization is named twice"},
		"the key's header":     {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Headers["idempotency-key"] = Header{Value: "a"} }, "recovery/idempotency/header: Idempotency-Key is named twice"},
		"no key's header":      {func(_ *dispatch.Definition, o *Outside) { o.Recovery.Idempotency.Header = "" }, `recovery/idempotency/header: "" is no name of a header`},
		"a failure":            {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Success = []int{404} }, "http/success: 404 does not say"},
		"a status twice":       {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Success = []int{200, 200} }, "http/success: 200 is named twice"},
		"no status":            {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Success = []int{} }, "http/success: no answer"},
		"HTML":                 {func(_ *dispatch.Definition, o *Outside) { o.HTTP.ContentTypes = []string{"text/html"} }, `http/content_types/0: "text/html" is no type that can be read`},
		"a type of a charset":  {func(_ *dispatch.Definition, o *Outside) { o.HTTP.ContentTypes = []string{"text/plain; charset=utf-8"} }, "http/content_types/0: "},
		"no type":              {func(_ *dispatch.Definition, o *Outside) { o.HTTP.ContentTypes = []string{} }, "http/content_types: no answer"},
		"nothing kept":         {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Keep = []string{} }, "http/keep: nothing would be kept"},
		"kept twice":           {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Keep = []string{"/a/b", "/a"} }, "http/keep/1: /a/b is named twice, or lies in another"},
		"kept nowhere":         {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Keep = []string{"id"} }, `http/keep/0: "id" is no JSON Pointer`},
		"too long":             {func(d *dispatch.Definition, _ *Outside) { d.Limits.Time = 300_001 }, "limits/time: it is 5m0.001s; give 1ms to 5m0s"},
		"too short":            {func(d *dispatch.Definition, _ *Outside) { d.Limits.Time = -1 }, "limits/time: "},
		"too much":             {func(d *dispatch.Definition, _ *Outside) { d.Limits.OutputBytes = 1<<20 + 1 }, "limits/output_bytes: it is 1048577"},
		"too little":           {func(d *dispatch.Definition, _ *Outside) { d.Limits.OutputBytes = 1023 }, "limits/output_bytes: it is 1023"},
		"what is not sent":     {func(_ *dispatch.Definition, o *Outside) { o.HTTP.Method = "DELETE" }, "http/url: a DELETE request sends what stands in its URL alone, and /amount does not; give it a place such as ?amount={/amount}"},
		"what may not be sent": {func(d *dispatch.Definition, o *Outside) {
			o.HTTP.Method, d.Schema = "DELETE", ijson.Raw(`{"type":"object","properties":{"order_id":{"type":"string"},"note":{"type":"string"},"request_id":{"type":"string"}},"required":["order_id","request_id"]}`)
		}, "schema: a DELETE request sends what stands in its URL alone; say additionalProperties: false, without"},
		"a look-up elsewhere":   {lookup(func(_ *dispatch.Definition, l *Lookup) { l.URL = "https://other.example.com/{key}" }), "recovery/lookup/url: the look-up is at https://other.example.com and the tool at https://pay.example.com"},
		"a look-up of no TLS":   {lookup(func(_ *dispatch.Definition, l *Lookup) { l.URL = "http://pay.example.com/{key}" }), "recovery/lookup/url: the look-up is at http://"},
		"a look-up of nothing":  {lookup(func(_ *dispatch.Definition, l *Lookup) { l.URL = "" }), "recovery/lookup/url: it is no URL"},
		"a look-up of no key":   {lookup(func(_ *dispatch.Definition, l *Lookup) { l.Header = "" }), "recovery/lookup/header: it is missing"},
		"no place in a look-up": {lookup(func(_ *dispatch.Definition, l *Lookup) { l.URL += "/{/notes}" }), "recovery/lookup/url: the schema has no property /notes"},
		"a long settle":         {lookup(func(d *dispatch.Definition, _ *Lookup) { d.Recovery.Settle = 24*3600_000 + 1 }), "recovery/lookup/settle: "},
		"words of nothing":      {lookup(func(_ *dispatch.Definition, l *Lookup) { l.Committed = []string{"done"} }), "recovery/lookup/state: it is missing"},
		"a state that is none":  {lookup(func(_ *dispatch.Definition, l *Lookup) { l.State, l.Committed = "state", []string{"done"} }), "recovery/lookup/state: "},
		"a state without words": {lookup(func(_ *dispatch.Definition, l *Lookup) { l.State = "/state" }), "recovery/lookup/committed: it is missing"},
		"a word for both": {lookup(func(_ *dispatch.Definition, l *Lookup) {
			l.State, l.Committed, l.Absent = "/state", []string{"done"}, []string{"done"}
		}), `recovery/lookup/absent/0: "done" cannot say`},
		"an empty word": {lookup(func(_ *dispatch.Definition, l *Lookup) { l.State, l.Committed = "/state", []string{""} }), "recovery/lookup/committed: an empty word"},
	} {
		t.Run(name, func(t *testing.T) {
			def := payment(t, "https://pay.example.com", c.edit)
			_, err := New(map[string]dispatch.Definition{"pay": def}, nil, Secrets{"pay": {"Authorization": secretToken}})
			require.ErrorContains(t, err, "tool pay: "+c.want)
			assert.NotContains(t, err.Error(), secretToken)
		})
	}

	read := order(t, "https://pay.example.com", func(d *dispatch.Definition, o *Outside) {
		d.Key, o.HTTP.Method, o.Recovery.Operator = "/id", "PUT", true
	})
	_, err := New(map[string]dispatch.Definition{"read": read}, nil, Secrets{"read": {"Authorization": "a\nb"}})
	assert.ErrorContains(t, err, "key: only a write has an idempotency key")
	assert.ErrorContains(t, err, `http/method: "PUT" is no method of a read; there is GET, HEAD or POST`)
	assert.ErrorContains(t, err, "recovery: a read changes nothing")
	assert.ErrorContains(t, err, "http/headers/Authorization: its value has a line break")

	unknown := payment(t, "https://pay.example.com", nil)
	unknown.Outside = ijson.Raw(`{"http":{"method":"POST","url":"https://pay.example.com/{/order_id}","retry":3}}`)
	_, err = New(map[string]dispatch.Definition{"pay": unknown}, nil, nil)
	assert.ErrorContains(t, err, "tool pay: http: at /http/retry")
	timed := dispatch.Definition{Version: "v1", Description: "Adds.", Local: "arithmetic", Effect: dispatch.Pure, Schema: ijson.Raw(`{}`),
		Limits: dispatch.ToolLimits{Time: 1}, Recovery: dispatch.Recovery{Retention: 1}}
	_, err = New(map[string]dispatch.Definition{"sum": timed}, nil, nil)
	assert.ErrorContains(t, err, "limits/time: only a call of a tool outside takes time")
	assert.ErrorContains(t, err, "recovery: only the outcome of a write outside")
}

func TestOutsideDefinitionsThatAreTaken(t *testing.T) {
	made := one(t, payment(t, "https://pay.example.com", nil)).Definition()
	assert.EqualValues(t, 10_000, made.Limits.Time)
	assert.Equal(t, 65536, made.Limits.OutputBytes)
	read := one(t, order(t, "https://pay.example.com", nil)).Definition()
	assert.Equal(t, dispatch.ByRule, read.Approval)
	deep := order(t, "https://pay.example.com", func(d *dispatch.Definition, o *Outside) {
		d.Effect, d.Approval, d.Drop = dispatch.Write, dispatch.ByRule, []string{"/timeout"}
		d.Schema = ijson.Raw(`{"type":"object","additionalProperties":false,"required":["in"],"properties":{"timeout":{},"in":{"type":"object","additionalProperties":false,"required":["id"],"properties":{"id":{"type":"integer"}}}}}`)
		o.HTTP.Method, o.HTTP.URL, o.Recovery = "DELETE", "https://pay.example.com/{/in/id}", OutsideRecovery{Operator: true}
	})
	one(t, deep)
}

// A secret that a header carries as another text could not be found in an answer that repeats it.
func TestSecretsAreSentAsTheyAre(t *testing.T) {
	for name, c := range map[string]struct {
		secret string
		right  bool
	}{
		"words":          {"one two three", true},
		"a blank before": {" " + secretToken, false},
		"a blank behind": {secretToken + " ", false},
		"blanks alone":   {"  ", false},
		"a letter":       {"café" + secretToken, false},
		"no UTF-8":       {"\xff" + secretToken, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(map[string]dispatch.Definition{"pay": payment(t, "https://pay.example.com", nil)}, nil, Secrets{"pay": {"Authorization": c.secret}})
			if c.right {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "http/headers/Authorization: what is secret of its value")
			assert.NotContains(t, err.Error(), secretToken)
		})
	}
}

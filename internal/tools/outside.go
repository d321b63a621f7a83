package tools

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/outbound"
)

// outside is a tool that is reached over HTTP.
type outside struct {
	definition dispatch.Definition
	arguments  *schema
	// output is nil for a tool that promises nothing of what it gives.
	output *schema
	http   HTTP
	url    template
	// networks and proxy are those of http.
	networks []netip.Prefix
	proxy    *url.URL
	// secrets are values of headers; hidden are the forms in which answers must not have them.
	secrets    map[string]string
	hidden     [][]byte
	keyHeaders []string
	send       send
	// simulated says that it is at an upstream in memory, and faults is nil outside scenarios and tests.
	simulated bool
	faults    *Faults
}

// send is what carries a request.
type send func(context.Context, outbound.Request) (outbound.Answer, error)

// finder is an outside tool that can be asked what became of a call.
type finder struct {
	outside
	lookup Lookup
	at     template
}

var (
	_ dispatch.Tool   = outside{}
	_ dispatch.Finder = finder{}
)

// outsideTool makes the tool of a definition that was checked.
func outsideTool(t outside, o Outside, secrets map[string]string) (dispatch.Tool, error) {
	var err error
	if t.url, err = parseTemplate(o.HTTP.URL); err != nil {
		return nil, err
	}
	if t.networks, _, err = parseNetworks(o.HTTP.Networks); err != nil {
		return nil, err
	}
	if o.HTTP.Proxy != "" {
		if t.proxy, err = url.Parse(o.HTTP.Proxy); err != nil {
			return nil, err
		}
	}
	t.http, t.secrets, t.hidden, t.keyHeaders, t.send = o.HTTP, secrets, hide(secrets), o.Recovery.keyHeaders(), outbound.Client{}.Do
	for name, h := range o.HTTP.Headers {
		if _, known := secrets[name]; h.secret() && !known {
			t.send = func(context.Context, outbound.Request) (outbound.Answer, error) {
				return outbound.Answer{}, &outbound.Error{Fault: outbound.Refused, Host: t.url.host, Detail: "there is no value for the header " + name}
			}
		}
	}
	if o.Recovery.Lookup == nil {
		return t, nil
	}
	at, err := parseTemplate(o.Recovery.Lookup.URL)
	return finder{t, *o.Recovery.Lookup, at}, err
}

func (t outside) Definition() dispatch.Definition { return t.definition }

func (t outside) Check(arguments ijson.Raw) []dispatch.Violation {
	if broken := t.arguments.check(arguments); broken != nil {
		return broken
	}
	return t.url.check(arguments)
}

func (t outside) Run(ctx context.Context, call dispatch.Call) dispatch.Outcome {
	ctx, cancel := context.WithTimeout(ctx, t.definition.Limits.Time.Duration())
	defer cancel()
	request, err := t.request(call)
	if err != nil {
		return t.unsent(dispatch.StatusUnavailable, false, t.says(err))
	}
	answer, err := t.faults.sending(t)(ctx, request)
	fault, _ := errors.AsType[*outbound.Error](err)
	if t.definition.Effect == dispatch.Write {
		return t.written(call, answer, fault)
	}
	return t.found(call, answer, fault)
}

// request is the one of a call. Of the arguments it sends those that stand in the URL and, in a body, all others but the key.
func (t outside) request(call dispatch.Call) (outbound.Request, error) {
	u, err := t.url.url(call.Arguments, "")
	if err != nil {
		return outbound.Request{}, err
	}
	if len(t.keyHeaders) > 0 && call.Sending.Key == "" {
		return outbound.Request{}, errors.New("a call that can be repeated or looked up needs a key")
	}
	r := t.to(t.http.Method, u, call.Sending.Key)
	r.Fence = call.Sending.Fence
	r.Wanted = func(status int) bool { return slices.Contains(t.http.Success, status) }
	if slices.Contains(bodied, t.http.Method) {
		r.Header.Set("Content-Type", jsonType)
		r.Body = without(call.Arguments, append(t.url.pointers(), t.definition.Key)...)
	}
	return r, nil
}

// to is a request to a URL of the tool, with its headers and, unless it is empty, the outward key.
func (t outside) to(method string, u *url.URL, key string) outbound.Request {
	header := http.Header{"Accept": t.http.ContentTypes}
	for name, h := range t.http.Headers {
		value := h.Value
		if h.secret() {
			value = h.Prefix + t.secrets[name]
		}
		header.Set(name, value)
	}
	if key != "" {
		for _, name := range t.keyHeaders {
			header.Set(name, key)
		}
	}
	return outbound.Request{Method: method, URL: u, Header: header, Networks: t.networks, Proxy: t.proxy, MostBytes: t.definition.Limits.OutputBytes}
}

// refused are the statuses that say that nothing of a write took place.
var refused = []int{400, 401, 403, 404, 405, 406, 410, 411, 413, 414, 415, 417, 422, 426, 428, 429, 431, 451}

// written says what is known of a write.
func (t outside) written(call dispatch.Call, answer outbound.Answer, fault *outbound.Error) dispatch.Outcome {
	switch {
	case !answer.Sent:
		return t.notSent(fault)
	case slices.Contains(t.http.Success, answer.Status):
		value, err := t.value(call, answer, fault)
		if err != nil {
			return dispatch.Outcome{Status: dispatch.StatusInvalidResult, Sent: true, State: dispatch.Committed, Ran: true, Detail: t.says(err)}
		}
		return dispatch.Outcome{Status: dispatch.StatusOK, Sent: true, State: dispatch.Committed, Ran: true, Value: value}
	case slices.Contains(refused, answer.Status):
		o := t.answered(answer.Status)
		o.State, o.Retryable = dispatch.Absent, answer.Status == http.StatusTooManyRequests
		if answer.Status == http.StatusNotFound {
			o.Status = dispatch.StatusNotFound
		}
		return o
	}
	o := t.answered(answer.Status)
	o.Status, o.State, o.Retryable = dispatch.StatusOutcomeUnknown, dispatch.Unknown, t.definition.Recovery.Retention > 0
	if fault != nil {
		o.Detail = t.says(fault)
	}
	return o
}

// found says what came of a read.
func (t outside) found(call dispatch.Call, answer outbound.Answer, fault *outbound.Error) dispatch.Outcome {
	switch {
	case fault != nil && fault.Fault != outbound.Unreadable:
		o := t.notSent(fault)
		o.Sent = answer.Sent
		return o
	case slices.Contains(t.http.Success, answer.Status):
		value, err := t.value(call, answer, fault)
		if err != nil {
			return dispatch.Outcome{Status: dispatch.StatusInvalidResult, Sent: true, Detail: t.says(err)}
		}
		return dispatch.Outcome{Status: dispatch.StatusOK, Sent: true, Ran: true, Value: value}
	}
	o := t.answered(answer.Status)
	switch answer.Status {
	case http.StatusNotFound, http.StatusGone:
		o.Status = dispatch.StatusNotFound
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		o.Retryable = true
	}
	return o
}

// value is what the caller gets of an answer that says it took place, or why there is none.
func (t outside) value(call dispatch.Call, answer outbound.Answer, fault *outbound.Error) (ijson.Raw, error) {
	if fault != nil {
		return nil, fault
	}
	value, contentType, err := t.read(answer)
	if err != nil {
		return nil, err
	}
	return t.wrap(call, answer.Status, contentType, value)
}

// answered is the outcome of a call that was answered with a status that does not say it took place.
func (t outside) answered(status int) dispatch.Outcome {
	o := dispatch.Outcome{Status: dispatch.StatusUnavailable, Sent: true}
	if status != 0 {
		o.Reasons = []dispatch.Reason{{Code: "upstream_status", Message: fmt.Sprintf("the tool answered %d", status)}}
	}
	return o
}

// notSent is the outcome of a call of which nothing was sent.
func (t outside) notSent(fault *outbound.Error) dispatch.Outcome {
	status := dispatch.StatusUnavailable
	if fault != nil && (fault.Fault == outbound.Deadline || fault.Fault == outbound.Fenced) {
		status = dispatch.StatusTimeout
	}
	if fault == nil {
		return t.unsent(status, true, "")
	}
	return t.unsent(status, true, t.says(fault))
}

func (t outside) unsent(status dispatch.Status, retryable bool, detail string) dispatch.Outcome {
	o := dispatch.Outcome{Status: status, Retryable: retryable, Detail: detail}
	if t.definition.Effect == dispatch.Write {
		o.State = dispatch.Absent
	}
	return o
}

func (t outside) says(err error) string { return t.definition.Name + ": " + err.Error() }

// Find asks the tool what became of a call.
func (t finder) Find(ctx context.Context, call dispatch.Call) dispatch.Finding {
	ctx, cancel := context.WithTimeout(ctx, t.definition.Limits.Time.Duration())
	defer cancel()
	unknown := func(err error) dispatch.Finding {
		return dispatch.Finding{State: dispatch.Unknown, Detail: t.says(err)}
	}
	u, err := t.at.url(call.Arguments, call.Sending.Key)
	if err == nil && call.Sending.Key == "" {
		err = errors.New("a call without a key cannot be looked up")
	}
	if err != nil {
		return unknown(err)
	}
	r := t.to(http.MethodGet, u, call.Sending.Key)
	r.Wanted = func(status int) bool { return status == http.StatusOK }
	answer, err := t.send(ctx, r)
	switch {
	case err != nil:
		return unknown(err)
	case answer.Status == http.StatusNotFound:
		return dispatch.Finding{State: dispatch.Absent}
	case answer.Status != http.StatusOK:
		return unknown(fmt.Errorf("the look-up was answered %d", answer.Status))
	}
	value, contentType, err := t.read(answer)
	if err != nil {
		return unknown(err)
	}
	if t.lookup.State != "" {
		word, _ := ijson.Lookup(value, t.lookup.State)
		state, _ := ijson.String(word)
		switch {
		case slices.Contains(t.lookup.Absent, state):
			return dispatch.Finding{State: dispatch.Absent}
		case !slices.Contains(t.lookup.Committed, state):
			return unknown(errors.New("the look-up gave no state that committed or absent has"))
		}
	}
	f := dispatch.Finding{State: dispatch.Committed}
	if f.Value, err = t.wrap(call, answer.Status, contentType, value); err != nil {
		f.Detail = t.says(err)
	}
	return f
}

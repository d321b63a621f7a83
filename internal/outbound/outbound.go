// Package outbound sends one HTTP request to one destination, once, and reads one bounded answer. It knows nothing of what
// the request is for.
//
// Nothing here sends again, follows a redirect, reuses a connection, takes a proxy from the environment or asks for a
// compressed answer. Errors name the host and what went wrong, and repeat nothing of the request or of the answer: a URL,
// a header or a body may hold what must not be seen.
package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/policy-dispatch/govern/internal/failpoint"
)

// mostHeaderBytes is the greatest length of an answer's headers, with those of what comes before it.
const mostHeaderBytes = 64 << 10

// Client is what requests have in common. The zero value trusts the authorities of the system and its names.
type Client struct {
	Roots    *x509.CertPool
	Resolver *net.Resolver
}

// Request is one request.
type Request struct {
	Method string
	URL    *url.URL
	Header http.Header
	// Body is sent if it is not empty.
	Body []byte
	// Networks may be reached though their addresses are not public.
	Networks []netip.Prefix
	// Proxy is asked to connect to the host of an https URL; nil means that none is.
	Proxy *url.URL
	// Wanted says of a status whether the body is to be read; nil wants each.
	Wanted func(status int) bool
	// MostBytes is the greatest length of the body.
	MostBytes int
	// Fence is asked directly before each time that bytes of the request are written. Its error forbids it.
	Fence func() error
}

// Answer is what is known of an answer, also if something went wrong.
type Answer struct {
	// Sent says that a byte of the request may have left this process. If it did not, none will: nothing begins to be written any
	// more once Do returns.
	Sent bool
	// Status is that of a header that came whole, else 0.
	Status int
	// ContentType and Body are of an answer that was wanted and came whole.
	ContentType string
	Body        []byte
}

// Do sends the request and reads the answer, until the context ends. Its errors are of type *Error.
func (c Client) Do(ctx context.Context, r Request) (Answer, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := &gate{fence: r.Fence}
	answer, fault := c.do(ctx, r, g)
	// The transport can return while it still writes.
	answer.Sent = g.shut()
	if fault == nil {
		return answer, nil
	}
	if g.forbidden() {
		fault = &Error{Fault: Fenced}
	} else if err := ctx.Err(); err != nil {
		fault = &Error{Fault: Cancelled}
		if errors.Is(err, context.DeadlineExceeded) {
			fault.Fault = Deadline
		}
	}
	fault.Host = r.URL.Host
	return answer, fault
}

func (c Client) do(ctx context.Context, r Request, g *gate) (Answer, *Error) {
	d := &dialer{ctx: ctx, client: c, request: r, gate: g}
	transport := &http.Transport{
		DialContext:    d.plain,
		DialTLSContext: d.secure,
		// What makes the transport send a request anew is a connection that was used before.
		DisableKeepAlives:      true,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{},
		DisableCompression:     true,
		MaxResponseHeaderBytes: mostHeaderBytes,
	}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(r.request(ctx))
	failpoint.Here("after the head of the answer")
	if err != nil {
		if fault := d.why(); fault != nil {
			return Answer{}, fault
		}
		return Answer{}, &Error{Fault: Broken, Detail: "the connection ended before a whole answer came, or the answer is no HTTP"}
	}
	defer response.Body.Close()
	return r.read(response)
}

// request makes one that the transport cannot send twice: it has no way to get the body anew.
func (r Request) request(ctx context.Context) *http.Request {
	header := r.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set("Accept-Encoding", "identity")
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", "govern")
	}
	out := (&http.Request{Method: r.Method, URL: r.URL, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: r.URL.Host}).WithContext(ctx)
	if len(r.Body) > 0 {
		out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(r.Body)), int64(len(r.Body))
	}
	return out
}

// read reads no more than one byte over the limit.
func (r Request) read(response *http.Response) (Answer, *Error) {
	answer := Answer{Status: response.StatusCode}
	if answer.Status < 200 {
		return Answer{}, &Error{Fault: Broken, Detail: "it answered to change the protocol"}
	}
	if r.Method == http.MethodHead || r.Wanted != nil && !r.Wanted(answer.Status) {
		return answer, nil
	}
	for _, coding := range response.Header.Values("Content-Encoding") {
		if !strings.EqualFold(strings.TrimSpace(coding), "identity") {
			return answer, &Error{Fault: Unreadable, Detail: "the answer is compressed, which was not asked for"}
		}
	}
	if response.ContentLength < 0 && !slices.Contains(response.TransferEncoding, "chunked") && r.URL.Scheme != "https" {
		return answer, &Error{Fault: Unreadable, Detail: "the answer does not say where it ends"}
	}
	if len(response.Header.Values("Content-Type")) > 1 {
		return answer, &Error{Fault: Unreadable, Detail: "the answer says twice of which type it is"}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, int64(r.MostBytes)+1))
	switch {
	case err != nil:
		return answer, &Error{Fault: Unreadable, Detail: "the connection ended before the whole answer came"}
	case len(body) > r.MostBytes:
		return answer, &Error{Fault: Unreadable, Detail: "the answer is longer than its limit"}
	}
	answer.ContentType, answer.Body = response.Header.Get("Content-Type"), body
	return answer, nil
}

// Fault is the kind of an error.
type Fault string

// The kinds of errors. The first three say that the request was not sent, and those after them leave it to Answer.Sent.
const (
	Refused    Fault = "refused"    // the destination is not to be reached
	Unreached  Fault = "unreached"  // there was no connection to it
	Fenced     Fault = "fenced"     // the fence forbade to send, or to go on
	Deadline   Fault = "deadline"   // the time was up
	Cancelled  Fault = "cancelled"  // nobody waits for it any more
	Broken     Fault = "broken"     // no header of an answer came whole
	Unreadable Fault = "unreadable" // a header came, and its body is not what was asked for
)

// Error says why there is no answer, or no body of one.
type Error struct {
	Fault Fault
	// Host is that of the URL, with its port if it has one.
	Host string
	// Detail explains it; nothing in it comes from the request or the answer.
	Detail string
}

func (e *Error) Error() string {
	what := map[Fault]string{Refused: "is not to be reached", Unreached: "could not be reached", Fenced: "was not called any further",
		Deadline: "took too long", Cancelled: "was not waited for", Broken: "gave no answer", Unreadable: "gave an answer that cannot be read"}[e.Fault]
	text := e.Host + " " + what
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

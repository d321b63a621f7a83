package outbound

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// loopback are the networks of the test's own servers.
var loopback = prefixes("127.0.0.0/8", "::1/128")

// raw is a server that reads whole requests, counts them, and says the bytes of its answer itself.
type raw struct {
	url         *url.URL
	connections atomic.Int64
	requests    atomic.Int64

	mu     sync.Mutex
	bodies []string
}

// serve answers each request with what answer writes; the connection ends when it says so.
func serve(t *testing.T, answer func(conn net.Conn, n int64) (more bool)) *raw {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &raw{url: &url.URL{Scheme: "http", Host: l.Addr().String(), Path: "/effect"}}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			wg.Go(func() {
				defer conn.Close()
				defer context.AfterFunc(ctx, func() { conn.Close() })()
				r := bufio.NewReader(conn)
				for {
					request, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					body, err := io.ReadAll(request.Body)
					if err != nil {
						return
					}
					s.mu.Lock()
					s.bodies = append(s.bodies, string(body))
					s.mu.Unlock()
					if !answer(conn, s.requests.Add(1)) {
						return
					}
				}
			})
		}
	})
	return s
}

// says is an answer of fixed bytes, after which the connection ends.
func says(text string) func(net.Conn, int64) bool {
	return func(conn net.Conn, _ int64) bool {
		io.WriteString(conn, text)
		return false
	}
}

func post(u *url.URL) Request {
	return Request{Method: http.MethodPost, URL: u, Header: http.Header{"Idempotency-Key": {"k"}, "X-Idempotency-Key": {"k"}, "Content-Type": {"application/json"}},
		Body: []byte(`{"amount":1}`), Networks: loopback, MostBytes: 1 << 10}
}

// do gives the answer and the error by its kind.
func do(t *testing.T, ctx context.Context, c Client, r Request) (Answer, *Error) {
	t.Helper()
	answer, err := c.Do(ctx, r)
	if err == nil {
		return answer, nil
	}
	require.IsType(t, &Error{}, err)
	return answer, err.(*Error)
}

func parsed(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

func networks(texts ...string) []netip.Prefix { return prefixes(texts...) }

package outbound

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var discard = log.New(io.Discard, "", 0)

// endless writes the same until nobody reads it any more, and says how much was taken.
func endless(first, again string, taken *atomic.Int64) func(net.Conn, int64) bool {
	return func(conn net.Conn, _ int64) bool {
		io.WriteString(conn, first)
		for {
			n, err := io.WriteString(conn, again)
			taken.Add(int64(n))
			if err != nil {
				return false
			}
		}
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name, answer string
		want         Fault
		status       int
	}{
		{"nothing", "", Broken, 0},
		{"HTTP/0.9", "{}", Broken, 0},
		{"another protocol", "SSH-2.0-OpenSSH_9.0\r\n", Broken, 0},
		{"half a header", "HTTP/1.1 200 OK\r\nContent-Le", Broken, 0},
		{"a header without a colon", "HTTP/1.1 200 OK\r\nsecret\r\n\r\n{}", Broken, 0},
		{"two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", Broken, 0},
		{"a negative length", head + "Content-Length: -2\r\n\r\n{}", Broken, 0},
		{"an unknown transfer coding", head + "Transfer-Encoding: gzip\r\n\r\n{}", Broken, 0},
		{"a change of protocol", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n{}", Broken, 0},
		{"a body that is cut", head + "Content-Length: 200\r\n\r\n{\"a\":1}", Unreadable, 200},
		{"chunks that are cut", head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", Unreadable, 200},
		{"chunks that are none", head + "Transfer-Encoding: chunked\r\n\r\nsecret\r\n{}\r\n", Unreadable, 200},
		{"no end", head + "\r\n{}", Unreadable, 200},
		{"longer than the limit", head + "Content-Length: 1025\r\n\r\n" + strings.Repeat("x", 1025), Unreadable, 200},
		{"chunks longer than the limit", head + "Transfer-Encoding: chunked\r\n\r\n401\r\n" + strings.Repeat("x", 1025) + "\r\n0\r\n\r\n", Unreadable, 200},
		{"compressed", head + "Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", Unreadable, 200},
		{"compressed after nothing", head + "Content-Encoding: identity\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\n{}", Unreadable, 200},
		{"two types", head + "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", Unreadable, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, says(c.answer))
			answer, fault := do(t, t.Context(), Client{}, post(s.url))
			require.NotNil(t, fault)
			assert.Equal(t, c.want, fault.Fault)
			assert.Equal(t, Answer{Sent: true, Status: c.status}, answer)
			assert.NotContains(t, fault.Error(), "secret")
			assert.EqualValues(t, 1, s.requests.Load())
		})
	}
}

func TestAnswersThatAreWhole(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for name, answer := range map[string]string{
		"a length":              head + "Content-Length: 2\r\n\r\n{}",
		"chunks":                head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"what comes behind":     head + "Content-Length: 2\r\n\r\n{}HTTP/1.1 500 No\r\n\r\n",
		"some words before":     "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + head + "Content-Length: 2\r\n\r\n{}",
		"as it is, and says so": head + "Content-Encoding: Identity\r\nContent-Length: 2\r\n\r\n{}",
	} {
		t.Run(name, func(t *testing.T) {
			answer, fault := do(t, t.Context(), Client{}, post(serve(t, says(answer)).url))
			require.Nil(t, fault)
			assert.Equal(t, Answer{Sent: true, Status: 200, ContentType: "application/json", Body: []byte("{}")}, answer)
		})
	}
}

// What goes on for ever is given up at its limit, long before the time is up.
func TestAnswersWithoutEnd(t *testing.T) {
	const kilobyte = 1 << 10
	pad := strings.Repeat("x", kilobyte)
	for name, c := range map[string]struct {
		first, again string
		want         Fault
	}{
		"a body":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "400\r\n" + pad + "\r\n", Unreadable},
		"headers":  {"HTTP/1.1 200 OK\r\n", "X-Pad: " + pad + "\r\n", Broken},
		"a header": {"HTTP/1.1 200 OK\r\nX-Pad: ", pad, Broken},
		"a status": {"HTTP/1.1 200 ", pad, Broken},
		"hints":    {"", "HTTP/1.1 103 Early Hints\r\n\r\n", Broken},
	} {
		t.Run(name, func(t *testing.T) {
			var taken atomic.Int64
			s := serve(t, endless(c.first, c.again, &taken))
			answer, fault := do(t, t.Context(), Client{}, post(s.url))
			require.NotNil(t, fault)
			assert.Equal(t, c.want, fault.Fault)
			assert.True(t, answer.Sent)
			assert.Empty(t, answer.Body)
			assert.Less(t, taken.Load(), int64(9<<20), "what the system keeps for a connection that nobody reads")
		})
	}
}

func TestAnswersThatDrip(t *testing.T) {
	for name, c := range map[string]struct {
		first  string
		status int
	}{"a header": {"HTTP/1.1 200 OK\r\nX-Drip: ", 0}, "a body": {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 200}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // the header has to come in time, on a busy machine too
			defer cancel()
			s := serve(t, func(conn net.Conn, _ int64) bool {
				io.WriteString(conn, c.first)
				for range time.Tick(20 * time.Millisecond) {
					if _, err := io.WriteString(conn, "x"); err != nil {
						return false
					}
				}
				return false
			})
			answer, fault := do(t, ctx, Client{}, post(s.url))
			require.NotNil(t, fault)
			assert.Equal(t, Deadline, fault.Fault)
			assert.Equal(t, Answer{Sent: true, Status: c.status}, answer)
		})
	}
}

// Of an answer that nobody wants the body is not waited for.
func TestBodiesThatAreNotWanted(t *testing.T) {
	s := serve(t, func(conn net.Conn, _ int64) bool {
		io.WriteString(conn, "HTTP/1.1 422 No\r\nContent-Length: 1000\r\n\r\n")
		io.Copy(io.Discard, conn)
		return false
	})
	r := post(s.url)
	r.Wanted = func(status int) bool { return status == 200 }
	answer, fault := do(t, t.Context(), Client{}, r)
	require.Nil(t, fault)
	assert.Equal(t, Answer{Sent: true, Status: 422}, answer)
}

func TestTheHeadOfAnAnswer(t *testing.T) {
	s := serve(t, says("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n"))
	r := post(s.url)
	r.Method, r.Body = http.MethodHead, nil
	answer, fault := do(t, t.Context(), Client{}, r)
	require.Nil(t, fault)
	assert.Equal(t, Answer{Sent: true, Status: 200}, answer)
}

// An answer that comes before the whole request was taken is an answer.
func TestAnEarlyAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		io.ReadFull(conn, make([]byte, 100))
		io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\n\r\n")
		io.Copy(io.Discard, conn)
	}()
	r := post(parsed(t, "http://"+l.Addr().String()))
	r.Body = []byte(strings.Repeat("x", 1<<20))
	answer, fault := do(t, t.Context(), Client{}, r)
	require.Nil(t, fault)
	assert.Equal(t, 413, answer.Status)
}

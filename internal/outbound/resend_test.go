package outbound

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const created = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

// actsAndHangsUp answers the first request and keeps the connection; every later one has its effect, and no answer.
func actsAndHangsUp(t *testing.T) *raw {
	return serve(t, func(conn net.Conn, n int64) bool {
		if n == 1 {
			io.WriteString(conn, created)
			return true
		}
		return false
	})
}

// The stock client sends a write again by itself, so the server below is one that a client can fail at.
func TestTheStockClientSendsTwice(t *testing.T) {
	s := actsAndHangsUp(t)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	send := func() error {
		r, err := http.NewRequest(http.MethodPost, s.url.String(), bytes.NewReader([]byte(`{"amount":1}`)))
		require.NoError(t, err)
		r.Header.Set("Idempotency-Key", "k")
		answer, err := client.Do(r)
		if err == nil {
			io.Copy(io.Discard, answer.Body)
			answer.Body.Close()
		}
		return err
	}
	require.NoError(t, send())
	assert.Error(t, send())
	assert.EqualValues(t, 3, s.requests.Load(), "two were sent, and one of them twice")
}

func TestNothingIsSentTwice(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodGet} {
		t.Run(method, func(t *testing.T) {
			s := actsAndHangsUp(t)
			r := post(s.url)
			r.Method = method
			var c Client
			answer, fault := do(t, t.Context(), c, r)
			require.Nil(t, fault)
			assert.Equal(t, 201, answer.Status)
			answer, fault = do(t, t.Context(), c, r)
			assert.Equal(t, Broken, fault.Fault)
			assert.Equal(t, Answer{Sent: true}, answer)
			assert.EqualValues(t, 2, s.requests.Load())
			assert.EqualValues(t, 2, s.connections.Load(), "no connection serves twice")
			assert.Equal(t, []string{`{"amount":1}`, `{"amount":1}`}, s.bodies)
		})
	}
}

// A server that offers HTTP/2, which sends again after GOAWAY, is spoken to in HTTP/1.1.
func TestNoOtherProtocol(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.Close, " ", r.Header.Get("Accept-Encoding"))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	answer, fault := do(t, t.Context(), trusting(s), post(parsed(t, s.URL)))
	require.Nil(t, fault)
	assert.Equal(t, "HTTP/1.1 true identity", string(answer.Body))
}

// Whatever would have the transport connect again meets a dialer that connects once.
func TestOneConnection(t *testing.T) {
	s := serve(t, says(created))
	d := &dialer{ctx: t.Context(), request: post(s.url), gate: &gate{}}
	conn, err := d.plain(t.Context(), "tcp", s.url.Host)
	require.NoError(t, err)
	defer conn.Close()
	_, err = d.plain(t.Context(), "tcp", s.url.Host)
	assert.Equal(t, errDialled, err)
}

// The transport may still write when the call has ended; what was said of it then stays true.
func TestNothingPassesAShutGate(t *testing.T) {
	here, there := net.Pipe()
	defer there.Close()
	g := &gate{}
	assert.False(t, g.shut())
	_, err := gated{here, g}.Write([]byte("late"))
	assert.Equal(t, errGate, err)
	assert.False(t, g.shut())
}

// Once the fence forbade it, it is not asked again.
func TestAFenceThatForbadeStaysShut(t *testing.T) {
	asked := 0
	g := &gate{fence: func() error { asked++; return errors.New("too late") }}
	assert.Error(t, g.pass())
	g.fence = func() error { return nil }
	assert.Error(t, g.pass())
	assert.True(t, g.forbidden())
	assert.Equal(t, 1, asked)
}

package outbound

import (
	"errors"
	"net"
	"sync"

	"github.com/policy-dispatch/govern/internal/failpoint"
)

// gate stands before the connection that a request is written to, above TLS: what passes it are bytes of the request.
type gate struct {
	fence func() error

	mu     sync.Mutex
	sent   bool // a byte may have been sent
	closed bool
	no     bool // the fence forbade it
}

var errGate = errors.New("the request may not be written")

// pass asks whether bytes may be written now. Once they may they count as sent.
func (g *gate) pass() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.no {
		return errGate
	}
	if g.fence != nil && g.fence() != nil {
		g.no = true
		return errGate
	}
	if !g.sent {
		failpoint.Here("before the first byte")
	}
	g.sent = true
	return nil
}

// shut lets nothing pass any more, and says whether anything may have been sent.
func (g *gate) shut() (sent bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return g.sent
}

func (g *gate) forbidden() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.no
}

// gated is a connection behind its gate.
type gated struct {
	net.Conn
	gate *gate
}

func (c gated) Write(b []byte) (int, error) {
	if err := c.gate.pass(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	failpoint.Here("after bytes of the request")
	return n, err
}

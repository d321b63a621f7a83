package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
)

// dialer makes the one connection of a request.
type dialer struct {
	// ctx ends with the call; that which the transport gives its hooks need not.
	ctx     context.Context
	client  Client
	request Request
	gate    *gate

	once sync.Once
	mu   sync.Mutex
	// fault is why there is none.
	fault *Error
}

// errDialled keeps the transport from trying again, for whatever reason it would.
var errDialled = errors.New("there was a connection already")

// plain is the transport's hook for an http URL, and secure that for an https one.
func (d *dialer) plain(_ context.Context, _, address string) (net.Conn, error) {
	return d.dial(func() (net.Conn, error) { return d.connect(address) })
}

func (d *dialer) secure(_ context.Context, _, address string) (net.Conn, error) {
	return d.dial(func() (net.Conn, error) {
		conn, err := d.connect(address)
		if err != nil {
			return nil, err
		}
		config := &tls.Config{ServerName: d.request.URL.Hostname(), RootCAs: d.client.Roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
		secured := tls.Client(conn, config)
		if err := secured.HandshakeContext(d.ctx); err != nil {
			conn.Close()
			return nil, fmt.Errorf("%w: %w", errTLS, err)
		}
		return secured, nil
	})
}

func (d *dialer) dial(connect func() (net.Conn, error)) (conn net.Conn, err error) {
	err = errDialled
	d.once.Do(func() { conn, err = connect() })
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.fault == nil {
			d.fault = faultOf(err)
		}
		return nil, err
	}
	return gated{conn, d.gate}, nil
}

// why gives the reason that there is no connection, or nil.
func (d *dialer) why() *Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fault
}

// connect opens a connection to an address, or to the proxy and asks it to.
func (d *dialer) connect(address string) (net.Conn, error) {
	proxy := d.request.Proxy
	at := address
	if proxy != nil {
		at = hostPort(proxy)
	}
	nd := net.Dialer{Resolver: d.client.Resolver, ControlContext: d.control}
	conn, err := nd.DialContext(d.ctx, "tcp", at)
	if err != nil || proxy == nil {
		return conn, err
	}
	if err := tunnel(d.ctx, conn, address); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// control sees each address that a name led to directly before it is connected to.
func (d *dialer) control(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return &refusedError{fmt.Errorf("%s is no network to call on", network)}
	}
	at, err := netip.ParseAddrPort(address)
	if err == nil {
		err = CheckAddress(at.Addr(), d.request.Networks)
	}
	if err != nil {
		return &refusedError{err}
	}
	return nil
}

// refusedError says that an address is not to be reached.
type refusedError struct{ error }

// hostPort is what to connect to for a URL.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// tunnel asks a proxy to connect to an address. TLS begins behind it, so the proxy sees nothing of the request.
func tunnel(ctx context.Context, conn net.Conn, address string) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	ask := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{"User-Agent": {"govern"}}}
	if err := ask.Write(conn); err != nil {
		return err
	}
	limited := &io.LimitedReader{R: conn, N: mostHeaderBytes}
	buffered := bufio.NewReader(limited)
	answer, err := http.ReadResponse(buffered, ask)
	if err != nil {
		return errProxy
	}
	if answer.StatusCode != http.StatusOK || buffered.Buffered() > 0 {
		return errProxy
	}
	return nil
}

var (
	errProxy = errors.New("the proxy does not connect to it")
	errTLS   = errors.New("it does not speak TLS as it has to")
)

// faultOf gives what kept a connection from being made our own words: what the net package says can repeat much.
func faultOf(err error) *Error {
	if e, ok := errors.AsType[*refusedError](err); ok {
		return &Error{Fault: Refused, Detail: e.Error()}
	}
	fault := &Error{Fault: Unreached, Detail: "there was no connection"}
	switch {
	case errors.Is(err, errProxy):
		fault.Detail = errProxy.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		fault.Detail = "the connection was refused"
	case is[*net.DNSError](err):
		fault.Detail = "its name leads to no address"
	case is[*tls.CertificateVerificationError](err), is[x509.HostnameError](err):
		fault.Detail = "its certificate is not one that is trusted for this name"
	case errors.Is(err, errTLS):
		fault.Detail = errTLS.Error()
	}
	return fault
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// trusting is a client that trusts a test's server.
func trusting(s *httptest.Server) Client {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return Client{Roots: roots}
}

func TestPrivateAddressesAreNotReached(t *testing.T) {
	s := serve(t, says(created))
	r := post(s.url)
	for _, listed := range [][]netip.Prefix{nil, networks("10.0.0.0/8"), networks("127.0.0.2/32")} {
		r.Networks = listed
		answer, fault := do(t, t.Context(), Client{}, r)
		require.NotNil(t, fault)
		assert.Equal(t, Refused, fault.Fault)
		assert.Contains(t, fault.Error(), "127.0.0.1 is a loopback address")
		assert.Equal(t, Answer{}, answer)
	}
	assert.Zero(t, s.connections.Load())
}

// names is a name server that gives every name the same addresses.
func names(t *testing.T, addresses ...string) *net.Resolver {
	t.Helper()
	l, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		b := make([]byte, 512)
		for {
			_, from, err := l.ReadFrom(b)
			if err != nil {
				return
			}
			end := 12
			for b[end] != 0 {
				end += 1 + int(b[end])
			}
			question := b[12 : end+5]
			out := append([]byte{b[0], b[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
			for _, a := range addresses {
				a := netip.MustParseAddr(a)
				kind, bytes := byte(1), a.AsSlice()
				if a.Is6() {
					kind = 28
				}
				if question[len(question)-3] == kind {
					out[7]++
					out = append(append(out, 0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0, byte(len(bytes))), bytes...)
				}
			}
			l.WriteTo(out, from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", l.LocalAddr().String())
	}}
}

// What counts is the address that a name leads to when it is connected to.
func TestNamesThatLeadToPrivateAddresses(t *testing.T) {
	s := serve(t, says(created))
	_, port, _ := net.SplitHostPort(s.url.Host)
	r := post(parsed(t, "http://pay.example.com:"+port+"/effect"))
	for _, c := range []struct {
		addresses []string
		listed    []netip.Prefix
		reached   bool
	}{
		{[]string{"127.0.0.1"}, nil, false},
		{[]string{"127.0.0.1"}, loopback, true},
		{[]string{"169.254.169.254", "10.0.0.1", "::1", "64:ff9b::7f00:1"}, nil, false},
		{[]string{"169.254.169.254", "127.0.0.1"}, loopback, true}, // each is checked, and one may be reached
		{[]string{"169.254.169.254", "10.0.0.1"}, loopback, false},
	} {
		r.Networks = c.listed
		answer, fault := do(t, t.Context(), Client{Resolver: names(t, c.addresses...)}, r)
		if c.reached {
			require.Nil(t, fault, "%v", c.addresses)
			assert.Equal(t, 201, answer.Status)
			continue
		}
		require.NotNil(t, fault, "%v", c.addresses)
		assert.Equal(t, Refused, fault.Fault)
		assert.False(t, answer.Sent)
		assert.Equal(t, "pay.example.com:"+port, fault.Host)
	}
	assert.EqualValues(t, 2, s.connections.Load())
}

func TestNoRedirectIsFollowed(t *testing.T) {
	other := serve(t, says(created))
	for _, to := range []string{"http://169.254.169.254/latest/meta-data/", other.url.String(), "/elsewhere"} {
		for _, status := range []string{"301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"} {
			s := serve(t, says("HTTP/1.1 "+status+"\r\nLocation: "+to+"\r\nContent-Length: 0\r\n\r\n"))
			r := post(s.url)
			r.Networks = networks("127.0.0.0/8", "169.254.0.0/16")
			r.Method = http.MethodGet
			answer, fault := do(t, t.Context(), Client{}, r)
			require.Nil(t, fault)
			assert.Equal(t, status, fmt.Sprint(answer.Status, " ", http.StatusText(answer.Status)))
			assert.EqualValues(t, 1, s.connections.Load())
		}
	}
	assert.Zero(t, other.connections.Load())
}

func TestNoProxyOfTheEnvironment(t *testing.T) {
	proxy := serve(t, says(created))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.url.String())
	}
	s := serve(t, says(created))
	// The address is not one that http.ProxyFromEnvironment leaves out by itself.
	_, port, _ := net.SplitHostPort(s.url.Host)
	_, fault := do(t, t.Context(), Client{Resolver: names(t, "127.0.0.1")}, post(parsed(t, "http://pay.example.com:"+port)))
	require.Nil(t, fault)
	assert.Zero(t, proxy.connections.Load())
}

// A proxy that is stated carries the encrypted connection, and sees nothing of the request.
func TestAProxyThatIsStated(t *testing.T) {
	var asked atomic.Value
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Idempotency-Key")) }))
	defer upstream.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.Method + " " + r.Host)
		if len(r.Header.Values("Idempotency-Key"))+len(r.Header.Values("Authorization")) > 0 {
			t.Error("the proxy sees the request's headers")
		}
		if r.Host == "refused.example.com:443" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		there, err := net.Dial("tcp", upstream.Listener.Addr().String())
		if err != nil {
			t.Error(err)
			return
		}
		here, _, _ := w.(http.Hijacker).Hijack()
		io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { io.Copy(there, here); there.Close() }()
		go func() { io.Copy(here, there); here.Close() }()
	}))
	defer proxy.Close()
	r := post(parsed(t, "https://example.com/effect")) // the name that the test's certificate has
	r.Proxy = parsed(t, proxy.URL)
	answer, fault := do(t, t.Context(), trusting(upstream), r)
	require.Nil(t, fault)
	assert.Equal(t, "k", string(answer.Body))
	assert.Equal(t, "CONNECT example.com:443", asked.Load())

	r.URL = parsed(t, "https://refused.example.com/effect")
	answer, fault = do(t, t.Context(), trusting(upstream), r)
	require.NotNil(t, fault)
	assert.Equal(t, Unreached, fault.Fault)
	assert.False(t, answer.Sent)

	r.Networks = nil
	_, fault = do(t, t.Context(), trusting(upstream), r)
	require.NotNil(t, fault)
	assert.Equal(t, Refused, fault.Fault, "the proxy's address is checked like any other")
}

// What keeps a connection from being made keeps anything from being sent.
func TestNothingIsSent(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	secure.Config.ErrorLog = discard
	defer secure.Close()
	plain := serve(t, says(created))
	old := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11}
	old.Config.ErrorLog = discard
	old.StartTLS()
	defer old.Close()
	for _, c := range []struct {
		name, url, says string
		client          Client
		want            Fault
	}{
		{"refused", "http://" + closed.Addr().String(), "the connection was refused", Client{}, Unreached},
		{"no such name", "http://pay.example.com:1", "its name leads to no address", Client{Resolver: names(t)}, Unreached},
		{"a certificate of nobody", secure.URL, "not one that is trusted", Client{}, Unreached},
		{"a certificate for another name", strings.Replace(secure.URL, "127.0.0.1", "pay.example.org", 1), "not one that is trusted",
			Client{Roots: trusting(secure).Roots, Resolver: names(t, "127.0.0.1")}, Unreached},
		{"no TLS", "https://" + plain.url.Host, "does not speak TLS", Client{}, Unreached},
		{"old TLS", old.URL, "does not speak TLS", trusting(old), Unreached},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := parsed(t, c.url+"/secret-path?note=secret")
			r := post(u)
			r.Header.Set("Authorization", "Bearer secret")
			answer, fault := do(t, t.Context(), c.client, r)
			require.NotNil(t, fault)
			assert.Equal(t, c.want, fault.Fault)
			assert.Equal(t, Answer{}, answer)
			assert.NotContains(t, fault.Error(), "secret")
			assert.Contains(t, fault.Error(), c.says)
			assert.True(t, strings.HasPrefix(fault.Error(), u.Host+" "), fault.Error())
		})
	}
	assert.Zero(t, plain.requests.Load())
}

func TestTheFence(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	secure.Config.ErrorLog = discard
	defer secure.Close()
	plain := serve(t, says(created))
	for _, c := range []struct {
		name string
		r    Request
	}{{"plain", post(plain.url)}, {"secure", post(parsed(t, secure.URL))}} {
		t.Run(c.name, func(t *testing.T) {
			r := c.r
			asked := 0
			r.Fence = func() error { asked++; return errors.New("too late") }
			answer, fault := do(t, t.Context(), trusting(secure), r)
			require.NotNil(t, fault)
			assert.Equal(t, Fenced, fault.Fault)
			assert.Equal(t, Answer{}, answer, "a handshake is no call")
			assert.Equal(t, 1, asked)

			// A body of several writes is given up between two of them.
			r.Body, asked = []byte(strings.Repeat("x", 1<<20)), 0
			r.Fence = func() error {
				if asked++; asked > 1 {
					return errors.New("too late")
				}
				return nil
			}
			answer, fault = do(t, t.Context(), trusting(secure), r)
			require.NotNil(t, fault)
			assert.Equal(t, Fenced, fault.Fault)
			assert.Equal(t, Answer{Sent: true}, answer)
			assert.Equal(t, 2, asked)
		})
	}
	assert.Zero(t, plain.requests.Load(), "no whole request came")
}

// The time counts from the start: for the name, the connection, TLS, the header and the body alike.
func TestTheDeadline(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r := post(parsed(t, "https://"+silent.Addr().String()))
	answer, fault := do(t, ctx, Client{}, r)
	require.NotNil(t, fault)
	assert.Equal(t, Deadline, fault.Fault)
	assert.Equal(t, Answer{}, answer)

	proxied, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	r.Proxy = parsed(t, "http://"+silent.Addr().String())
	answer, fault = do(t, proxied, Client{}, r)
	require.NotNil(t, fault)
	assert.Equal(t, Deadline, fault.Fault)
	assert.Equal(t, Answer{}, answer)

	for range 2 {
		conn, err := silent.Accept()
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
		_, err = io.Copy(io.Discard, conn)
		assert.NoError(t, err, "no connection is left open")
		conn.Close()
	}

	ended, end := context.WithCancel(t.Context())
	end()
	s := serve(t, says(created))
	answer, fault = do(t, ended, Client{}, post(s.url))
	require.NotNil(t, fault)
	assert.Equal(t, Cancelled, fault.Fault)
	assert.Equal(t, Answer{}, answer)
	assert.Zero(t, s.requests.Load())
}

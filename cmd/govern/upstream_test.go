//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A tool outside of govern that writes down what really reached it.

// way is how it behaves.
type way string

const (
	answers way = "answers"
	hangsUp way = "acts and hangs up"
	refuses way = "answers 422"
	breaks  way = "acts and answers 500"
	tooSlow way = "acts and does not answer in time"
	holds   way = "acts and answers once it is released"
)

// open says that whoever called cannot know what came of it.
func (w way) open() bool { return w == hangsUp || w == breaks || w == tooSlow || w == holds }

// received is a request as it came.
type received struct {
	method, path, key, body string
	way                     way
	// acted says that it had an effect.
	acted bool
	// unstarted says that more requests had come than calls were on record as started.
	unstarted bool
}

// upstream is asked by the processes of many folders: each says in a header which is its own.
type upstream struct {
	url string

	mu      sync.Mutex
	folders map[string]*ledger
	open    map[net.Conn]bool
}

// folderEnv is the environment variable that has the header's value.
const folderEnv = "TEST_FOLDER"

// ledger is what came from one folder, and what was done.
type ledger struct {
	mu      sync.Mutex
	way     way
	arrived int
	got     []received
	lookups int
	// paid has the ids of payments, by the keys that came with them.
	paid map[string]string
	// came and closed tell of each request that is held, and release lets them go.
	came, closed, release chan struct{}
}

func newUpstream(t testing.TB) *upstream {
	t.Helper()
	u := &upstream{folders: map[string]*ledger{}, open: map[net.Conn]bool{}}
	s := httptest.NewUnstartedServer(u)
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		u.mu.Lock()
		defer u.mu.Unlock()
		if state == http.StateClosed {
			delete(u.open, c)
		} else {
			u.open[c] = true
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	u.url = s.URL
	return u
}

func (u *upstream) of(dir string) *ledger {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.folders[dir]
	if l == nil {
		l = &ledger{way: answers, paid: map[string]string{}, came: make(chan struct{}, 100), closed: make(chan struct{}, 100), release: make(chan struct{})}
		u.folders[dir] = l
	}
	return l
}

// quiet waits until nothing is on its way any more that processes sent which have ended.
func (u *upstream) quiet(t testing.TB) {
	t.Helper()
	// Connections are accepted in their order.
	c, err := net.Dial("tcp", strings.TrimPrefix(u.url, "http://"))
	require.NoError(t, err)
	_, err = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	require.NoError(t, err)
	_, err = io.ReadAll(c)
	require.NoError(t, err)
	c.Close()
	u.mu.Lock()
	var before []net.Conn
	for c := range u.open {
		before = append(before, c)
	}
	u.mu.Unlock()
	require.Eventually(t, func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		for _, c := range before {
			if u.open[c] {
				return false
			}
		}
		return true
	}, patience, time.Millisecond)
}

func (l *ledger) behave(w way) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.way = w
}

// requests are those that came so far, in their order. Look-ups are none.
func (l *ledger) requests() []received {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]received(nil), l.got...)
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dir := r.Header.Get("X-Folder")
	if dir == "" {
		return
	}
	l := u.of(dir)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it did not come whole
	}
	tool, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if r.Method == http.MethodGet && strings.HasPrefix(tool, "pay") {
		l.mu.Lock()
		l.lookups++
		id := l.paid[rest]
		l.mu.Unlock()
		tell(w, id)
		return
	}
	got := received{method: r.Method, path: r.URL.Path, key: r.Header.Get("Idempotency-Key"), body: string(body)}
	id := l.take(&got, filepath.Join(dir, "govern.db"))
	switch got.way {
	case hangsUp:
		panic(http.ErrAbortHandler)
	case tooSlow:
		<-r.Context().Done()
	case holds:
		l.came <- struct{}{}
		select {
		case <-l.release:
			tell(w, id)
		case <-r.Context().Done():
			l.closed <- struct{}{}
		}
	case refuses:
		w.WriteHeader(http.StatusUnprocessableEntity)
	case breaks:
		w.WriteHeader(http.StatusInternalServerError)
	default:
		tell(w, id)
	}
}

// take writes a request down and does what it asks for, unless that is refused, or done already and remembered.
func (l *ledger) take(r *received, state string) (id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.arrived++
	started, err := startedIn(state)
	r.way, r.unstarted = l.way, err != nil || l.arrived > started
	id = l.paid[r.key]
	switch {
	case r.method == http.MethodGet:
		id = "balance"
	case r.way == refuses:
	case id != "" && strings.HasPrefix(r.path, "/pay_"+byKey):
		r.way = answers
	default:
		r.acted = true
		id = fmt.Sprint("p-", len(l.got))
		if r.key != "" {
			l.paid[r.key] = id
		}
	}
	l.got = append(l.got, *r)
	return id
}

func tell(w http.ResponseWriter, id string) {
	if id == "" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":%q}`, id)
}

// How the outcome of a payment is found out.
const (
	byKey      = "idempotency"
	byLookup   = "lookup"
	byOperator = "operator"
)

var recoveries = []string{byKey, byLookup, byOperator}

// settleTime is that of the tool that can be asked.
const settleTime = time.Second

func recoveryOf(kind, url string) string {
	switch kind {
	case byKey:
		return "{idempotency: {header: Idempotency-Key, retention: 24h}}"
	case byLookup:
		return fmt.Sprintf("{lookup: {url: %q, header: Idempotency-Key, settle: %s}}", url+"/{key}", settleTime)
	default:
		return "{operator: true}"
	}
}

// home is a folder whose tools are the upstream's: payments of each kind of recovery, approved always or by rule, with a key or
// without, and balances. Its state is there already.
func (u *upstream) home(t testing.TB, limit time.Duration, edits ...string) home {
	t.Helper()
	h := newHome(t)
	h.write("config.yaml", strings.NewReplacer(edits...).Replace(u.config(limit)))
	h.write("warm.json", add("warm")+"\n")
	a := h.govern("run", "warm.json")
	require.Zero(t, a.code, a.stderr)
	return h
}

func (u *upstream) config(limit time.Duration) string {
	names := []string{"calculate"}
	var tools strings.Builder
	define := func(name, effect, approval, http, properties, more string) {
		names = append(names, name)
		fmt.Fprintf(&tools, `  %s:
    version: v1
    description: A tool outside.
    schema: {type: object, additionalProperties: false, required: [%s], properties: {account: {type: string}, request_id: {type: string}}}
    effect: %s
    approval: %s
    scopes: ["write:draft"]
    cost: 3
    http: {%s, networks: ["127.0.0.0/8"], headers: {X-Folder: {env: %s}}}
    limits: {time: %s}
%s`, name, properties, effect, approval, http, folderEnv, limit, more)
	}
	payment := func(name, kind, approval, properties, key string) {
		url := u.url + "/" + name
		define(name, "write", approval, fmt.Sprintf("method: POST, url: %q", url), properties, "    recovery: "+recoveryOf(kind, url)+"\n"+key)
	}
	for _, kind := range recoveries {
		for _, approval := range []string{"always", "by_rule"} {
			payment("pay_"+kind+"_"+approval, kind, approval, "account, request_id", "    key: /request_id\n")
		}
		payment("pay_"+kind+withoutKey, kind, "by_rule", "account", "")
	}
	for _, approval := range []string{"always", "by_rule"} {
		name := "balance_" + approval
		define(name, "read", approval, fmt.Sprintf("method: GET, url: %q", u.url+"/"+name+"/{/account}?request_id={/request_id}"), "account", "")
	}
	tools.WriteString(sums)
	return strings.Replace(roomy, "tools: [read_document, calculate, record_draft]", "tools: ["+strings.Join(names, ", ")+"]", 1) + "tools:\n" + tools.String()
}

// withoutKey ends the names of payments without a key.
const withoutKey = "_keyless"

// sums is a tool that is not outside.
const sums = `  calculate:
    version: v1
    description: Adds.
    local: arithmetic
    effect: pure
    schema:
      type: object
      additionalProperties: false
      required: [op, a, b]
      properties: {op: {enum: [add, subtract, multiply]}, a: {type: integer, minimum: -1000, maximum: 1000}, b: {type: integer, minimum: -1000, maximum: 1000}}
`

// pay is a call of a payment, or of a balance; without a key it has none.
func pay(id, tool, account, key string) string {
	arguments := map[string]any{"account": account}
	if key != "" {
		arguments["request_id"] = key
	}
	return call(id, tool, arguments)
}

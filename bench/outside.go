package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/policy-dispatch/govern/internal/config"
	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
	"github.com/policy-dispatch/govern/internal/sqlite"
)

// outside compares a dispatched write of a tool outside, with its two commits, with the request alone: on a connection of its
// own, as each has, to a service on this machine that answers at once, and to one that takes as long as services do.
var outside = subject{
	specs: []spec{
		{"outside/bare", "a dispatched write outside over the bare request, to a service that answers at once", 10, atMost, ""},
		{"outside/20ms", "the same, to a service that takes 20 ms", 1.15, atMost, ""},
	},
	open: func(ctx context.Context, e *env) ([]duel, error) {
		var duels []duel
		for i, takes := range []time.Duration{0, 20 * time.Millisecond} {
			url, err := serve(e, takes)
			if err != nil {
				return nil, err
			}
			d, err := outsideDuel(ctx, e, fmt.Sprint("outside-", i), url, e.size(int(200/(1+takes.Milliseconds()/5)), 3))
			if err != nil {
				return nil, err
			}
			duels = append(duels, d)
		}
		return duels, nil
	},
}

// serve starts a service that answers every request the same, after some time.
func serve(e *env, takes time.Duration) (url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(takes)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"p-1"}`)
	}), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	e.later(server.Close)
	return "http://" + listener.Addr().String() + "/payments", nil
}

func outsideDuel(ctx context.Context, e *env, name string, url string, n int) (duel, error) {
	_, made, err := shipped(ctx, func(c *config.Config) {
		c.Tools = map[string]config.Tool{"pay": {
			Version: "v1", Description: "Pays.", Effect: "write", Approval: "by_rule", Scopes: []string{}, Key: "/request",
			Schema:   &config.Part{JSON: ijson.Raw(`{"type":"object","properties":{"request":{"type":"string"}},"required":["request"],"additionalProperties":false}`)},
			HTTP:     &config.HTTP{Method: http.MethodPost, URL: url, Networks: []string{"127.0.0.0/8"}},
			Recovery: &config.Recovery{Idempotency: &config.Idempotency{Header: "Idempotency-Key", Retention: "24h"}},
		}}
		p := c.Profiles[profile]
		p.Tools = []string{"pay"}
		c.Profiles[profile] = p
	})
	if err != nil {
		return duel{}, err
	}
	s, err := newState(ctx, e, name, func(store *sqlite.Store) error { return newGate(store, made.Snapshot).create(ctx, "pays") })
	if err != nil {
		return duel{}, err
	}
	plan := func(_, n int) []work {
		all := make([]work, n)
		for i := range all {
			all[i] = work{"pays", payment(), dispatch.StatusOK}
		}
		return all
	}
	return duel{s.dispatches(made.Snapshot, 1, n, plan), request(url, n)}, nil
}

func payment() string { return call("pay", map[string]any{"request": name('r')}) }

// request is the same call as anybody sends it.
func request(url string, n int) side {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	post := func(ctx context.Context) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader([]byte("{}")))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(answer.Body)
		if !slices.Equal(body, []byte(`{"id":"p-1"}`)) {
			err = errors.Join(err, errors.New("the wrong answer"))
		}
		return errors.Join(err, answer.Body.Close())
	}
	return func(ctx context.Context) (float64, error) {
		return serial(n, func(int) error { return post(ctx) })
	}
}

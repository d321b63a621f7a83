package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// Publisher writes the checkpoints of a log to where they are kept. A checkpoint never goes backwards: what a file holds is
// replaced only by one of a log that has grown from it.
type Publisher struct {
	Log  merkle.Log
	Keys func(context.Context) (Keys, error)
	// Hold keeps everybody else from writing files of this log until release is called.
	Hold    func(context.Context) (release func(), err error)
	Targets []Target
	// TokenFile holds the bearer token for URLs; empty means none.
	TokenFile string

	// put has for each URL what it was given last.
	put map[string]sent
}

type sent struct {
	Checkpoint
	signed []byte
}

// ErrCut and ErrForked say that a log does not continue one that somebody kept a checkpoint of.
var (
	ErrCut    = errors.New("the log was cut or replaced: a checkpoint has more entries than it")
	ErrForked = errors.New("the log was changed or replaced: it is another than the one of the checkpoint")
)

// Continues gives ErrCut or ErrForked unless the log begins with the log of a checkpoint. That is proven, against the head
// that the log has now: to find the old root among the hashes of the tree would not tie it to what the log is.
func Continues(ctx context.Context, log merkle.Log, c Checkpoint) error {
	now, err := log.Head(ctx)
	if err != nil {
		return err
	}
	if c.Size > now.Size {
		return fmt.Errorf("%w (%d, and the log has %d)", ErrCut, c.Size, now.Size)
	}
	hashes, err := merkle.ProveTree(ctx, log, c.Size, now.Size)
	if err == nil && merkle.CheckTree(hashes, now, c.Head) != nil {
		err = fmt.Errorf("%w (%d entries)", ErrForked, c.Size)
	}
	return err
}

// Fresh signs a checkpoint of the log as it is.
func Fresh(ctx context.Context, log merkle.Log, keys Keys) (Checkpoint, []byte, error) {
	head, err := log.Head(ctx)
	if err != nil {
		return Checkpoint{}, nil, err
	}
	c := Checkpoint{Origin: keys.Origin(), Head: head}
	signed, err := Sign(c, keys.Signers...)
	return c, signed, err
}

// Check refuses a log that does not continue what its files hold, signed by who is trusted. A file that is not there says
// nothing.
func (p *Publisher) Check(ctx context.Context, trusted func(context.Context) ([]Verifier, error)) error {
	for _, t := range p.Targets {
		if t.url != nil {
			continue
		}
		signed, found, err := t.read()
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		keys, err := trusted(ctx)
		if err != nil {
			return fmt.Errorf("the checkpoint %s cannot be checked: %w", t, err)
		}
		if err := p.check(ctx, signed, keys); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	return nil
}

// ErrTokenInTheOpen says that a token would be sent where others can read it.
var ErrTokenInTheOpen = errors.New("a token is sent over https alone, or to this machine; write https:// or leave log.checkpoint_token_file out")

// KeptError says that the log does not continue what a target has. Who meets it says which target that is.
type KeptError struct{ err error }

func (e *KeptError) Error() string { return e.err.Error() }
func (e *KeptError) Unwrap() error { return e.err }

// Remedy is what a person can do.
func (e *KeptError) Remedy() string {
	return "put back the newest state; or, if the state that is here is what is meant, move the checkpoint aside, where an auditor finds it"
}

// check gives a *KeptError unless a file holds a checkpoint that the log continues.
func (p *Publisher) check(ctx context.Context, signed []byte, trusted []Verifier) error {
	c, err := Open(signed, trusted)
	if err != nil {
		return &KeptError{fmt.Errorf("it holds no checkpoint of this log: %w", err)}
	}
	return p.continues(ctx, c)
}

// continues gives a *KeptError unless the log continues a checkpoint that a target has.
func (p *Publisher) continues(ctx context.Context, c Checkpoint) error {
	err := Continues(ctx, p.Log, c)
	if errors.Is(err, ErrCut) || errors.Is(err, ErrForked) {
		return &KeptError{err}
	}
	return err
}

// Publish writes a checkpoint of the log as it is to every target that has not got it. One that fails does not stop the
// others; failed gives the errors by target.
func (p *Publisher) Publish(ctx context.Context) (failed map[Target]error) {
	failed = map[Target]error{}
	keys, err := p.Keys(ctx)
	for _, t := range p.Targets {
		at := err
		switch {
		case at != nil:
		case t.url != nil:
			at = p.publishURL(ctx, t, keys)
		default:
			at = p.publishFile(ctx, t, keys)
		}
		if at != nil {
			failed[t] = fmt.Errorf("the checkpoint is not written to %s: %w", t, at)
		}
	}
	return failed
}

func (p *Publisher) publishFile(ctx context.Context, t Target, keys Keys) error {
	release, err := p.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	before, found, err := t.read()
	if err != nil {
		return err
	}
	if found {
		if err := p.check(ctx, before, keys.Trusted()); err != nil {
			return err
		}
	}
	_, signed, err := Fresh(ctx, p.Log, keys)
	if err != nil || bytes.HasPrefix(before, signed) { // there may be signatures of witnesses behind ours
		return err
	}
	return t.writeFile(signed)
}

func (p *Publisher) publishURL(ctx context.Context, t Target, keys Keys) error {
	before, again := p.put[t.url.String()]
	if again {
		if err := p.continues(ctx, before.Checkpoint); err != nil {
			return err
		}
	}
	c, signed, err := Fresh(ctx, p.Log, keys)
	if err != nil || bytes.Equal(signed, before.signed) {
		return err
	}
	token := ""
	if p.TokenFile != "" {
		if !t.TakesToken() {
			return ErrTokenInTheOpen
		}
		if token, err = readToken(p.TokenFile); err != nil {
			return err
		}
	}
	if err := t.put(ctx, signed, token); err != nil {
		return err
	}
	if p.put == nil {
		p.put = map[string]sent{}
	}
	p.put[t.url.String()] = sent{c, signed}
	return nil
}

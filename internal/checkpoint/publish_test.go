package checkpoint

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/policy-dispatch/govern/internal/merkle"
)

// grown is a log in memory.
type grown struct {
	edge  merkle.Edge
	nodes [][]merkle.Hash
}

func (g *grown) add(entries ...string) *grown {
	for _, e := range entries {
		g.nodes = append(g.nodes, g.edge.Append(merkle.Leaf([]byte(e)), nil))
	}
	return g
}

func (g *grown) Head(context.Context) (merkle.Head, error) { return g.edge.Head(), nil }

func (g *grown) Hashes(_ context.Context, nodes []int64) (out []merkle.Hash, err error) {
	for _, n := range nodes {
		leaf, place := merkle.Completed(n)
		out = append(out, g.nodes[leaf][place])
	}
	return out, nil
}

type publisher struct {
	*Publisher
	log  *grown
	keys Keys
}

func newPublisher(t *testing.T, targets ...string) *publisher {
	t.Helper()
	p := &publisher{log: (&grown{}).add("a", "b", "c"), keys: Keys{Signers: []Signer{newSigner(t, sofa)}}}
	held := &memory{}
	p.Publisher = &Publisher{Log: p.log, Keys: func(context.Context) (Keys, error) { return p.keys, nil }, Hold: held.Hold}
	for _, text := range targets {
		target, err := ParseTarget(text)
		require.NoError(t, err)
		p.Targets = append(p.Targets, target)
	}
	return p
}

func (p *publisher) trusted(context.Context) ([]Verifier, error) { return p.keys.Trusted(), nil }

func (p *publisher) must(t *testing.T) {
	t.Helper()
	require.Empty(t, p.Publish(t.Context()))
}

// fails publishes to the one target, which is refused.
func (p *publisher) fails(t *testing.T) error {
	t.Helper()
	failed := p.Publish(t.Context())
	require.Len(t, failed, 1)
	return failed[p.Targets[0]]
}

func (p *publisher) holds(t *testing.T, file string) int64 {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	c, err := Open(b, p.keys.Trusted())
	require.NoError(t, err)
	require.NoError(t, Continues(t.Context(), p.log, c))
	return c.Size
}

func TestAFileFollowsTheLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	p := newPublisher(t, file)
	require.NoError(t, p.Check(t.Context(), nil), "there is none yet")
	p.must(t)
	require.EqualValues(t, 3, p.holds(t, file))

	cosigned := "— witness.example/w1 CMp+6LWBU0anHGH5aNDTJkH/gj79sG+T6+iP2ThYN5krrDJbR1HDnucjL39QsZTSvVjyQLrdk3DXDqI5G2HgLatVs0pWh6Up69HVOw==\n"
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(cosigned)
	require.NoError(t, errors.Join(err, f.Close()))
	p.must(t)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(b), cosigned, "what did not grow is not written again")

	p.log.add("d")
	p.must(t)
	require.EqualValues(t, 4, p.holds(t, file))
	require.NoFileExists(t, file+".new")

	p.keys.Signers = append(p.keys.Signers, newSigner(t, sofa))
	p.must(t)
	b, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(b), "— "), "a new key signs the same log")

	p.keys = Keys{p.keys.Signers[1:], []Verifier{p.keys.Signers[0].Verifier}}
	require.NoError(t, p.Check(t.Context(), p.trusted))
}

// A link leads to where the checkpoints are kept. If that is not there, as a disk that is not mounted, the link is not what is
// written, or no checkpoint would ever reach it again.
func TestALinkIsNotReplaced(t *testing.T) {
	folder := t.TempDir()
	disk, link := filepath.Join(folder, "disk"), filepath.Join(folder, "checkpoint")
	if err := os.Symlink(filepath.Join(disk, "kept"), link); err != nil {
		t.Skip("this user cannot make links: ", err)
	}
	p := newPublisher(t, link)
	require.ErrorContains(t, p.fails(t), "is a link to a file that is not there")
	require.NoError(t, os.Mkdir(disk, 0o700))
	_, signed, err := Fresh(t.Context(), p.log, p.keys)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(disk, "kept"), signed, 0o600))
	p.log.add("d")
	p.must(t)
	require.EqualValues(t, 4, p.holds(t, filepath.Join(disk, "kept")))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink)
}

// A checkpoint never goes backwards, and never to another log.
func TestWhatIsKeptIsNotOverwritten(t *testing.T) {
	other := newSigner(t, sofa)
	for name, c := range map[string]struct {
		change func(t *testing.T, p *publisher, file string)
		want   error
		says   string
	}{
		"the log was cut": {
			func(_ *testing.T, p *publisher, _ string) { *p.log = *(&grown{}).add("a", "b") }, ErrCut, "3, and the log has 2",
		},
		"the log is empty": {
			func(_ *testing.T, p *publisher, _ string) { *p.log = grown{} }, ErrCut, "3, and the log has 0",
		},
		"the log is another of that size": {
			func(_ *testing.T, p *publisher, _ string) { *p.log = *(&grown{}).add("a", "B", "c") }, ErrForked, "3 entries",
		},
		"the log is another, and larger": {
			func(_ *testing.T, p *publisher, _ string) { *p.log = *(&grown{}).add("a", "c", "b", "d") }, ErrForked, "3 entries",
		},
		"the head is another log's, over the hashes of this one": {
			func(_ *testing.T, p *publisher, _ string) {
				p.log.add("d")
				p.log.edge = (&grown{}).add("A", "B", "C", "D").edge
			}, ErrForked, "3 entries",
		},
		"somebody else signed": {
			func(t *testing.T, p *publisher, _ string) { p.keys = Keys{Signers: []Signer{other}} }, ErrUntrusted, "no checkpoint of this log",
		},
		"it was changed": {
			func(t *testing.T, _ *publisher, file string) {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(file, []byte(strings.Replace(string(b), "\n3\n", "\n2\n", 1)), 0o600))
			}, ErrSignature, "no checkpoint of this log",
		},
		"it is something else": {
			func(t *testing.T, _ *publisher, file string) {
				require.NoError(t, os.WriteFile(file, []byte("shopping list\n"), 0o600))
			}, nil, "no checkpoint of this log",
		},
		"it is empty": {
			func(t *testing.T, _ *publisher, file string) { require.NoError(t, os.WriteFile(file, nil, 0o600)) }, nil, "no checkpoint of this log",
		},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "checkpoint")
			p := newPublisher(t, file)
			p.must(t)
			c.change(t, p, file)
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, err := range []error{p.fails(t), p.Check(t.Context(), p.trusted)} {
				kept, ok := errors.AsType[*KeptError](err)
				require.True(t, ok, "%v", err)
				require.Contains(t, kept.Remedy(), "put back the newest state")
				require.ErrorContains(t, err, file)
				require.ErrorContains(t, err, c.says)
				if c.want != nil {
					require.ErrorIs(t, err, c.want)
				}
			}
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

func TestFilesThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	require.Error(t, newPublisher(t, folder).fails(t), "a folder")
	require.Error(t, newPublisher(t, filepath.Join(folder, "none", "checkpoint")).fails(t))
	p := newPublisher(t, filepath.Join(folder, "checkpoint"))
	p.must(t)
	unknown := errors.New("the key is gone")
	require.ErrorIs(t, p.Check(t.Context(), func(context.Context) ([]Verifier, error) { return nil, unknown }), unknown)
	p.Publisher.Keys = func(context.Context) (Keys, error) { return Keys{}, unknown }
	require.ErrorIs(t, p.fails(t), unknown)
}

// taker is a server that takes checkpoints.
type taker struct {
	*httptest.Server
	status int
	got    []string
	header http.Header
}

func newTaker(t *testing.T) *taker {
	s := &taker{status: http.StatusNoContent}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		s.got = append(s.got, r.Method+" "+r.URL.Path+"\n"+string(b))
		s.header = r.Header
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(s.status)
		io.WriteString(w, "a secret of theirs")
	}))
	t.Cleanup(s.Close)
	return s
}

func TestAURLGetsTheLog(t *testing.T) {
	s := newTaker(t)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("s3cr3t-token\n"), 0o600))
	p := newPublisher(t, s.URL+"/logs/1?sig=hidden")
	p.TokenFile = file
	p.must(t)
	p.must(t)
	_, signed, err := Fresh(t.Context(), p.log, p.keys)
	require.NoError(t, err)
	require.Equal(t, []string{"PUT /logs/1\n" + string(signed)}, s.got, "once, as the log did not grow")
	require.Equal(t, "Bearer s3cr3t-token", s.header.Get("Authorization"))
	require.Equal(t, "text/plain; charset=utf-8", s.header.Get("Content-Type"))
	require.Equal(t, s.URL+"/logs/1", p.Targets[0].String())

	p.log.add("d")
	for _, status := range []int{301, 302, 307, 308, 400, 401, 500} {
		s.status, s.got = status, nil
		err := p.fails(t)
		require.ErrorContains(t, err, http.StatusText(status))
		require.Len(t, s.got, 1, "no redirect is followed")
		for _, hidden := range []string{"s3cr3t", "hidden", "secret of theirs"} {
			require.NotContains(t, err.Error(), hidden)
		}
	}
	s.status, s.got = http.StatusOK, nil
	p.must(t)
	require.Len(t, s.got, 1, "what failed is tried again")

	p.log.add("e")
	require.NoError(t, os.Chmod(file, 0o644))
	require.ErrorContains(t, p.fails(t), "chmod 600 ")
	require.NoError(t, os.WriteFile(file, []byte("s3cr3t token"), 0o600))
	require.NoError(t, os.Chmod(file, 0o600))
	require.ErrorContains(t, p.fails(t), "does not hold one token")
	require.NotContains(t, p.fails(t).Error(), "s3cr3t")
	require.NoError(t, os.Remove(file))
	require.ErrorContains(t, p.fails(t), file)
	require.Len(t, s.got, 1, "nothing was sent without a token")

	s.Close()
	p.TokenFile = ""
	err = p.fails(t)
	require.ErrorContains(t, err, s.URL+"/logs/1")
	require.NotContains(t, err.Error(), "hidden")
}

// A log that is replaced under a run's hands is not sent where the other one was.
func TestAURLGetsOneLog(t *testing.T) {
	s := newTaker(t)
	p := newPublisher(t, s.URL)
	p.must(t)
	*p.log = *(&grown{}).add("A", "B", "C", "D")
	require.ErrorIs(t, p.fails(t), ErrForked)
	*p.log = *(&grown{}).add("a")
	require.ErrorIs(t, p.fails(t), ErrCut)
	require.Len(t, s.got, 1)
}

func TestATokenIsNotSentInTheOpen(t *testing.T) {
	p := newPublisher(t, "http://checkpoints.example/x")
	p.TokenFile = "token"
	require.ErrorIs(t, p.fails(t), ErrTokenInTheOpen)
}

// Nobody else writes between the look at a file and its replacement.
func TestAFileIsHeldWhileItIsReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	p := newPublisher(t, file)
	record := &memory{}
	p.Hold = record.Hold
	looks := 0
	p.Log = looked{p.log, func() {
		looks++
		require.True(t, record.held)
	}}
	p.must(t)
	p.log.add("d")
	p.must(t)
	require.NotZero(t, looks)
	require.False(t, record.held)
	require.EqualValues(t, 4, p.holds(t, file))

	record.held = true // by another
	p.log.add("e")
	require.ErrorContains(t, p.fails(t), "held already")
	require.EqualValues(t, 4, p.holds(t, file))
}

// looked is a log that tells when its head is looked at.
type looked struct {
	*grown
	tell func()
}

func (l looked) Head(ctx context.Context) (merkle.Head, error) {
	l.tell()
	return l.grown.Head(ctx)
}

func TestAPutEndsInTime(t *testing.T) {
	p := newPublisher(t, "https://checkpoints.example/x")
	client.Transport = roundTrip(func(r *http.Request) error {
		deadline, ok := r.Context().Deadline()
		require.True(t, ok)
		require.LessOrEqual(t, time.Until(deadline), 10*time.Second)
		return context.DeadlineExceeded
	})
	t.Cleanup(func() { client.Transport = nil })
	require.ErrorIs(t, p.fails(t), context.DeadlineExceeded)
}

type roundTrip func(*http.Request) error

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return nil, f(r) }

// One target that fails does not keep the others from their checkpoint.
func TestTargetsAreTriedAlone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint")
	s := newTaker(t)
	s.status = 500
	p := newPublisher(t, filepath.Join(file, "none"), s.URL, file)
	require.Len(t, p.Publish(t.Context()), 2)
	require.EqualValues(t, 3, p.holds(t, file))
}

func TestTargets(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "an empty path",
		"https://maya:pw@host/x":    "a user or a password",
		"https://maya@host/x":       "a user or a password",
		"ftp://host/x":              "no URL that takes checkpoints",
		"file:///x":                 "no URL that takes checkpoints",
		"https:///x":                "no URL that takes checkpoints",
		"https://host/%zz":          "no URL that takes checkpoints",
		"https://host/x#part":       "has no #",
		"https://maya:pw@host/%zz?": "no URL that takes checkpoints",
	} {
		_, err := ParseTarget(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "pw")
	}
	for text, takes := range map[string]bool{"f": true, "https://host/x": true, "http://host/x": false, "http://localhost:8080": true, "http://127.0.0.1/": true,
		"http://[::1]/": true, "http://localhost.evil.example/": false} {
		target, err := ParseTarget(text)
		require.NoError(t, err)
		require.Equal(t, takes, target.TakesToken(), text)
	}
}

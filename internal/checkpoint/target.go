package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/policy-dispatch/govern/internal/wholefile"
)

// Target is where checkpoints are kept: a file, or a URL that takes them with PUT.
type Target struct {
	file string
	url  *url.URL
}

// ParseTarget reads the path of a file, or a URL that begins with http:// or https://.
func ParseTarget(text string) (Target, error) {
	if !strings.Contains(text, "://") {
		if text == "" {
			return Target{}, errors.New("an empty path; name a file, or a URL")
		}
		return Target{file: text}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return Target{}, errors.New("it is no URL that takes checkpoints; write https://HOST/PATH")
	case u.User != nil:
		return Target{}, errors.New("a URL with a user or a password stands in places that others read; give a token in a file instead (log.checkpoint_token_file)")
	case u.Fragment != "":
		return Target{}, errors.New("a URL that takes checkpoints has no #")
	}
	return Target{url: u}, nil
}

// File is the path of a file; empty for a URL.
func (t Target) File() string { return t.file }

// String is the target as people are shown it: without the query of a URL, which can be a credential.
func (t Target) String() string {
	if t.url == nil {
		return t.file
	}
	return t.url.Scheme + "://" + t.url.Host + t.url.EscapedPath()
}

// TakesToken says whether a token may be sent there: to nobody who could be listened to on the way.
func (t Target) TakesToken() bool {
	if t.url == nil || t.url.Scheme == "https" {
		return true
	}
	host := t.url.Hostname()
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// read gives what a file target holds; found is false if there is no file.
func (t Target) read() (signed []byte, found bool, err error) {
	info, err := os.Stat(t.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file; name another for the checkpoint", t.file)
	}
	if err != nil {
		return nil, false, err
	}
	f, err := os.Open(t.file)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	signed, err = io.ReadAll(io.LimitReader(f, MaxBytes+1))
	return signed, true, err
}

// writeFile replaces the file, or makes it: whoever reads it sees the one or the other, whole.
func (t Target) writeFile(signed []byte) error {
	file := t.file
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	} else if info, err := os.Lstat(file); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a link to a file that is not there; see that its disk is, and write the first checkpoint to that file itself", file)
	}
	if err := wholefile.Write(file+".new", signed, 0o644); err != nil {
		return err
	}
	return wholefile.Replace(file, file+".new")
}

// How long a PUT may take in all.
const putTime = 10 * time.Second

// client follows no redirect: what it was told to write to is where it writes.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// put sends a checkpoint to the URL, with a token if there is one. Its errors show neither the token nor what came back.
func (t Target) put(ctx context.Context, signed []byte, token string) error {
	ctx, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, t.url.String(), bytes.NewReader(signed))
	if err != nil {
		return errors.New("no request can be made of this URL")
	}
	r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // without the URL, whose query is nobody's business
	}
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("it answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	return nil
}

const mostTokenBytes = 8 << 10

// readToken reads a bearer token from a file that nobody else can read. It is read anew for every use, so that it can be
// changed.
func readToken(file string) (string, error) {
	b, err := wholefile.ReadSecret(file, "the token", mostTokenBytes)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("the token file %s does not hold one token: visible ASCII characters on one line", file)
	}
	return token, nil
}

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
)

// lines reads proposals, one a line. It never holds more of a line than limit+1 bytes, whatever arrives.
type lines struct {
	r     *bufio.Reader
	limit int
	buf   []byte
}

func newLines(r io.Reader, limit int) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// wait is next for input that may never come: it ends with ctx, after which the lines cannot be read any more.
func (l *lines) wait(ctx context.Context) ([]byte, int64, error) {
	type read struct {
		line   []byte
		length int64
	}
	r, err := await(ctx, func() (read, error) {
		line, length, err := l.next()
		return read{line, length}, err
	})
	return r.line, r.length, err
}

// readAtMost reads an input that may never end, and one byte more than so many of one that is longer.
func readAtMost(ctx context.Context, r io.Reader, most int) ([]byte, error) {
	return await(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(r, int64(most)+1)) })
}

// await ends with ctx, and what it waited for is left to itself.
func await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// next gives a line without its end, and how long it was: more than the bytes given if it exceeds the limit.
// The bytes are good until the next call. A last line needs no newline.
func (l *lines) next() (line []byte, length int64, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		length += int64(len(part))
		if room := l.limit + 1 - len(l.buf); room > 0 {
			l.buf = append(l.buf, part[:min(room, len(part))]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && length > 0:
			return l.buf, length, nil
		case err != nil:
			return nil, 0, err
		}
		length--
		if length == int64(len(l.buf))-1 {
			l.buf = bytes.TrimSuffix(l.buf, []byte("\n"))
		}
		return l.buf, length, nil
	}
}

package main

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Whatever is read, and in whatever pieces it comes: each line once, whole up to the limit and one byte more, with its
// length, and never more than that held.
func TestLinesAreReadAsTheyCome(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SampledFrom([][]byte{[]byte("\n"), []byte("\r\n"), []byte("\n\n"), []byte("\x00"), []byte("\r"), {0xff}}),
		rapid.SliceOfN(rapid.Byte(), 0, 20),
		rapid.Map(rapid.IntRange(0, 200_000), func(n int) []byte { return bytes.Repeat([]byte("x"), n) }),
		rapid.Map(rapid.IntRange(65_534, 65_538), func(n int) []byte { return bytes.Repeat([]byte("y"), n) }), // around the buffer's size
	)
	rapid.Check(t, func(t *rapid.T) {
		text := bytes.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"), nil)
		limit := rapid.SampledFrom([]int{1, 2, 10, 1000, 65_536, 100_000, 1 << 20}).Draw(t, "limit")
		var want [][]byte
		if len(text) > 0 {
			want = bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		}
		how := rapid.SampledFrom([]func(io.Reader) io.Reader{
			func(r io.Reader) io.Reader { return r }, iotest.HalfReader, iotest.DataErrReader}).Draw(t, "pieces of the reader")
		l := newLines(how(bytes.NewReader(text)), limit)
		for i, w := range want {
			got, length, err := l.next()
			require.NoError(t, err)
			require.EqualValues(t, len(w), length, "line %d", i)
			require.True(t, bytes.Equal(w[:min(len(w), limit+1)], got), "line %d", i)
			require.LessOrEqual(t, cap(l.buf), 2*limit+64<<10)
		}
		_, _, err := l.next()
		require.True(t, errors.Is(err, io.EOF))
	})
}

package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// longestLine bounds an entry of an export.
const longestLine = 64 << 20

// Export audits a log that was exported: every line is an entry, in the order of the log. An error says that it cannot
// be read; everything else is in the report.
func Export(ctx context.Context, r io.Reader, o Options) (Report, error) {
	a := newAuditor(ctx, o)
	a.lines = true
	lines := bufio.NewReaderSize(r, 1<<20)
	var long []byte
	for leaf := int64(0); ; leaf++ {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long[:0], line...)
			for errors.Is(err, bufio.ErrBufferFull) && len(long) <= longestLine {
				line, err = lines.ReadSlice('\n')
				long = append(long, line...)
			}
			line = long
		}
		switch {
		case err == io.EOF && len(line) == 0:
			return a.ended()
		case err == io.EOF && new(doc).scan(line) != nil:
			a.leaf(leaf, Cut, "the file ends in the middle of this line")
			return a.ended()
		case err != nil && err != io.EOF:
			if len(line) > longestLine {
				err = fmt.Errorf("line %d is longer than any entry", leaf+1)
			}
			return Report{}, a.closing(err)
		}
		if _, err := a.take(leaf, bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return Report{}, a.closing(err)
		}
		if why := asText(line); leaf == 0 && a.unreadable && why != "" {
			a.list[len(a.list)-1].Message = why + ", so that the file was written anew as text; export again with govern log export --output FILE, and hand the file on as bytes"
		}
	}
}

// asText says by what the first line shows that a shell or an editor wrote the file anew as text, if it does. The bytes are
// then not those of the log, whatever they say.
func asText(line []byte) string {
	for _, mark := range []string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"} {
		if bytes.HasPrefix(line, []byte(mark)) {
			return "it begins with a byte order mark"
		}
	}
	if bytes.HasSuffix(line, []byte("\r\n")) {
		return "its lines end with CR and LF"
	}
	return ""
}

func (a *auditor) ended() (Report, error) {
	if err := a.finishTasks(); err != nil {
		return Report{}, a.closing(err)
	}
	a.judgeCheckpoints()
	return a.report(append(a.uncovered(), "signatures: an export comes without the store's key", "tables: an export has none"))
}

// uncovered says what of an export no checkpoint is of.
func (a *auditor) uncovered() []string {
	if len(a.checkpoints) == 0 {
		return []string{"whether all is there (the end, whole tasks), and bytes that nothing repeats: there is no checkpoint to hold them against"}
	}
	switch last := a.checkpoints[len(a.checkpoints)-1]; {
	case last.Size < a.size:
		return []string{fmt.Sprintf("the end, and from entry %d on bytes that nothing repeats: no checkpoint is of them", last.Size)}
	case last.result == beyond && !a.said(Cut):
		return []string{fmt.Sprintf("whether the end is there: the log has %d of the %d entries of the checkpoint %s, and what is gone before may be all of the others, or not", a.size, last.Size, last.Name)}
	}
	return nil
}

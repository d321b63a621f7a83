package audit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// deepest is how far arrays and objects of an entry may be nested.
const deepest = 1000

// doc is one JSON text, read in one pass: which values there are, and where. It holds the text against RFC 8785, so
// that two parts mean the same if and only if their bytes are the same. Used again, it allocates nothing.
//
// Values are numbered from 1 in the order of the text; the name of a member is a value before its own. 0 is a value
// that is not there, and every method takes it.
type doc struct {
	text  []byte
	nodes []node
	open  []level
}

type node struct {
	// kind is the first character of the value; a digit stands for every number.
	kind       byte
	plain      bool // a string of ASCII without escapes
	start, end int32
	// next is the value that follows this one and all inside it.
	next int32
}

// level is an object or array that is not yet closed.
type level struct {
	node, name int32 // and the last name in it
}

// scan reads a text that has to be canonical JSON, exactly one value. The doc keeps it.
func (d *doc) scan(text []byte) error {
	if len(text) > math.MaxInt32 {
		return errors.New("longer than any entry")
	}
	d.text, d.nodes, d.open = text, append(d.nodes[:0], node{next: 1}), d.open[:0]
	i := 0
	for {
		var err error
		if i, err = d.value(i); err != nil {
			return err
		}
		if len(d.open) == 0 {
			if i != len(text) {
				return fault(i, "more after the value")
			}
			return nil
		}
	}
}

func fault(i int, rule string) error { return fmt.Errorf("at byte %d: %s", i, rule) }

func (d *doc) at(i int) byte {
	if i < len(d.text) {
		return d.text[i]
	}
	return 0
}

// value reads a value that is no array or object, or the beginning of one, and what closes after it. It ends before
// the next value, or behind the last.
func (d *doc) value(i int) (int, error) {
	c := d.at(i)
	switch c {
	case '{', '[':
		if len(d.open) == deepest {
			return i, fault(i, "nested too deep")
		}
		d.open = append(d.open, level{node: int32(len(d.nodes))})
		d.nodes = append(d.nodes, node{kind: c, start: int32(i)})
		i++
		if d.at(i) != c+2 { // which closes it, in ASCII
			if c == '{' {
				return d.name(i)
			}
			return i, nil
		}
	case '"':
		end, plain, err := stringEnd(d.text, i)
		if err != nil {
			return i, err
		}
		d.leaf(c, plain, i, end)
		i = end
	default:
		end, kind, err := scalarEnd(d.text, i)
		if err != nil {
			return i, err
		}
		d.leaf(kind, false, i, end)
		i = end
	}
	return d.after(i)
}

func (d *doc) leaf(kind byte, plain bool, start, end int) {
	d.nodes = append(d.nodes, node{kind, plain, int32(start), int32(end), int32(len(d.nodes) + 1)})
}

// after reads what follows a value or an opening bracket.
func (d *doc) after(i int) (int, error) {
	for len(d.open) > 0 {
		top := &d.nodes[d.open[len(d.open)-1].node]
		switch c := d.at(i); {
		case c == ',' && top.kind == '{':
			return d.name(i + 1)
		case c == ',':
			return i + 1, nil
		case c != top.kind+2:
			return i, fault(i, "neither a comma nor the end of what is open")
		}
		i++
		top.end, top.next = int32(i), int32(len(d.nodes))
		d.open = d.open[:len(d.open)-1]
	}
	return i, nil
}

// name reads the name of a member and the colon. Names are in the order of RFC 8785, and none comes twice.
func (d *doc) name(i int) (int, error) {
	if d.at(i) != '"' {
		return i, fault(i, "no name of a member")
	}
	end, plain, err := stringEnd(d.text, i)
	if err != nil {
		return i, err
	}
	if d.at(end) != ':' {
		return end, fault(end, "no colon after a name")
	}
	top := &d.open[len(d.open)-1]
	this := int32(len(d.nodes))
	d.leaf('"', plain, i, end)
	if top.name != 0 && !d.inOrder(top.name, this) {
		return i, fault(i, "names out of order, or one twice")
	}
	top.name = this
	return end + 1, nil
}

func (d *doc) inOrder(a, b int32) bool {
	if d.nodes[a].plain && d.nodes[b].plain {
		return bytes.Compare(d.str(a), d.str(b)) < 0
	}
	return slices.Compare(utf16.Encode([]rune(plainText(d.str(a)))), utf16.Encode([]rune(plainText(d.str(b))))) < 0
}

// stringEnd reads the string that begins at i. It says whether it is of ASCII without escapes.
func stringEnd(text []byte, i int) (end int, plain bool, err error) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	plain = true
	for i++; ; {
		// Eight bytes at a time, as long as none of them is a quote, a backslash, a control character or not ASCII.
		for i+8 <= len(text) {
			w := binary.LittleEndian.Uint64(text[i:])
			quote, slash := w^(ones*'"'), w^(ones*'\\')
			if odd := ((quote-ones)&^quote | (slash-ones)&^slash | (w-ones*0x20)&^w | w) & tops; odd != 0 {
				i += bits.TrailingZeros64(odd) >> 3
				break
			}
			i += 8
		}
		if i >= len(text) {
			return i, false, fault(i, "a string that does not end")
		}
		switch c := text[i]; {
		case c == '"':
			return i + 1, plain, nil
		case c < 0x20:
			return i, false, fault(i, "a control character in a string")
		case c == '\\':
			n := escape(text[i:])
			if n == 0 {
				return i, false, fault(i, "an escape that the canonical form does not have")
			}
			i += n
			plain = false
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && n == 1 {
				return i, false, fault(i, "not UTF-8")
			}
			i += n
			plain = false
		}
	}
}

// escape gives the length of the escape that b begins with, 0 if the canonical form writes the character otherwise.
func escape(b []byte) int {
	if len(b) > 1 && bytes.IndexByte([]byte(`"\bfnrt`), b[1]) >= 0 {
		return 2
	}
	if len(b) < 6 || string(b[1:4]) != "u00" || b[4] != '0' && b[4] != '1' {
		return 0
	}
	switch c := b[5]; {
	case c >= '0' && c <= '7', b[4] == '1' && (c == '8' || c == '9' || c >= 'a' && c <= 'f'), b[4] == '0' && (c == 'b' || c == 'e' || c == 'f'):
		return 6
	}
	return 0
}

// scalarEnd reads the literal or number that begins at i.
func scalarEnd(text []byte, i int) (end int, kind byte, err error) {
	for _, literal := range [...]string{"null", "true", "false"} {
		if len(text)-i >= len(literal) && string(text[i:i+len(literal)]) == literal {
			return i + len(literal), literal[0], nil
		}
	}
	end = i
	digits := 0
	for ; end < len(text); end++ {
		c := text[end]
		if c >= '0' && c <= '9' {
			digits++
		} else if c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
	}
	number := text[i:end]
	if len(number) == 0 {
		return i, 0, fault(i, "no value")
	}
	// Whole numbers of few digits are what nearly all are. The others are for the package that knows the rules.
	if digits > 0 && digits <= 15 {
		zero := number[len(number)-digits] == '0'
		if len(number) == digits && (!zero || digits == 1) || len(number) == digits+1 && number[0] == '-' && !zero {
			return end, '0', nil
		}
	}
	canonical, err := ijson.Canonical(number, ijson.Limits{Bytes: len(number), Depth: 1})
	if err != nil || !bytes.Equal(canonical, number) {
		return i, 0, fault(i, "a number that is not in its canonical form")
	}
	return end, '0', nil
}

func (d *doc) kind(n int32) byte { return d.nodes[n].kind }

// raw gives the bytes of a value, none for 0.
func (d *doc) raw(n int32) []byte { return d.text[d.nodes[n].start:d.nodes[n].end] }

// str gives what is between the quotes of a string, escapes as they are; nil for every other value.
func (d *doc) str(n int32) []byte {
	if v := d.nodes[n]; v.kind == '"' {
		return d.text[v.start+1 : v.end-1]
	}
	return nil
}

// number gives a whole number that is not negative.
func (d *doc) number(n int32) (int64, bool) {
	v := d.nodes[n]
	if v.kind != '0' || v.end-v.start > 16 {
		return 0, false
	}
	total := int64(0)
	for _, c := range d.text[v.start:v.end] {
		if c < '0' || c > '9' {
			return 0, false
		}
		total = total*10 + int64(c-'0')
	}
	return total, true
}

// count is number, and 0 for every other value.
func (d *doc) count(n int32) int64 {
	i, _ := d.number(n)
	return i
}

// isTrue says whether a value is true.
func (d *doc) isTrue(n int32) bool { return d.nodes[n].kind == 't' }

// inside gives the range of the values directly or deeper in an array or object; an empty one for anything else.
func (d *doc) inside(n int32) (first, end int32) {
	if v := d.nodes[n]; v.kind == '{' || v.kind == '[' {
		return n + 1, v.next
	}
	return 0, 0
}

// pick finds members of an object in one walk. The names are ASCII and in order; into gets their values, 0 for one that
// is not there.
func (d *doc) pick(object int32, names []string, into []int32) {
	if d.nodes[object].kind != '{' {
		clear(into)
		return
	}
	k := 0
	for i, end := d.inside(object); i < end && k < len(names); i = d.nodes[i+1].next {
		name := d.str(i)
		for k < len(names) && names[k] < string(name) {
			into[k] = 0
			k++
		}
		if k < len(names) && names[k] == string(name) {
			into[k] = i + 1
			k++
		}
	}
	clear(into[k:])
}

// plainText undoes the escapes of a canonical string.
func plainText(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s)
	}
	quoted := make([]byte, 0, len(s)+2)
	quoted = append(append(append(quoted, '"'), s...), '"')
	out, _ := ijson.String(quoted)
	return out
}

package opa

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// toJSON gives a Rego value its canonical form. Sets become arrays, as in OPA's own answers; what JSON cannot say is
// refused rather than approximated.
func toJSON(v ast.Value) (ijson.Raw, error) {
	w := writer{text: make([]byte, 0, 512)}
	if err := w.value(v); err != nil {
		return nil, err
	}
	if !w.other {
		return w.text, nil
	}
	return ijson.Canonical(w.text, ijson.Limits{Bytes: math.MaxInt, Depth: math.MaxInt})
}

// maxText bounds what is written before its length in canonical form is known: a value that holds another twice, and that
// one another twice, has no end.
const maxText = 16 * maxAnswer

// writer writes Rego values as JSON.
type writer struct {
	text []byte
	// other says that the text may differ from its canonical form, and that a double may not hold a number in it.
	other bool
}

func (w *writer) value(v ast.Value) (err error) {
	if len(w.text) > maxText {
		return fmt.Errorf("it is longer than %d bytes", maxText)
	}
	switch v := v.(type) {
	case ast.Null:
		w.text = append(w.text, "null"...)
	case ast.Boolean:
		w.text = strconv.AppendBool(w.text, bool(v))
	case ast.Number:
		w.text = append(w.text, v...)
		w.other = w.other || len(v) > 15 || len(v) > 1 && v[0] == '0' || strings.Trim(string(v), "0123456789") != ""
	case ast.String:
		w.text, err = ijson.AppendString(w.text, string(v))
	case *ast.Array:
		err = w.list(v.Len(), v.Iter)
	case ast.Set:
		err = w.list(v.Len(), v.Iter)
	case ast.Object:
		err = w.object(v)
	default:
		err = fmt.Errorf("a %s is no JSON value", ast.ValueName(v))
	}
	return err
}

func (w *writer) list(n int, iter func(func(*ast.Term) error) error) error {
	w.text = append(w.text, '[')
	err := iter(func(t *ast.Term) error {
		err := w.value(t.Value)
		if n--; n > 0 {
			w.text = append(w.text, ',')
		}
		return err
	})
	w.text = append(w.text, ']')
	return err
}

// object writes the members by their names as bytes sort. That is their canonical order where all are ASCII.
func (w *writer) object(o ast.Object) error {
	w.text = append(w.text, '{')
	n := o.Len()
	err := o.Iter(func(name, member *ast.Term) error {
		s, ok := name.Value.(ast.String)
		if !ok {
			return fmt.Errorf("an object has the name %v, which is no string", name)
		}
		if err := w.value(s); err != nil {
			return err
		}
		w.other = w.other || strings.ContainsFunc(string(s), func(r rune) bool { return r >= 0x80 })
		w.text = append(w.text, ':')
		err := w.value(member.Value)
		if n--; n > 0 {
			w.text = append(w.text, ',')
		}
		return err
	})
	w.text = append(w.text, '}')
	return err
}

package opa

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/types"

	"github.com/policy-dispatch/govern/internal/nearest"
)

// Finding is one thing that keeps a policy from being used.
type Finding struct {
	// File is where a person finds it, and Row the line there; 0 if it is about the file as a whole.
	File string
	Row  int
	What string
	// Remedy says what to do; it can be empty.
	Remedy string
}

// Place is the file, and the line if there is one.
func (f Finding) Place() string {
	if f.Row == 0 {
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Row)
}

func (f Finding) String() string {
	s := f.What
	if f.File != "" {
		s = f.Place() + ": " + s
	}
	if f.Remedy != "" {
		s += "; " + f.Remedy
	}
	return s
}

// Findings are all that is wrong with a policy, as far as it could be read: an error that lists them.
type Findings []Finding

func (f Findings) Error() string {
	if len(f) == 1 {
		return f[0].String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the policy has %d faults", len(f))
	for _, one := range f {
		b.WriteString("\n" + one.String())
	}
	return b.String()
}

// Unwrap gives each as an error of its own.
func (f Findings) Unwrap() []error {
	var all []error
	for _, one := range f {
		all = append(all, errors.New(one.String()))
	}
	return all
}

// err is f as an error, in the order of its places, each thing once.
func (f Findings) err() error {
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Row, b.Row), cmp.Compare(a.What, b.What))
	})
	return slices.Compact(f)
}

func (f *Findings) add(at *ast.Location, what, remedy string) {
	*f = append(*f, Finding{File: at.File, Row: at.Row, What: what, Remedy: remedy})
}

// addErrors takes in what OPA's parser or compiler says.
func (f *Findings) addErrors(err error) {
	list, ok := errors.AsType[ast.Errors](err)
	if !ok {
		one, ok := errors.AsType[*ast.Error](err)
		if !ok {
			*f = append(*f, Finding{What: err.Error()})
			return
		}
		list = ast.Errors{one}
	}
	for _, e := range list {
		at := e.Location
		if at == nil {
			at = &ast.Location{}
		}
		what, remedy := explain(e)
		f.add(at, strings.Join(strings.Fields(what), " "), remedy)
	}
}

// explain says what a compiler's error means in a policy, whose input and data are known.
func explain(e *ast.Error) (what, remedy string) {
	switch d := e.Details.(type) {
	case *ast.RefErrInvalidDetail:
		if d.Have == nil {
			return fmt.Sprintf("%s has no %s", d.Ref[:d.Pos], d.Ref[d.Pos]), advice(plain(d.Ref[d.Pos]), keys(d))
		}
	case *ast.RefErrUnsupportedDetail:
		if _, function := d.Have.(*types.Function); !function {
			return fmt.Sprintf("%s has nothing inside: it is %s", d.Ref[:d.Pos+1], types.Sprint(d.Have)), ""
		}
	case *ast.UnificationErrDetail:
		if isNull(d.Left) || isNull(d.Right) {
			remedy = "to ask for null write is_null(…)" // what can be null has the type of what it is otherwise
		}
		return "the two sides are never equal, by their types", remedy
	}
	return e.Code + ": " + e.Message, ""
}

func isNull(t types.Type) bool {
	_, null := t.(types.Null)
	return null
}

func keys(detail *ast.RefErrInvalidDetail) []string {
	var names []string
	for _, v := range detail.OneOf {
		names = append(names, plain(ast.NewTerm(v)))
	}
	return names
}

// plain is a term's text, without the quotes of a string.
func plain(t *ast.Term) string {
	if s, ok := t.Value.(ast.String); ok {
		return string(s)
	}
	return t.String()
}

// advice says what could have been meant by a name.
func advice(name string, known []string) string {
	if near, ok := nearest.Name(name, known); ok {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if len(known) == 0 {
		return "there is nothing there"
	}
	return "there is " + strings.Join(known, ", ")
}

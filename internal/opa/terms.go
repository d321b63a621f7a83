package opa

import (
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// words are the terms of the strings that every input has in it, such as the names of its fields. Terms are never
// changed once they are made, so all evaluations share them.
var words = sync.OnceValue(func() map[string]*ast.Term {
	terms := map[string]*ast.Term{}
	inputSchema().eachWord(func(word string) { terms[word] = ast.StringTerm(word) })
	return terms
})

// termsOf gives an input the form that Rego reads: what ast.ValueFromReader gives, in a fraction of its time.
func termsOf(input ijson.Raw) (ast.Value, error) {
	s := slab{words: words(), pairs: make([][2]*ast.Term, 0, 16)}
	term, err := ijson.Build(input, ijson.Builder[*ast.Term]{
		Literal: literal, Number: s.number, String: s.string, Array: s.array, Object: s.object,
	})
	if err != nil {
		return nil, failed("the input is not JSON: %v", err)
	}
	if s.containers > maxContainers {
		return nil, failed("the input has %d arrays and objects; the limit is %d", s.containers, maxContainers)
	}
	return term.Value, nil
}

// maxContainers bounds the arrays and objects of an input. Rego compares two values by calling itself once more for each of
// them, and a stack that overflows ends the process. A proposal of 1 MiB has room for fewer.
const maxContainers = 400_000

// slab takes room for terms in one piece, and not for each by itself.
type slab struct {
	words map[string]*ast.Term
	free  []ast.Term
	pairs [][2]*ast.Term

	containers int
}

func (s *slab) term(v ast.Value) *ast.Term {
	if len(s.free) == 0 {
		s.free = make([]ast.Term, 32)
	}
	t := &s.free[0]
	s.free = s.free[1:]
	t.Value = v
	return t
}

func literal(text string) *ast.Term {
	switch text[0] {
	case 't':
		return ast.InternedBooleanTrue
	case 'f':
		return ast.InternedBooleanFalse
	}
	return ast.InternedNullTerm
}

func (s *slab) number(text string) *ast.Term {
	if len(text) == 1 { // a digit
		return ast.InternedTerm(int(text[0] - '0'))
	}
	if t := ast.InternedIntNumberTermFromString(text); t != nil {
		return t
	}
	return s.term(ast.Number(text))
}

func (s *slab) string(text string) *ast.Term {
	if t, ok := s.words[text]; ok {
		return t
	}
	return s.term(ast.String(text))
}

func (s *slab) array(elements []*ast.Term) *ast.Term {
	s.containers++
	if len(elements) == 0 {
		return ast.InternedEmptyArray
	}
	return s.term(ast.NewArray(append([]*ast.Term(nil), elements...)...))
}

func (s *slab) object(members []*ast.Term) *ast.Term {
	s.containers++
	if len(members) == 0 {
		return ast.InternedEmptyObject
	}
	s.pairs = s.pairs[:0]
	for i := 0; i < len(members); i += 2 {
		s.pairs = append(s.pairs, ast.Item(members[i], members[i+1]))
	}
	return s.term(ast.NewObject(s.pairs...))
}

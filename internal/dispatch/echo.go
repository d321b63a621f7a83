package dispatch

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/policy-dispatch/govern/internal/ijson"
)

// leastEcho is the number of characters from which on a text is looked for inside of others. A shorter one stands in too
// many by chance, and is looked for as a whole.
const leastEcho = 4

// mostEchoes bounds the texts that are looked for, since an agent chooses how many there are. What comes of a call with
// more is sealed as a whole.
const mostEchoes = 64

// echoes finds parts of a value that repeat what is sensitive: the whole of it, or a name, a string or a number in it.
type echoes struct {
	sealer
	values map[string]bool // canonical
	texts  map[string]bool
	inside []string
	// seals stand in the value already, and stay. What only has the form of one was written by somebody.
	seals map[string]bool
}

func newEchoes(s sealer, sensitive, seals []ijson.Raw) *echoes {
	e := &echoes{sealer: s, values: map[string]bool{}, texts: map[string]bool{}, seals: map[string]bool{}}
	for _, made := range seals {
		e.seals[string(made)] = true
	}
	for _, v := range sensitive {
		e.values[string(v)] = true
		for _, text := range textsOf(v) {
			if !e.texts[text] && utf8.RuneCountInString(text) >= leastEcho {
				e.inside = append(e.inside, text)
			}
			e.texts[text] = true
		}
	}
	return e
}

// textsOf gives the names, strings and numbers of a value.
func textsOf(value ijson.Raw) (texts []string) {
	take := func(text string) struct{} {
		texts = append(texts, text)
		return struct{}{}
	}
	none := func([]struct{}) struct{} { return struct{}{} }
	_, _ = ijson.Build(value, ijson.Builder[struct{}]{Literal: func(string) struct{} { return struct{}{} },
		Number: take, String: take, Array: none, Object: none}) // a value that cannot be read ends what it has
	return texts
}

func (e *echoes) repeats(text string) bool {
	return e.texts[text] || slices.ContainsFunc(e.inside, func(secret string) bool { return strings.Contains(text, secret) })
}

// part is a part of a value as it is and as it is shown.
type part struct {
	exact, shown ijson.Raw
	// loud says that, as a name, it seals what it is a name in.
	loud bool
}

// seal seals the greatest parts of a canonical value that repeat something.
func (e *echoes) seal(value ijson.Raw) (ijson.Raw, error) {
	switch {
	case len(e.values) == 0:
		return value, nil
	case len(e.inside) > mostEchoes:
		return e.sealer.seal(value)
	}
	var failed error
	finish := func(p part, repeats bool) part {
		switch {
		case e.seals[string(p.exact)]:
			p.shown = p.exact
		case repeats || e.values[string(p.exact)]:
			if shown, err := e.sealer.seal(p.exact); err != nil {
				failed = err
			} else {
				p.shown = shown
			}
		}
		return p
	}
	scalar := func(exact ijson.Raw, text string) part {
		loud := e.repeats(text)
		p := finish(part{exact: exact, shown: exact}, loud)
		p.loud = loud
		return p
	}
	whole, err := ijson.Build(value, ijson.Builder[part]{
		Literal: func(word string) part { return finish(part{exact: ijson.Raw(word), shown: ijson.Raw(word)}, false) },
		Number:  func(text string) part { return scalar(ijson.Raw(text), text) },
		String: func(text string) part {
			exact, err := ijson.Marshal(text)
			if err != nil {
				failed = err
			}
			return scalar(exact, text)
		},
		Array: func(elements []part) part { return finish(joined(elements, false), false) },
		Object: func(members []part) part {
			loud := false
			for i := 0; i < len(members); i += 2 {
				loud = loud || members[i].loud
			}
			return finish(joined(members, true), loud)
		},
	})
	if err == nil {
		err = failed
	}
	return whole.shown, err
}

// joined is the array of some elements, or the object of names and values.
func joined(parts []part, object bool) part {
	open, shut := byte('['), byte(']')
	if object {
		open, shut = '{', '}'
	}
	p := part{exact: ijson.Raw{open}, shown: ijson.Raw{open}}
	for i, inner := range parts {
		switch {
		case i == 0:
		case object && i%2 == 1:
			p.exact, p.shown = append(p.exact, ':'), append(p.shown, ':')
		default:
			p.exact, p.shown = append(p.exact, ','), append(p.shown, ',')
		}
		shown := inner.shown
		if object && i%2 == 0 {
			shown = inner.exact // the object of a name that repeats something is sealed as a whole
		}
		p.exact, p.shown = append(p.exact, inner.exact...), append(p.shown, shown...)
	}
	p.exact, p.shown = append(p.exact, shut), append(p.shown, shut)
	return p
}

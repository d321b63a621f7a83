package tools

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/policy-dispatch/govern/internal/dispatch"
	"github.com/policy-dispatch/govern/internal/ijson"
)

// template is a URL with places for arguments. Whatever stands in those, scheme, host, the number of segments and the names of
// the query are the template's.
type template struct {
	scheme, host string
	path         []part
	query        []parameter
}

// part is a text, or a place for an argument or for the outward key.
type part struct {
	text    string
	pointer string
	key     bool
}

type parameter struct {
	name string
	// value is one part: a text, or a place.
	value part
}

// keyPlace is the place of the outward key in the URL of a look-up.
const keyPlace = "key"

var originForm = regexp.MustCompile(`^(https?)://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/|\?|$)`)

// parseTemplate reads a URL with JSON Pointers in braces.
func parseTemplate(text string) (template, error) {
	var t template
	origin := originForm.FindStringSubmatch(text)
	if origin == nil {
		return t, errors.New("it is no URL of a tool; write https://HOST/PATH, with no user, and no argument before the path")
	}
	t.scheme, t.host = origin[1], origin[2]+origin[3]
	parts, err := cut(text[len(t.scheme+"://"+t.host):])
	if err != nil {
		return t, err
	}
	inQuery := false
	var query [][]part
	for _, p := range parts {
		rest, isText := p.text, p.pointer == "" && !p.key
		switch {
		case isText && strings.Contains(rest, "#"):
			return t, errors.New("a URL of a tool has no #")
		case isText && !inQuery:
			before, after, found := strings.Cut(rest, "?")
			if before != "" {
				t.path = append(t.path, part{text: before})
			}
			if inQuery = found; !found {
				continue
			}
			rest, query = after, [][]part{nil}
		case !inQuery:
			t.path = append(t.path, p)
			continue
		case !isText:
			query[len(query)-1] = append(query[len(query)-1], p)
			continue
		}
		for i, piece := range strings.Split(rest, "&") {
			if i > 0 {
				query = append(query, nil)
			}
			if piece != "" {
				query[len(query)-1] = append(query[len(query)-1], part{text: piece})
			}
		}
	}
	if len(t.path) == 0 {
		t.path = []part{{text: "/"}}
	}
	for _, parts := range query {
		p, err := parseParameter(parts)
		if err != nil {
			return t, err
		}
		t.query = append(t.query, p)
	}
	return t, t.sound()
}

// cut splits a text at its places.
func cut(text string) (parts []part, err error) {
	for text != "" {
		before, after, found := strings.Cut(text, "{")
		if strings.Contains(before, "}") {
			return nil, errors.New("a } without a { before it")
		}
		if before != "" {
			parts = append(parts, part{text: before})
		}
		if !found {
			break
		}
		inside, rest, closed := strings.Cut(after, "}")
		switch {
		case !closed:
			return nil, errors.New("a { without a } behind it")
		case inside == keyPlace:
			parts = append(parts, part{key: true})
		case !pointerForm.MatchString(inside):
			return nil, fmt.Errorf("{%s} is no place for an argument; write a JSON Pointer in braces, such as {/order_id}", inside)
		default:
			parts = append(parts, part{pointer: inside})
		}
		text = rest
	}
	return parts, nil
}

func parseParameter(parts []part) (parameter, error) {
	wrong := errors.New("a query is made of name=value and name={/argument}, with & between them")
	if len(parts) == 0 {
		return parameter{}, wrong
	}
	name, value, found := strings.Cut(parts[0].text, "=")
	switch {
	case !found || name == "":
		return parameter{}, wrong
	case len(parts) == 1:
		return parameter{name, part{text: value}}, nil
	case len(parts) > 2 || value != "":
		return parameter{}, fmt.Errorf("the value of %s in the query is one argument or one text, and not both", name)
	}
	return parameter{name, parts[1]}, nil
}

// sound says what is wrong with the texts, or nil.
func (t template) sound() error {
	example, _ := t.fill(func(part) (string, bool) { return "x", true })
	u, err := url.Parse(example)
	switch {
	case err != nil, u.RequestURI() != strings.TrimPrefix(example, t.scheme+"://"+t.host):
		return errors.New("it has what a URL can only have escaped")
	}
	for _, segment := range strings.Split(u.Path, "/") {
		if segment == "." || segment == ".." || strings.ContainsFunc(segment, unfit) {
			return errors.New("a path of a tool is whole: it has no . or .. in it, and no \\")
		}
	}
	return nil
}

// fill puts values in the places. A parameter of the query whose value there is none of is left out.
func (t template) fill(value func(part) (string, bool)) (filled string, missing bool) {
	var b strings.Builder
	b.WriteString(t.scheme + "://" + t.host)
	for _, p := range t.path {
		if p.text != "" {
			b.WriteString(p.text)
			continue
		}
		v, ok := value(p)
		missing = missing || !ok
		b.WriteString(url.PathEscape(v))
	}
	mark := "?"
	for _, q := range t.query {
		escaped := q.value.text
		if q.value.pointer != "" || q.value.key {
			v, ok := value(q.value)
			if !ok {
				continue
			}
			escaped = url.QueryEscape(v)
		}
		b.WriteString(mark + q.name + "=" + escaped)
		mark = "&"
	}
	return b.String(), missing
}

// check says which arguments cannot stand where the template has them.
func (t template) check(arguments ijson.Raw) (violations []dispatch.Violation) {
	for _, p := range t.path {
		if p.pointer == "" {
			continue
		}
		v, ok := scalar(arguments, p.pointer)
		if !ok || v == "" || v == "." || v == ".." || strings.ContainsFunc(v, unfit) {
			violations = append(violations, dispatch.Violation{Path: p.pointer,
				Message: `is a part of a path, and must not be empty, "." or "..", or have a slash, a backslash or a control character in it`})
		}
	}
	for _, q := range t.query {
		if p := q.value.pointer; p != "" {
			if _, found := ijson.Lookup(arguments, p); found {
				if _, ok := scalar(arguments, p); !ok {
					violations = append(violations, dispatch.Violation{Path: p, Message: "is a part of a query, and must be a string, a number or a boolean"})
				}
			}
		}
	}
	return violations
}

// url gives the URL of a call whose arguments were checked.
func (t template) url(arguments ijson.Raw, key string) (*url.URL, error) {
	filled, missing := t.fill(func(p part) (string, bool) {
		if p.key {
			return key, key != ""
		}
		return scalar(arguments, p.pointer)
	})
	u, err := url.Parse(filled)
	if err != nil || missing || u.Host != t.host || u.Scheme != t.scheme || u.User != nil || u.Fragment != "" {
		return nil, errors.New("the arguments make no URL of this tool")
	}
	return u, nil
}

// pointers are the arguments that the template has.
func (t template) pointers() (all []string) {
	for _, p := range t.path {
		if p.pointer != "" {
			all = append(all, p.pointer)
		}
	}
	for _, q := range t.query {
		if q.value.pointer != "" {
			all = append(all, q.value.pointer)
		}
	}
	return all
}

func (t template) origin() string { return t.scheme + "://" + t.host }

func (t template) hasKey() bool {
	for _, p := range t.path {
		if p.key {
			return true
		}
	}
	for _, q := range t.query {
		if q.value.key {
			return true
		}
	}
	return false
}

// unfit are what no segment of a path has: servers take some of it for its end, whatever is escaped.
func unfit(r rune) bool { return r == '/' || r == '\\' || unicode.IsControl(r) }

// scalar gives what stands at a pointer as a text, if it is a string, a number or a boolean.
func scalar(arguments ijson.Raw, pointer string) (string, bool) {
	found, ok := ijson.Lookup(arguments, pointer)
	if !ok {
		return "", false
	}
	switch found.Kind() {
	case '"':
		return ijson.String(found)
	case '0', 't', 'f':
		return string(found), true
	}
	return "", false
}

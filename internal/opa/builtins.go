package opa

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// Rego looks at the clock between the steps of an evaluation, and not while a built-in runs. So a built-in runs where the
// evaluation does only if it ends about as soon as its operands can be read; any other gets a goroutine of its own, which
// is left behind when the time is over. That is how built-ins are told apart: linear ones always end soon, others where
// their operands are small, and the rest is not known to.
var (
	linear = strings.Fields(`abs all and any array.concat array.flatten array.reverse array.slice base64.decode
		base64.encode base64url.decode base64url.encode base64url.encode_no_pad bits.and bits.negate bits.or bits.rsh bits.xor
		cast_array cast_boolean cast_null cast_object cast_set cast_string ceil concat contains count crypto.md5 crypto.sha1
		crypto.sha256 endswith equal floor graph.reachable gt gte hex.decode hex.encode internal.member_2 internal.member_3 internal.print
		internal.test_case intersection is_array is_boolean is_null is_number is_object is_set
		is_string lower lt lte max min minus neq numbers.range numbers.range_step object.get object.keys object.remove
		object.union or plus rego.metadata.chain rego.metadata.rule replace round set_diff sort split startswith
		strings.replace_n strings.reverse substring sum time.add_date time.clock time.date time.diff
		time.parse_duration_ns time.parse_rfc3339_ns time.weekday trace trim_prefix trim_space trim_suffix type_name union
		upper walk`)
	soonIfSmall = strings.Fields(`crypto.hmac.equal crypto.hmac.sha256 crypto.hmac.sha512 div format_int indexof indexof_n internal.template_string
		json.filter json.is_valid json.marshal json.remove json.unmarshal mul net.cidr_contains net.cidr_intersects
		net.cidr_is_valid object.filter object.subset object.union_n rem semver.compare semver.is_valid
		strings.any_prefix_match strings.any_suffix_match strings.count strings.split_n time.format time.parse_ns to_number
		trim trim_left trim_right units.parse units.parse_bytes uri.is_valid uri.parse urlquery.decode urlquery.encode
		uuid.parse`)
)

// init puts the guards before OPA's built-ins, for the whole program: it has no other place for them.
func init() {
	for _, b := range capabilities().Builtins {
		f := topdown.GetBuiltin(b.Name)
		if product := products[b.Name]; f != nil && product != nil {
			f = bounded(f, product)
			topdown.RegisterBuiltinFunc(b.Name, f)
		}
		if f == nil || slices.Contains(linear, b.Name) {
			continue
		}
		soon := never
		switch {
		case slices.Contains(soonIfSmall, b.Name):
			soon = small
		case b.Name == ast.RegexMatch.Name:
			soon = func(operands []*ast.Term) bool { return small(operands) && !counted(operands[0].Value) }
		case b.Name == ast.Sprintf.Name:
			soon, f = small, narrow(f)
		}
		ast.BuiltinMap[b.Name].CanSkipBctx = false // the guard needs the context
		topdown.RegisterBuiltinFunc(b.Name, guarded(f, soon))
	}
}

func never([]*ast.Term) bool { return false }

// small says that operands are of some thousand bytes and elements at most.
func small(operands []*ast.Term) bool { return rest(4<<10, operands) >= 0 }

// rest is what a budget of bytes has left after operands are read, or less than nothing. An element counts as some bytes.
func rest(budget int, operands []*ast.Term) int {
	for _, t := range operands {
		budget -= 8
		each := func(t *ast.Term) bool { budget = rest(budget, []*ast.Term{t}); return budget < 0 }
		switch v := t.Value.(type) {
		case ast.String:
			budget -= len(v)
		case ast.Number:
			budget -= len(v) + exponent(string(v))
		case *ast.Array:
			v.Until(each)
		case ast.Set:
			v.Until(each)
		case ast.Object:
			v.Until(func(name, value *ast.Term) bool { return each(name) || each(value) })
		}
		if budget < 0 {
			break
		}
	}
	return budget
}

// exponent is that of a number, without its sign. Arithmetic takes the square of it in time.
func exponent(number string) int {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimLeft(number[i+1:], "+-"), 10, 32) // the largest there is, of what is larger
	return int(n)
}

// counted says that a pattern may stand for a much longer one: it counts repetitions, and is not short.
func counted(pattern ast.Value) bool {
	s, ok := pattern.(ast.String)
	return ok && len(s) > 100 && strings.Contains(string(s), "{")
}

// guarded lets a built-in run where the evaluation does only if that ends soon.
func guarded(f topdown.BuiltinFunc, soon func([]*ast.Term) bool) topdown.BuiltinFunc {
	return func(bctx topdown.BuiltinContext, operands []*ast.Term, yield func(*ast.Term) error) error {
		l, limited := bctx.Cancel.(*limits)
		if !limited || soon(operands) { // whoever runs a test can end it
			return f(bctx, operands, yield)
		}
		if rest(maxMade, operands) < 0 {
			return errMade
		}
		operands = slices.Clone(operands) // Rego uses the slice again
		outputs, err := l.aside(func() (outputs []*ast.Term, err error) {
			err = f(bctx, operands, func(t *ast.Term) error {
				outputs = append(outputs, t)
				return nil
			})
			return outputs, err
		})
		for _, t := range outputs {
			if err := yield(t); err != nil {
				return err
			}
		}
		return err
	}
}

// products are built-ins that make more of their operands than these are long, and how much.
var products = map[string]func([]*ast.Term) int{
	ast.Concat.Name: func(o []*ast.Term) int {
		switch parts := o[1].Value.(type) {
		case *ast.Array:
			return length(o[0]) * parts.Len()
		case ast.Set:
			return length(o[0]) * parts.Len()
		}
		return 0
	},
	ast.RegexReplace.Name: func(o []*ast.Term) int { return length(o[0]) * marks(o[2], "$") },
	ast.Replace.Name:      func(o []*ast.Term) int { return replaced(o[0], o[1], o[2]) },
	ast.ReplaceN.Name: func(o []*ast.Term) int {
		sum := 0
		if patterns, ok := o[0].Value.(ast.Object); ok {
			patterns.Foreach(func(old, text *ast.Term) { sum += replaced(o[1], old, text) })
		}
		return sum
	},
	ast.Sprintf.Name: func(o []*ast.Term) int {
		if again := marks(o[0], "["); again > 0 {
			return again * (maxMade - rest(maxMade, o[1:]))
		}
		return 0
	},
}

// replaced is how much of one text others have in its place; it is not counted where it cannot be much.
func replaced(within, old, text *ast.Term) int {
	if (length(within)+1)*length(text) <= maxMade {
		return 0
	}
	if s, ok := old.Value.(ast.String); ok {
		return marks(within, string(s)) * length(text)
	}
	return 0
}

func length(t *ast.Term) int {
	s, _ := t.Value.(ast.String)
	return len(s)
}

func marks(t *ast.Term, mark string) int {
	s, _ := t.Value.(ast.String)
	return strings.Count(string(s), mark)
}

// maxMade is how many bytes a product may have, and how much may be read by what has a goroutine of its own: that could not
// be stopped, and a value that holds another twice, and that one another twice, is endless to whoever walks through it.
const maxMade = 32 << 20

var errMade = errors.New("it would make too much of its operands")

// bounded refuses what would be too long.
func bounded(f topdown.BuiltinFunc, product func([]*ast.Term) int) topdown.BuiltinFunc {
	return func(bctx topdown.BuiltinContext, operands []*ast.Term, yield func(*ast.Term) error) error {
		if product(operands) > maxMade {
			return errMade
		}
		return f(bctx, operands, yield)
	}
}

// narrow refuses a format whose numbers alone make a long text of a short one.
func narrow(f topdown.BuiltinFunc) topdown.BuiltinFunc {
	return func(bctx topdown.BuiltinContext, operands []*ast.Term, yield func(*ast.Term) error) error {
		format, ok := operands[0].Value.(ast.String)
		if ok && width(string(format)) > maxWidth {
			return errors.New("the widths in the format are too large")
		}
		return f(bctx, operands, yield)
	}
}

const maxWidth = 1 << 20

// width adds up the widths and precisions of a format's verbs. One that stands among the values can be a million.
func width(format string) int {
	sum := 0
	for _, verb := range strings.Split(format, "%")[1:] {
		for i := 0; i < len(verb) && strings.IndexByte("+-# .*[]0123456789", verb[i]) >= 0; {
			digits := len(verb[i:]) - len(strings.TrimLeft(verb[i:], "0123456789"))
			if digits > 0 {
				n, _ := strconv.Atoi(verb[i : i+digits]) // the largest there is, of what is larger
				sum += min(n, maxWidth)
			}
			if verb[i] == '*' {
				sum += 1_000_000
			}
			i += max(digits, 1)
		}
	}
	return sum
}

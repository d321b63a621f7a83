package ijson

import (
	"bytes"
	"math"
	"strconv"
)

const (
	// Any integer of so few digits is a double, and RFC 8785 writes it with the same digits.
	exactDigits = 15
	// No double is written with more digits than these.
	mostDigits = 17
	// strconv, and with it the canonicaliser, cuts exponents of more than five digits. They can matter only after
	// a hundred thousand digits.
	mostExponent = 99_999
)

// numberRule gives the rule that a JSON number breaks, or "". It takes no more time than a constant number of looks
// at each byte, whatever the exponent.
func numberRule(literal []byte) string {
	if len(literal) <= exactDigits && !bytes.ContainsAny(literal, ".eE") {
		return ""
	}
	d := decimalOf(literal)
	if len(d.digits) == 0 {
		return "" // zero, whatever its exponent
	}
	if d.cut {
		return "exponent out of range"
	}
	f, err := strconv.ParseFloat(string(literal), 64)
	switch {
	case err != nil:
		return "number too large for a double"
	case f == 0:
		return "number too close to zero for a double"
	case d.exponent < 0: // a fraction
		return ""
	case len(d.digits) > mostDigits:
		return "integer that a double cannot hold"
	}
	var buf [32]byte
	canonical := decimalOf(strconv.AppendFloat(buf[:0], math.Abs(f), 'e', -1, 64))
	if canonical.exponent != d.exponent || !bytes.Equal(canonical.digits, d.digits) {
		return "integer that a double cannot hold"
	}
	return ""
}

// decimal is a number without its sign: digits × 10^exponent, with no zero at either end of the digits.
type decimal struct {
	digits   []byte
	exponent int
	cut      bool // the written exponent is beyond mostExponent
}

func decimalOf(literal []byte) decimal {
	var d decimal
	mantissa := bytes.TrimPrefix(literal, []byte("-"))
	if i := bytes.IndexAny(mantissa, "eE"); i >= 0 {
		d.exponent, d.cut = exponentOf(mantissa[i+1:])
		mantissa = mantissa[:i]
	}
	digits := mantissa
	if i := bytes.IndexByte(mantissa, '.'); i >= 0 {
		d.exponent -= len(mantissa) - i - 1
		digits = append(append(make([]byte, 0, len(mantissa)), mantissa[:i]...), mantissa[i+1:]...)
	}
	digits = bytes.TrimLeft(digits, "0")
	d.digits = bytes.TrimRight(digits, "0")
	d.exponent += len(digits) - len(d.digits)
	return d
}

func exponentOf(written []byte) (exponent int, cut bool) {
	for _, c := range bytes.TrimLeft(written, "+-") {
		exponent = exponent*10 + int(c-'0')
		if exponent > mostExponent {
			return 0, true
		}
	}
	if written[0] == '-' {
		exponent = -exponent
	}
	return exponent, false
}

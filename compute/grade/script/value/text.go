package value

import (
	"strconv"
	"strings"
)

// string is a value that must be a text.
// String is a value that must be a text.
func String(m *Meter, v Value) string {
	s, ok := v.(string)
	if !ok {
		m.Fail("a %s stands where a string is needed", TypeOf(v))
	}
	return s
}

// formatted is form % v: %s, %r, %d and %%.
func formatted(m *Meter, form string, v Value) Value {
	args, ok := v.(Tuple)
	if !ok {
		args = Tuple{v}
	}
	m.Bytes(len(form))
	var b strings.Builder
	for {
		before, after, more := strings.Cut(form, "%")
		b.WriteString(before)
		if !more {
			break
		}
		if after == "" {
			m.Fail("the form ends with %%")
		}
		verb := after[0]
		if form = after[1:]; verb == '%' {
			b.WriteByte('%')
			continue
		}
		if len(args) == 0 {
			m.Fail("the form has more places than there are values")
		}
		switch verb {
		case 's':
			Text(m, &b, args[0], false, 0)
		case 'r':
			Text(m, &b, args[0], true, 0)
		case 'd':
			n := ToInt(m, args[0])
			b.WriteString(strconv.FormatInt(n, 10))
		default:
			m.Fail("%%%c is not supported: use %%s, %%r or %%d", verb)
		}
		args = args[1:]
	}
	if len(args) > 0 {
		m.Fail("the form has fewer places than there are values")
	}
	return b.String()
}

// ToInt is a number or a bool without its fraction.
func ToInt(m *Meter, v Value) int64 {
	switch x := v.(type) {
	case bool:
		return map[bool]int64{true: 1}[x]
	case int64:
		return x
	case float64:
		if !(x > -1<<63 && x < 1<<63) {
			m.Fail("%s is no integer of 64 bits", floatText(x))
		}
		return int64(x)
	}
	m.Fail("a %s is no integer", TypeOf(v))
	return 0
}

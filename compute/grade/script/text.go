package script

import (
	"strings"

	"github.com/starling-network/starling/compute/grade/script/value"
)

// letters of a text are those of ASCII: no result depends on a version of Unicode.
const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	spaces = " \t\n\v\f\r"
)

// ofString are the methods of texts. Texts are bytes: so are their lengths and indices.
var ofString = methods[string]{
	"strip":  func(m *machine, x string, a arguments) value.Value { return m.stripped(x, a, strings.Trim) },
	"lstrip": func(m *machine, x string, a arguments) value.Value { return m.stripped(x, a, strings.TrimLeft) },
	"rstrip": func(m *machine, x string, a arguments) value.Value { return m.stripped(x, a, strings.TrimRight) },
	"lower":  func(m *machine, x string, a arguments) value.Value { return m.mapped(x, a, upper, lower) },
	"upper":  func(m *machine, x string, a arguments) value.Value { return m.mapped(x, a, lower, upper) },

	"isdigit": func(m *machine, x string, a arguments) value.Value { return m.made(x, a, digits) },
	"isalpha": func(m *machine, x string, a arguments) value.Value { return m.made(x, a, lower+upper) },
	"isalnum": func(m *machine, x string, a arguments) value.Value { return m.made(x, a, lower+upper+digits) },
	"isspace": func(m *machine, x string, a arguments) value.Value { return m.made(x, a, spaces) },

	"startswith": func(m *machine, x string, a arguments) value.Value { return m.begins(x, a, strings.HasPrefix) },
	"endswith":   func(m *machine, x string, a arguments) value.Value { return m.begins(x, a, strings.HasSuffix) },

	"removeprefix": func(m *machine, x string, a arguments) value.Value {
		return strings.TrimPrefix(x, m.part(x, a))
	},
	"removesuffix": func(m *machine, x string, a arguments) value.Value {
		return strings.TrimSuffix(x, m.part(x, a))
	},
	"find":  func(m *machine, x string, a arguments) value.Value { return m.found(x, a, strings.Index) },
	"rfind": func(m *machine, x string, a arguments) value.Value { return m.found(x, a, strings.LastIndex) },
	"index": func(m *machine, x string, a arguments) value.Value {
		at := m.found(x, a, strings.Index)
		if at == int64(-1) {
			m.Fail("the text does not contain %q", value.Clip(a.list[0].(string)))
		}
		return at
	},
	"count": func(m *machine, x string, a arguments) value.Value {
		part := m.part(x, a)
		if part == "" {
			return int64(len(x) + 1)
		}
		return int64(strings.Count(x, part))
	},
	"partition":  func(m *machine, x string, a arguments) value.Value { return m.cut(x, a, strings.Index, false) },
	"rpartition": func(m *machine, x string, a arguments) value.Value { return m.cut(x, a, strings.LastIndex, true) },
	"replace": func(m *machine, x string, a arguments) value.Value {
		m.take(a, 2, 3)
		old, to := value.String(m.Meter, a.list[0]), value.String(m.Meter, a.list[1])
		most := value.Int(m.Meter, a.or(2, int64(-1)))
		if old == "" {
			m.Fail("the text to replace is empty")
		}
		value.Search(m.Meter, x, old)
		m.Bytes(len(x) + strings.Count(x, old)*len(to))
		return strings.Replace(x, old, to, int(min(most, 1<<30)))
	},
	"split": func(m *machine, x string, a arguments) value.Value {
		m.take(a, 0, 2)
		if sep := a.or(0, nil); sep != nil {
			return m.splitAt(x, value.String(m.Meter, sep), value.Int(m.Meter, a.or(1, int64(-1))))
		}
		if len(a.list) > 1 {
			m.Fail("split takes a number of parts only with a separator")
		}
		return m.parts(strings.FieldsFunc(x, func(r rune) bool { return r < 128 && strings.ContainsRune(spaces, r) }), x)
	},
	"splitlines": func(m *machine, x string, a arguments) value.Value {
		m.take(a, 0, 0)
		if x == "" {
			return &value.List{}
		}
		return m.parts(strings.Split(strings.TrimSuffix(x, "\n"), "\n"), x)
	},
	"join": func(m *machine, x string, a arguments) value.Value {
		m.take(a, 1, 1)
		var b strings.Builder
		for i, v := range value.Elements(m.Meter, a.list[0]) {
			s := value.String(m.Meter, v)
			m.Bytes(len(x) + len(s))
			if i > 0 {
				b.WriteString(x)
			}
			b.WriteString(s)
		}
		return b.String()
	},
	"elems": func(m *machine, x string, a arguments) value.Value {
		m.take(a, 0, 0)
		m.Spend(len(x))
		out := &value.List{}
		for i := range len(x) {
			out.Elems = append(out.Elems, x[i:i+1])
		}
		return out
	},
}

// part is the one argument of a method that looks for it in a text.
func (m *machine) part(x string, a arguments) string {
	m.take(a, 1, 1)
	part := value.String(m.Meter, a.list[0])
	value.Search(m.Meter, x, part)
	return part
}

func (m *machine) stripped(x string, a arguments, trim func(s, cutset string) string) value.Value {
	m.take(a, 0, 1)
	set := value.String(m.Meter, a.or(0, spaces))
	if strings.ContainsFunc(set, func(r rune) bool { return r >= 128 }) {
		m.Fail("only characters of ASCII are stripped")
	}
	m.Bytes(len(x) + len(set))
	return trim(x, set)
}

func (m *machine) mapped(x string, a arguments, from, to string) value.Value {
	m.take(a, 0, 0)
	m.Bytes(4 * len(x))
	out := []byte(x)
	for i, c := range out {
		if k := strings.IndexByte(from, c); k >= 0 {
			out[i] = to[k]
		}
	}
	return string(out)
}

// made is whether a text has bytes, all of them in a set.
func (m *machine) made(x string, a arguments, set string) value.Value {
	m.take(a, 0, 0)
	m.Bytes(4 * len(x))
	for i := range len(x) {
		if strings.IndexByte(set, x[i]) < 0 {
			return false
		}
	}
	return x != ""
}

// begins takes a text, or a tuple of some.
func (m *machine) begins(x string, a arguments, has func(s, part string) bool) value.Value {
	m.take(a, 1, 1)
	any, ok := a.list[0].(value.Tuple)
	if !ok {
		any = value.Tuple{a.list[0]}
	}
	for _, v := range any {
		part := value.String(m.Meter, v)
		m.Bytes(len(part))
		if has(x, part) {
			return true
		}
	}
	return false
}

func (m *machine) found(x string, a arguments, index func(s, part string) int) value.Value {
	m.take(a, 1, 3)
	part := value.String(m.Meter, a.list[0])
	value.Search(m.Meter, x, part)
	var given [3]*int64
	for i := 1; i < len(a.list); i++ {
		if a.list[i] != nil {
			n := value.Int(m.Meter, a.list[i])
			given[i-1] = &n
		}
	}
	lo, hi, _ := value.Bounds(m.Meter, len(x), given)
	if lo > hi {
		return int64(-1)
	}
	at := index(x[lo:hi], part)
	if at >= 0 {
		at += lo
	}
	return int64(at)
}

func (m *machine) cut(x string, a arguments, index func(s, part string) int, last bool) value.Value {
	part := m.part(x, a)
	if part == "" {
		m.Fail("the separator is empty")
	}
	switch at := index(x, part); {
	case at >= 0:
		return value.Tuple{x[:at], part, x[at+len(part):]}
	case last:
		return value.Tuple{"", "", x}
	}
	return value.Tuple{x, "", ""}
}

func (m *machine) splitAt(x, sep string, most int64) value.Value {
	if sep == "" {
		m.Fail("the separator is empty")
	}
	value.Search(m.Meter, x, sep)
	if most < 0 || most > int64(len(x)) {
		most = int64(len(x))
	}
	return m.parts(strings.SplitN(x, sep, int(most)+1), x)
}

// parts is a list of parts of a text.
func (m *machine) parts(list_ []string, x string) value.Value {
	m.Bytes(len(x))
	m.Spend(2 * len(list_))
	out := &value.List{}
	for _, s := range list_ {
		out.Elems = append(out.Elems, s)
	}
	return out
}

package script

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/compute/grade/script/value"
)

// take fails unless a call has from least to most arguments, and of the named ones only those of names.
func (m *machine) take(a arguments, least, most int, names ...string) {
	if n := len(a.list); n < least || n > most {
		m.Fail("%d arguments, from %d to %d are taken", n, least, most)
	}
	m.Spend(len(a.named) * (len(names) + len(a.named)) / 2)
	for i, x := range a.named {
		if !slices.Contains(names, x.name) ||
			slices.ContainsFunc(a.named[:i], func(y named) bool { return x.name == y.name }) {
			m.Fail("the argument %s is not taken, or is there twice", x.name)
		}
	}
}

// or is argument i, or another value.Value where there is none.
func (a arguments) or(i int, other value.Value) value.Value {
	if i < len(a.list) {
		return a.list[i]
	}
	return other
}

// called is the argument of a name, or nil.
func (a arguments) called(name string) value.Value {
	for _, x := range a.named {
		if x.name == name {
			return x.v
		}
	}
	return nil
}

// functions are the builtin functions.
var functions = map[string]func(m *machine, a arguments) value.Value{
	"abs": func(m *machine, a arguments) value.Value {
		m.take(a, 1, 1)
		if n, ok := a.list[0].(int64); ok {
			return max(n, value.Sub(m.Meter, 0, n))
		}
		return math.Abs(value.Float(m.Meter, a.list[0]))
	},
	"all": func(m *machine, a arguments) value.Value {
		m.take(a, 1, 1)
		return !slices.ContainsFunc(value.Elements(m.Meter, a.list[0]), func(v value.Value) bool { return !value.Truth(v) })
	},
	"any": func(m *machine, a arguments) value.Value {
		m.take(a, 1, 1)
		return slices.ContainsFunc(value.Elements(m.Meter, a.list[0]), value.Truth)
	},
	"bool": func(m *machine, a arguments) value.Value {
		m.take(a, 0, 1)
		return value.Truth(a.or(0, nil))
	},
	"dict": func(m *machine, a arguments) value.Value {
		m.take(a, 0, 1, namesOf(a)...)
		out := value.NewDict()
		if from, ok := a.or(0, value.Tuple{}).(*value.Dict); ok {
			for i, k := range from.Keys {
				out.Put(m.Meter, k, from.Values[i])
			}
		} else {
			for _, v := range value.Elements(m.Meter, a.or(0, value.Tuple{})) {
				pair := value.Elements(m.Meter, v)
				if len(pair) != 2 {
					m.Fail("an entry of %d values is no pair", len(pair))
				}
				out.Put(m.Meter, pair[0], pair[1])
			}
		}
		for _, x := range a.named {
			out.Put(m.Meter, x.name, x.v)
		}
		return out
	},
	"enumerate": func(m *machine, a arguments) value.Value {
		m.take(a, 1, 2)
		first, out := value.Int(m.Meter, a.or(1, int64(0))), &value.List{}
		for i, v := range value.Elements(m.Meter, a.list[0]) {
			m.Spend(3)
			out.Elems = append(out.Elems, value.Tuple{value.Add(m.Meter, first, int64(i)), v})
		}
		return out
	},
	"fail": func(m *machine, a arguments) value.Value {
		var words []string
		for _, v := range a.list {
			word := value.Str(m.Meter, v)
			m.Bytes(len(word))
			words = append(words, value.Clip(word))
		}
		m.Fail("%s", value.Clip(strings.Join(words, " ")))
		return nil
	},
	"float": func(m *machine, a arguments) value.Value {
		m.take(a, 0, 1)
		switch x := a.or(0, 0.0).(type) {
		case bool:
			return map[bool]float64{true: 1}[x]
		case string:
			return parsedFloat(m, x)
		default:
			return value.Float(m.Meter, x)
		}
	},
	"int":  func(m *machine, a arguments) value.Value { return toInt(m, a) },
	"len":  func(m *machine, a arguments) value.Value { return m.length(a) },
	"list": func(m *machine, a arguments) value.Value { return &value.List{Elems: m.all(a)} },
	"max":  func(m *machine, a arguments) value.Value { return m.extreme(a, 1) },
	"min":  func(m *machine, a arguments) value.Value { return m.extreme(a, -1) },
	"range": func(m *machine, a arguments) value.Value {
		m.take(a, 1, 3)
		from, to, step := int64(0), value.Int(m.Meter, a.list[0]), value.Int(m.Meter, a.or(2, int64(1)))
		if len(a.list) > 1 {
			from, to = to, value.Int(m.Meter, a.list[1])
		}
		const most = 1 << 40
		if step == 0 || max(from, to, step) > most || min(from, to, step) < -most {
			m.Fail("a range with step 0, or of numbers beyond 2^40")
		}
		if step > 0 {
			return value.Span{From: from, Step: step, N: max(0, (to-from+step-1)/step)}
		}
		return value.Span{From: from, Step: step, N: max(0, (from-to-step-1)/-step)}
	},
	"repr": func(m *machine, a arguments) value.Value {
		m.take(a, 1, 1)
		var b strings.Builder
		value.Text(m.Meter, &b, a.list[0], true, 0)
		return b.String()
	},
	"reversed": func(m *machine, a arguments) value.Value {
		out := m.all(a)
		slices.Reverse(out)
		return &value.List{Elems: out}
	},
	"sorted": func(m *machine, a arguments) value.Value { return m.sorted(a) },
	"str": func(m *machine, a arguments) value.Value {
		m.take(a, 1, 1)
		return value.Str(m.Meter, a.list[0])
	},
	"tuple": func(m *machine, a arguments) value.Value { return value.Tuple(m.all(a)) },
	"type": func(m *machine, a arguments) value.Value {
		m.take(a, 1, 1)
		return value.TypeOf(a.list[0])
	},
	"zip": func(m *machine, a arguments) value.Value {
		m.take(a, 0, 64)
		var columns [][]value.Value
		for _, v := range a.list {
			columns = append(columns, value.Elements(m.Meter, v))
		}
		out := &value.List{}
		for i := 0; len(columns) > 0; i++ {
			row := make(value.Tuple, len(columns))
			for k, c := range columns {
				if i >= len(c) {
					return out
				}
				row[k] = c[i]
			}
			m.Spend(2 + len(row))
			out.Elems = append(out.Elems, row)
		}
		return out
	},
}

func namesOf(a arguments) (out []string) {
	for _, x := range a.named {
		out = append(out, x.name)
	}
	return out
}

func isBuiltin(name string) bool {
	return functions[name] != nil || name == "None" || name == "True" || name == "False"
}

func universe() map[string]value.Value {
	out := map[string]value.Value{"None": nil, "True": true, "False": false}
	for name, f := range functions {
		out[name] = &builtin{name, f}
	}
	return out
}

// all are the elements of the one argument, if there is one.
func (m *machine) all(a arguments) []value.Value {
	m.take(a, 0, 1)
	return value.Elements(m.Meter, a.or(0, value.Tuple{}))
}

func (m *machine) length(a arguments) value.Value {
	m.take(a, 1, 1)
	switch x := a.list[0].(type) {
	case string:
		return int64(len(x))
	case value.Tuple:
		return int64(len(x))
	case *value.List:
		return int64(len(x.Elems))
	case *value.Dict:
		return int64(len(x.Keys))
	case value.Span:
		return x.N
	}
	m.Fail("a %s has no length", value.TypeOf(a.list[0]))
	return nil
}

// keyed are the values that elements are compared by.
func (m *machine) keyed(elems []value.Value, by value.Value) []value.Value {
	if by == nil {
		return elems
	}
	out := make([]value.Value, len(elems))
	for i, v := range elems {
		out[i] = m.call(by, []value.Value{v}, nil)
	}
	return out
}

// extreme is the first of the largest values, or of the smallest ones.
func (m *machine) extreme(a arguments, sign int) value.Value {
	m.take(a, 1, math.MaxInt, "key")
	elems := a.list
	if len(elems) == 1 {
		elems = value.Elements(m.Meter, elems[0])
	}
	if len(elems) == 0 {
		m.Fail("the largest or smallest of no values")
	}
	keys, best := m.keyed(elems, a.called("key")), 0
	for i := range keys {
		if value.Compare(m.Meter, keys[i], keys[best], 0)*sign > 0 {
			best = i
		}
	}
	return elems[best]
}

// sorted merges sorted halves, so that equal elements stay in their order and the cost follows from the elements alone.
func (m *machine) sorted(a arguments) value.Value {
	m.take(a, 1, 1, "key", "reverse")
	elems := value.Elements(m.Meter, a.list[0])
	keys, down := m.keyed(elems, a.called("key")), value.Truth(a.called("reverse"))
	order := make([]int, len(elems))
	for i := range order {
		order[i] = i
	}
	after := func(i, j int) bool {
		c := value.Compare(m.Meter, keys[i], keys[j], 0)
		return c > 0 && !down || c < 0 && down
	}
	m.merge(order, make([]int, len(order)), after)
	out := &value.List{}
	for _, i := range order {
		out.Elems = append(out.Elems, elems[i])
	}
	return out
}

func (m *machine) merge(x, spare []int, after func(i, j int) bool) {
	if len(x) < 2 {
		return
	}
	half := len(x) / 2
	m.merge(x[:half], spare[:half], after)
	m.merge(x[half:], spare[half:], after)
	copy(spare, x)
	i, j := 0, half
	for k := range x {
		m.Spend(1)
		if j == len(x) || i < half && !after(spare[i], spare[j]) {
			x[k] = spare[i]
			i++
		} else {
			x[k] = spare[j]
			j++
		}
	}
}

// parsedFloat reads a decimal number, or an infinity or nan as float spells them.
func parsedFloat(m *machine, s string) value.Value {
	m.Spend(256) // of a number with many digits
	m.Bytes(4 * len(s))
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.ContainsAny(s, "xX_") {
		m.Fail("%q is no number", value.Clip(s))
	}
	return x
}

func toInt(m *machine, a arguments) value.Value {
	m.take(a, 1, 2)
	text, ok := a.list[0].(string)
	if !ok {
		m.take(a, 1, 1)
		return value.ToInt(m.Meter, a.list[0])
	}
	base := value.Int(m.Meter, a.or(1, int64(10)))
	m.Bytes(4 * len(text))
	n, err := strconv.ParseInt(text, int(min(max(base, -1), 99)), 64)
	if err != nil || base < 2 {
		m.Fail("%q is no integer of base %d, or has more than 64 bits", value.Clip(text), base)
	}
	return n
}

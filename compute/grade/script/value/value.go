package value

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Value is nil for None, bool, int64, float64, string, Tuple, *List, *Dict, Span or a Function.
type Value any

// Function is a value that can be called.
type Function interface {
	Name() string
	Type() string
}

// Tuple is a tuple, which never changes.
type Tuple []Value

// List is a list; it must not change while a loop goes over it.
type List struct {
	Elems []Value
	Loops int // over it
}

// Span is what range returns: n numbers.
type Span struct{ From, Step, N int64 }

// At is number i.
func (s Span) At(i int64) int64 { return s.From + i*s.Step }

// Dict keeps its entries in the order in which they were added.
type Dict struct {
	Keys, Values []Value
	Loops        int // over it
	places       map[key]int
}

// NewDict returns an empty dict.
func NewDict() *Dict { return &Dict{places: map[key]int{}} }

// key is what a value is found by in a dict: equal for equal values.
type key struct {
	kind byte // of the value; a float without a fraction is as an int
	n    int64
	x    float64
	s    string
}

func keyOf(m *Meter, v Value, depth int) key {
	switch v := v.(type) {
	case nil:
		return key{kind: '0'}
	case bool:
		return key{kind: 'b', n: map[bool]int64{true: 1}[v]}
	case int64:
		return key{kind: 'n', n: v}
	case float64:
		switch {
		case v == math.Trunc(v) && v >= -1<<63 && v < 1<<63:
			return key{kind: 'n', n: int64(v)}
		case v != v:
			return key{kind: '?'}
		}
		return key{kind: 'x', x: v}
	case string:
		m.Bytes(len(v))
		return key{kind: 's', s: v}
	case Tuple:
		Deep(m, depth)
		var b strings.Builder
		for _, e := range v {
			m.Spend(16)
			k := keyOf(m, e, depth+1)
			fmt.Fprintf(&b, "%c%d,%x,%d,%s", k.kind, k.n, math.Float64bits(k.x), len(k.s), k.s)
		}
		m.Bytes(b.Len())
		return key{kind: 't', s: b.String()}
	}
	m.Fail("a %s cannot be a key", TypeOf(v))
	return key{}
}

// Get returns the value of a key.
func (d *Dict) Get(m *Meter, k Value) (Value, bool) {
	m.Spend(1)
	i, ok := d.places[keyOf(m, k, 0)]
	if !ok {
		return nil, false
	}
	return d.Values[i], true
}

// Put sets the value of a key.
func (d *Dict) Put(m *Meter, k, v Value) {
	at := keyOf(m, k, 0)
	m.Spend(4)
	i, ok := d.places[at]
	switch {
	case ok:
		d.Values[i] = v
	case d.Loops > 0:
		m.Fail("a dict is changed while a loop goes over it")
	default:
		d.places[at] = len(d.Keys)
		d.Keys, d.Values = append(d.Keys, k), append(d.Values, v)
	}
}

// Remove takes an entry away, at the cost of those after it.
func (d *Dict) Remove(m *Meter, k Value) (Value, bool) {
	at := keyOf(m, k, 0)
	i, ok := d.places[at]
	if !ok {
		return nil, false
	}
	if d.Loops > 0 {
		m.Fail("a dict is changed while a loop goes over it")
	}
	v := d.Values[i]
	m.Spend(len(d.Keys) - i)
	d.Keys, d.Values = slices.Delete(d.Keys, i, i+1), slices.Delete(d.Values, i, i+1)
	delete(d.places, at)
	for j := i; j < len(d.Keys); j++ {
		d.places[keyOf(m, d.Keys[j], 0)] = j
	}
	return v, true
}

// TypeOf is the name of the type of a value.
func TypeOf(v Value) string {
	switch v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "string"
	case Tuple:
		return "tuple"
	case *List:
		return "list"
	case *Dict:
		return "dict"
	case Span:
		return "range"
	}
	return v.(Function).Type()
}

// Truth is what a condition takes a value for.
func Truth(v Value) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case Tuple:
		return len(v) > 0
	case *List:
		return len(v.Elems) > 0
	case *Dict:
		return len(v.Keys) > 0
	case Span:
		return v.N > 0
	}
	return true
}

// Text is str(v), or repr(v) if quoted.
func Text(m *Meter, b *strings.Builder, v Value, quoted bool, depth int) {
	Deep(m, depth)
	m.Spend(1)
	before := b.Len()
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		b.WriteString(map[bool]string{false: "False", true: "True"}[v])
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(floatText(v))
	case string:
		if quoted {
			quote(b, v)
		} else {
			b.WriteString(v)
		}
	case Tuple:
		texts(m, b, "(", v, map[bool]string{false: ")", true: ",)"}[len(v) == 1], depth)
	case *List:
		texts(m, b, "[", v.Elems, "]", depth)
	case *Dict:
		b.WriteString("{")
		for i, k := range v.Keys {
			if i > 0 {
				b.WriteString(", ")
			}
			Text(m, b, k, true, depth+1)
			b.WriteString(": ")
			Text(m, b, v.Values[i], true, depth+1)
		}
		b.WriteString("}")
	case Span:
		fmt.Fprintf(b, "range(%d, %d, %d)", v.From, v.At(v.N), v.Step)
	case Function:
		b.WriteString("<function " + v.Name() + ">")
	}
	m.Bytes(b.Len() - before)
}

func texts(m *Meter, b *strings.Builder, open string, list []Value, end string, depth int) {
	b.WriteString(open)
	for i, e := range list {
		if i > 0 {
			b.WriteString(", ")
		}
		Text(m, b, e, true, depth+1)
	}
	b.WriteString(end)
}

// floatText is the shortest text that reads as the same number, with a point or an exponent.
func floatText(x float64) string {
	switch {
	case math.IsInf(x, 1):
		return "+inf"
	case math.IsInf(x, -1):
		return "-inf"
	case x != x:
		return "nan"
	}
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// quote writes a text as a literal. Bytes that are not of ASCII stay as they are.
func quote(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteString("\\" + string(rune(c)))
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20 || c == 0x7f:
			fmt.Fprintf(b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}

// Str is a value as a text.
func Str(m *Meter, v Value) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	Text(m, &b, v, false, 0)
	return b.String()
}

// Taken is a value of an argument of Call.
func Taken(m *Meter, x any, depth int) Value {
	Deep(m, depth)
	m.Spend(1)
	switch x := x.(type) {
	case nil, bool, int64, float64:
		return x
	case string:
		m.Bytes(len(x))
		return x
	case []any:
		out := &List{}
		for _, e := range x {
			out.Elems = append(out.Elems, Taken(m, e, depth+1))
		}
		return out
	case map[string]any:
		out := NewDict()
		for _, k := range slices.Sorted(maps.Keys(x)) {
			out.Put(m, k, Taken(m, x[k], depth+1))
		}
		return out
	}
	m.Fail("a %T is no argument", x)
	return nil
}

// Given is a result of Call.
func Given(m *Meter, v Value, depth int) any {
	Deep(m, depth)
	m.Spend(1)
	switch v := v.(type) {
	case nil, bool, int64, float64, string:
		return v
	case Tuple:
		return givenList(m, v, depth)
	case *List:
		return givenList(m, v.Elems, depth)
	case *Dict:
		out := map[string]any{}
		for i, k := range v.Keys {
			name, ok := k.(string)
			if !ok {
				m.Fail("a key of the result is a %s", TypeOf(k))
			}
			out[name] = Given(m, v.Values[i], depth+1)
		}
		return out
	}
	m.Fail("the result is a %s", TypeOf(v))
	return nil
}

func givenList(m *Meter, v []Value, depth int) any {
	m.Spend(len(v))
	out := make([]any, len(v))
	for i, e := range v {
		out[i] = Given(m, e, depth+1)
	}
	return out
}

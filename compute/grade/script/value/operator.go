package value

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"go.starlark.net/syntax"
)

// Int is a value that must be an integer.
func Int(m *Meter, v Value) int64 {
	n, ok := v.(int64)
	if !ok {
		m.Fail("a %s stands where an int is needed", TypeOf(v))
	}
	return n
}

// Float is a value that must be a number.
func Float(m *Meter, v Value) float64 {
	switch v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	m.Fail("a %s stands where a number is needed", TypeOf(v))
	return 0
}

// Unary is op x.
func Unary(m *Meter, op syntax.Token, x Value) Value {
	switch x := x.(type) {
	case int64:
		switch op {
		case syntax.PLUS:
			return x
		case syntax.MINUS:
			return Sub(m, 0, x)
		case syntax.TILDE:
			return ^x
		}
	case float64:
		switch op {
		case syntax.PLUS:
			return x
		case syntax.MINUS:
			return -x
		}
	}
	if op == syntax.NOT {
		return !Truth(x)
	}
	m.Fail("%s has no meaning for a %s", op, TypeOf(x))
	return nil
}

func overflow(m *Meter) { m.Fail("an integer has more than 64 bits") }

// Add fails where the sum has more than 64 bits.
func Add(m *Meter, x, y int64) int64 {
	z := x + y
	if (z > x) != (y > 0) && y != 0 {
		overflow(m)
	}
	return z
}

// Sub fails where the difference has more than 64 bits.
func Sub(m *Meter, x, y int64) int64 {
	z := x - y
	if (z < x) != (y > 0) && y != 0 {
		overflow(m)
	}
	return z
}

func mul(m *Meter, x, y int64) int64 {
	z := x * y
	if x != 0 && (z/x != y || x == -1 && y == math.MinInt64) {
		overflow(m)
	}
	return z
}

// Binary is x op y, for operators that take both operands.
func Binary(m *Meter, op syntax.Token, x, y Value) Value {
	switch op {
	case syntax.EQL:
		return Equal(m, x, y, 0)
	case syntax.NEQ:
		return !Equal(m, x, y, 0)
	case syntax.LT:
		return Compare(m, x, y, 0) < 0
	case syntax.LE:
		return Compare(m, x, y, 0) <= 0
	case syntax.GT:
		return Compare(m, x, y, 0) > 0
	case syntax.GE:
		return Compare(m, x, y, 0) >= 0
	case syntax.IN:
		return contains(m, y, x)
	case syntax.NOT_IN:
		return !contains(m, y, x)
	}
	a, int1 := x.(int64)
	b, int2 := y.(int64)
	_, float1 := x.(float64)
	_, float2 := y.(float64)
	switch {
	case int1 && int2:
		return ints(m, op, a, b)
	case (int1 || float1) && (int2 || float2):
		return floats(m, op, Float(m, x), Float(m, y))
	}
	return sequences(m, op, x, y)
}

func ints(m *Meter, op syntax.Token, x, y int64) Value {
	if y == 0 && (op == syntax.SLASH || op == syntax.SLASHSLASH || op == syntax.PERCENT) {
		m.Fail("division by zero")
	}
	switch op {
	case syntax.PLUS:
		return Add(m, x, y)
	case syntax.MINUS:
		return Sub(m, x, y)
	case syntax.STAR:
		return mul(m, x, y)
	case syntax.SLASH:
		return float64(x) / float64(y)
	case syntax.SLASHSLASH:
		if x == math.MinInt64 && y == -1 {
			overflow(m)
		}
		q := x / y
		if r := x % y; r != 0 && (r < 0) != (y < 0) {
			q--
		}
		return q
	case syntax.PERCENT:
		if y == -1 {
			return int64(0)
		}
		r := x % y
		if r != 0 && (r < 0) != (y < 0) {
			r += y
		}
		return r
	case syntax.AMP:
		return x & y
	case syntax.PIPE:
		return x | y
	case syntax.CIRCUMFLEX:
		return x ^ y
	case syntax.LTLT, syntax.GTGT:
		return shifted(m, op, x, y)
	}
	m.Fail("%s has no meaning for an int and an int", op)
	return nil
}

func shifted(m *Meter, op syntax.Token, x, y int64) Value {
	switch {
	case y < 0:
		m.Fail("a shift by a negative number")
	case op == syntax.GTGT:
		return x >> min(y, 63)
	case x != 0 && (y > 62 || x<<y>>y != x):
		overflow(m)
	}
	return x << y
}

// floats rounds each operation on its own.
func floats(m *Meter, op syntax.Token, x, y float64) Value {
	if y == 0 && (op == syntax.SLASH || op == syntax.SLASHSLASH || op == syntax.PERCENT) {
		m.Fail("division by zero")
	}
	switch op {
	case syntax.PLUS:
		return x + y
	case syntax.MINUS:
		return x - y
	case syntax.STAR:
		return x * y
	case syntax.SLASH:
		return x / y
	case syntax.SLASHSLASH:
		return math.Floor(x / y)
	case syntax.PERCENT:
		_, ex := math.Frexp(x)
		_, ey := math.Frexp(y)
		m.Spend(max(0, ex-ey)) // a division by a much smaller number takes as many steps
		r := math.Mod(x, y)
		if r != 0 && (r < 0) != (y < 0) {
			r += y
		}
		return r
	}
	m.Fail("%s has no meaning for floats", op)
	return nil
}

// sequences are the operators of texts, lists, tuples and dicts.
func sequences(m *Meter, op syntax.Token, x, y Value) Value {
	switch op {
	case syntax.PLUS:
		switch x := x.(type) {
		case string:
			if y, ok := y.(string); ok {
				m.Bytes(len(x) + len(y))
				return x + y
			}
		case Tuple:
			if y, ok := y.(Tuple); ok {
				m.Spend(len(x) + len(y))
				return slices.Concat(x, y)
			}
		case *List:
			if y, ok := y.(*List); ok {
				m.Spend(len(x.Elems) + len(y.Elems))
				return &List{Elems: slices.Concat(x.Elems, y.Elems)}
			}
		}
	case syntax.STAR:
		if n, ok := x.(int64); ok {
			return repeated(m, y, n)
		}
		return repeated(m, x, Int(m, y))
	case syntax.PERCENT:
		if form, ok := x.(string); ok {
			return formatted(m, form, y)
		}
	case syntax.PIPE:
		a, ok1 := x.(*Dict)
		b, ok2 := y.(*Dict)
		if ok1 && ok2 {
			out := NewDict()
			for _, d := range []*Dict{a, b} {
				for i, k := range d.Keys {
					out.Put(m, k, d.Values[i])
				}
			}
			return out
		}
	}
	m.Fail("%s has no meaning for a %s and a %s", op, TypeOf(x), TypeOf(y))
	return nil
}

func repeated(m *Meter, x Value, n int64) Value {
	n = max(n, 0)
	size := func(each int) int { // of the result; the cost is spent before it is made
		if n > int64(m.Left) && each > 0 {
			m.Spend(m.Left + 1)
		}
		return each * int(n)
	}
	switch x := x.(type) {
	case string:
		m.Bytes(size(len(x)))
		return strings.Repeat(x, int(n)*min(len(x), 1))
	case Tuple:
		return Tuple(repeatedList(m, x, size(len(x))))
	case *List:
		return &List{Elems: repeatedList(m, x.Elems, size(len(x.Elems)))}
	}
	m.Fail("* has no meaning for a %s and an int", TypeOf(x))
	return nil
}

func repeatedList(m *Meter, x []Value, size int) (out []Value) {
	m.Spend(size)
	for len(out) < size {
		out = append(out, x...)
	}
	return out
}

// Equal compares numbers by their exact values. Values of other types are equal to no others.
func Equal(m *Meter, x, y Value, depth int) bool {
	Deep(m, depth)
	m.Spend(1)
	switch a := x.(type) {
	case int64, float64:
		switch y.(type) {
		case int64, float64:
			return compareNumbers(x, y) == 0
		}
		return false
	case string:
		b, ok := y.(string)
		m.Bytes(min(len(a), len(b)))
		return ok && a == b
	case Tuple:
		b, ok := y.(Tuple)
		return ok && equalLists(m, a, b, depth)
	case *List:
		b, ok := y.(*List)
		return ok && equalLists(m, a.Elems, b.Elems, depth)
	case *Dict:
		b, ok := y.(*Dict)
		if !ok || len(a.Keys) != len(b.Keys) {
			return false
		}
		for i, k := range a.Keys {
			if v, ok := b.Get(m, k); !ok || !Equal(m, a.Values[i], v, depth+1) {
				return false
			}
		}
		return true
	}
	return x == y // None, a bool, a range of the same numbers, or the same function
}

func equalLists(m *Meter, x, y []Value, depth int) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if !Equal(m, x[i], y[i], depth+1) {
			return false
		}
	}
	return true
}

// Compare orders numbers, texts, bools, lists and tuples. A float that is no number comes after all others.
func Compare(m *Meter, x, y Value, depth int) int {
	Deep(m, depth)
	m.Spend(1)
	switch a := x.(type) {
	case int64, float64:
		switch y.(type) {
		case int64, float64:
			return compareNumbers(x, y)
		}
	case string:
		if b, ok := y.(string); ok {
			m.Bytes(min(len(a), len(b)))
			return strings.Compare(a, b)
		}
	case bool:
		if b, ok := y.(bool); ok {
			number := map[bool]int{true: 1}
			return number[a] - number[b]
		}
	case Tuple:
		if b, ok := y.(Tuple); ok {
			return compareLists(m, a, b, depth)
		}
	case *List:
		if b, ok := y.(*List); ok {
			return compareLists(m, a.Elems, b.Elems, depth)
		}
	}
	m.Fail("a %s and a %s have no order", TypeOf(x), TypeOf(y))
	return 0
}

func compareLists(m *Meter, x, y []Value, depth int) int {
	for i := range min(len(x), len(y)) {
		if !Equal(m, x[i], y[i], depth+1) {
			return Compare(m, x[i], y[i], depth+1)
		}
	}
	return cmp.Compare(len(x), len(y))
}

func compareNumbers(x, y Value) int {
	a, int1 := x.(int64)
	b, int2 := y.(int64)
	switch {
	case int1 && int2:
		return cmp.Compare(a, b)
	case int1:
		return compareMixed(a, y.(float64))
	case int2:
		return -compareMixed(b, x.(float64))
	}
	return compareFloats(x.(float64), y.(float64))
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a == a: // and b is no number
		return -1
	case b == b:
		return 1
	}
	return 0
}

// compareMixed compares without rounding the integer.
func compareMixed(a int64, b float64) int {
	switch {
	case b != b || b >= 1<<63:
		return -1
	case b < -1<<63:
		return 1
	}
	whole := math.Trunc(b)
	if c := cmp.Compare(a, int64(whole)); c != 0 {
		return c
	}
	return compareFloats(whole, b)
}

package value

import (
	"slices"
	"strings"
)

// Elements are those of a value that has some: a copy, at the cost of their number.
func Elements(m *Meter, v Value) []Value {
	switch v := v.(type) {
	case Tuple:
		m.Spend(len(v))
		return slices.Clone(v)
	case *List:
		m.Spend(len(v.Elems))
		return slices.Clone(v.Elems)
	case *Dict:
		m.Spend(len(v.Keys))
		return slices.Clone(v.Keys)
	case Span:
		if v.N > int64(m.Left) {
			m.Spend(m.Left + 1)
		}
		m.Spend(int(v.N))
		out := make([]Value, v.N)
		for i := range out {
			out[i] = v.At(int64(i))
		}
		return out
	}
	m.Fail("a %s has no elements", TypeOf(v))
	return nil
}

// Place is the place of index k among n elements.
func Place(m *Meter, k Value, n int) int {
	i := Int(m, k)
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		m.Fail("index %d of %d elements", Int(m, k), n)
	}
	return int(i)
}

// Index is x[k].
func Index(m *Meter, x, k Value) Value {
	switch x := x.(type) {
	case string:
		i := Place(m, k, len(x))
		return x[i : i+1]
	case Tuple:
		return x[Place(m, k, len(x))]
	case *List:
		return x.Elems[Place(m, k, len(x.Elems))]
	case Span:
		return x.At(int64(Place(m, k, int(min(x.N, 1<<62)))))
	case *Dict:
		v, ok := x.Get(m, k)
		if !ok {
			m.Fail("the dict has no key %s", Clip(Str(m, k)))
		}
		return v
	}
	m.Fail("a %s has no index", TypeOf(x))
	return nil
}

// SetIndex sets x[k].
func SetIndex(m *Meter, x, k, v Value) {
	switch x := x.(type) {
	case *List:
		Changes(m, x)
		x.Elems[Place(m, k, len(x.Elems))] = v
	case *Dict:
		x.Put(m, k, v)
	default:
		m.Fail("elements of a %s cannot be set", TypeOf(x))
	}
}

// Changes fails if a loop goes over a list.
func Changes(m *Meter, l *List) {
	if l.Loops > 0 {
		m.Fail("a list is changed while a loop goes over it")
	}
}

// Extend adds the elements of a value to a list.
func Extend(m *Meter, l *List, by Value) {
	elems := Elements(m, by)
	Changes(m, l)
	l.Elems = append(l.Elems, elems...)
}

// contains is whether x is in of.
func contains(m *Meter, of, x Value) bool {
	switch of := of.(type) {
	case string:
		if part, ok := x.(string); ok {
			Search(m, of, part)
			return strings.Contains(of, part)
		}
		m.Fail("a %s is in no string", TypeOf(x))
	case *Dict:
		_, ok := of.Get(m, x)
		return ok
	case Span:
		return slices.ContainsFunc(Elements(m, of), func(v Value) bool { return Equal(m, v, x, 0) })
	case Tuple:
		return slices.ContainsFunc(of, func(v Value) bool { return Equal(m, v, x, 0) })
	case *List:
		return slices.ContainsFunc(of.Elems, func(v Value) bool { return Equal(m, v, x, 0) })
	default:
		m.Fail("a %s contains nothing", TypeOf(of))
	}
	return false
}

// Search is the cost of looking for a part in a text.
func Search(m *Meter, text, part string) { m.Bytes(2 * (len(text) + len(part))) }

// Bounds are the first index of a slice of n elements, the one that it ends before, and the step.
func Bounds(m *Meter, n int, given [3]*int64) (lo, hi, step int) {
	step = 1
	if given[2] != nil {
		step = int(min(max(*given[2], -int64(n)-1), int64(n)+1))
	}
	if step == 0 {
		m.Fail("the step of a slice is 0")
	}
	least, most := 0, n
	if step < 0 {
		least, most = -1, n-1
	}
	at := func(b *int64, absent int) int {
		switch {
		case b == nil:
			return absent
		case *b < 0:
			return max(int(max(*b, -int64(n)-1))+n, least)
		}
		return int(min(*b, int64(most)))
	}
	if step < 0 {
		return at(given[0], most), at(given[1], -1), step
	}
	return at(given[0], 0), at(given[1], n), step
}

// Places are the indices of a slice of n elements.
func Places(m *Meter, n int, given [3]*int64) (out []int) {
	lo, hi, step := Bounds(m, n, given)
	for i := lo; step > 0 && i < hi || step < 0 && i > hi; i += step {
		m.Spend(1)
		out = append(out, i)
	}
	return out
}

package chat

import (
	"fmt"
	"strings"
)

// An expression gives a nil, bool, int, string, []any or map[string]any.
type expression interface {
	eval(r *renderer) (any, error)
}

type literal struct{ v any }

func (x literal) eval(*renderer) (any, error) { return x.v, nil }

type variable string

func (x variable) eval(r *renderer) (any, error) { return r.vars[string(x)], nil }

// call is an operator, a filter, a test or a method, by its name, on its operands.
type call struct {
	name string
	args []expression
}

func (x call) eval(r *renderer) (any, error) {
	if err := r.step(); err != nil {
		return nil, err
	}
	first, err := x.args[0].eval(r)
	if err != nil {
		return nil, err
	}
	switch x.name { // that may not look at the rest
	case "and", "or":
		if truth(first) == (x.name == "or") {
			return first, nil
		}
		return x.args[1].eval(r)
	case "if":
		if truth(first) {
			return x.args[1].eval(r)
		}
		return x.args[2].eval(r)
	}
	values := []any{first}
	for _, a := range x.args[1:] {
		v, err := a.eval(r)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	f := functions[x.name]
	if len(values) != f.args {
		return nil, fmt.Errorf("%w: %s takes %d values, not %d", ErrRender, x.name, f.args, len(values))
	}
	return f.of(values)
}

// function is what a call does once its operands are known.
type function struct {
	args int
	of   func(v []any) (any, error)
}

var functions = map[string]function{
	"and": {2, nil}, "or": {2, nil}, "if": {3, nil},
	"not": {1, func(v []any) (any, error) { return !truth(v[0]), nil }},
	"==":  {2, func(v []any) (any, error) { return equal(v[0], v[1]), nil }},
	"!=":  {2, func(v []any) (any, error) { return !equal(v[0], v[1]), nil }},
	"<":   {2, numbers(func(a, b int) any { return a < b })},
	">":   {2, numbers(func(a, b int) any { return a > b })},
	"<=":  {2, numbers(func(a, b int) any { return a <= b })},
	">=":  {2, numbers(func(a, b int) any { return a >= b })},
	"-":   {2, numbers(func(a, b int) any { return a - b })},
	"%":   {2, remainder}, "+": {2, add}, "~": {2, concat}, "in": {2, contains}, "at": {2, at}, "slice": {3, slice},
	"is defined": {1, func(v []any) (any, error) { return v[0] != nil, nil }},
	"is none":    {1, func(v []any) (any, error) { return v[0] == nil, nil }},
	"is string":  {1, func(v []any) (any, error) { _, ok := v[0].(string); return ok, nil }},
	"|length":    {1, length},
	"|trim":      {1, text(strings.TrimSpace)}, "|upper": {1, text(strings.ToUpper)}, "|lower": {1, text(strings.ToLower)},
	"|string": {1, func(v []any) (any, error) { return show(v[0]), nil }},
	".strip":  {1, text(strings.TrimSpace)}, ".upper": {1, text(strings.ToUpper)}, ".lower": {1, text(strings.ToLower)},
	".lstrip":     {1, text(func(s string) string { return strings.TrimLeft(s, " \t\r\n") })},
	".rstrip":     {1, text(func(s string) string { return strings.TrimRight(s, " \t\r\n") })},
	".startswith": {2, texts(strings.HasPrefix)}, ".endswith": {2, texts(strings.HasSuffix)},
	"raise_exception": {1, func(v []any) (any, error) { return nil, fmt.Errorf("%w: %.200s", ErrRaised, show(v[0])) }},
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case nil, bool, int, string:
		return a == b
	}
	return false
}

func wrong(what string) error { return fmt.Errorf("%w: %s", ErrRender, what) }

func numbers(f func(a, b int) any) func(v []any) (any, error) {
	return func(v []any) (any, error) {
		a, ok1 := v[0].(int)
		b, ok2 := v[1].(int)
		if !ok1 || !ok2 {
			return nil, wrong("a number is wanted")
		}
		return f(a, b), nil
	}
}

// remainder has the sign of the divisor, as in Python.
func remainder(v []any) (any, error) {
	a, ok1 := v[0].(int)
	b, ok2 := v[1].(int)
	if !ok1 || !ok2 || b == 0 {
		return nil, wrong("a number other than 0 is wanted")
	}
	m := a % b
	if m != 0 && (m < 0) != (b < 0) {
		m += b
	}
	return m, nil
}

func add(v []any) (any, error) {
	a, ok1 := v[0].(string)
	b, ok2 := v[1].(string)
	if ok1 && ok2 {
		return joined(a, b)
	}
	return numbers(func(a, b int) any { return a + b })(v)
}

func concat(v []any) (any, error) { return joined(show(v[0]), show(v[1])) }

func joined(a, b string) (any, error) {
	if len(a)+len(b) > maxOutput {
		return nil, wrong("a text is too long")
	}
	return a + b, nil
}

func contains(v []any) (any, error) {
	switch in := v[1].(type) {
	case string:
		s, ok := v[0].(string)
		return ok && strings.Contains(in, s), nil
	case []any:
		for _, x := range in {
			if equal(x, v[0]) {
				return true, nil
			}
		}
		return false, nil
	case map[string]any:
		s, _ := v[0].(string)
		_, ok := in[s]
		return ok, nil
	}
	return nil, wrong("in wants a text, a list or a mapping")
}

// at is a member by its name or number; nil if there is none.
func at(v []any) (any, error) {
	switch of := v[0].(type) {
	case map[string]any:
		s, _ := v[1].(string)
		return of[s], nil
	case []any:
		i, ok := v[1].(int)
		if i < 0 {
			i += len(of)
		}
		if !ok || i < 0 || i >= len(of) {
			return nil, nil
		}
		return of[i], nil
	}
	return nil, wrong("a member of a value without members")
}

func slice(v []any) (any, error) {
	of, ok := v[0].([]any)
	if !ok {
		return nil, wrong("a slice of a value that is no list")
	}
	bound := func(x any, fallback int) (int, error) {
		if x == nil {
			return fallback, nil
		}
		i, ok := x.(int)
		if !ok {
			return 0, wrong("a bound is a number")
		}
		if i < 0 {
			i += len(of)
		}
		return min(max(i, 0), len(of)), nil
	}
	lo, err := bound(v[1], 0)
	if err != nil {
		return nil, err
	}
	hi, err := bound(v[2], len(of))
	if err != nil {
		return nil, err
	}
	return of[min(lo, hi):hi], nil
}

func length(v []any) (any, error) {
	switch of := v[0].(type) {
	case string:
		return len([]rune(of)), nil
	case []any:
		return len(of), nil
	}
	return nil, wrong("the length of a value that has none")
}

func text(f func(string) string) func(v []any) (any, error) {
	return func(v []any) (any, error) {
		s, ok := v[0].(string)
		if !ok {
			return nil, wrong("a text is wanted")
		}
		return f(s), nil
	}
}

func texts(f func(a, b string) bool) func(v []any) (any, error) {
	return func(v []any) (any, error) {
		a, ok1 := v[0].(string)
		b, ok2 := v[1].(string)
		if !ok1 || !ok2 {
			return nil, wrong("a text is wanted")
		}
		return f(a, b), nil
	}
}

package grade

import (
	"encoding/json"
	"math/bits"
	"strconv"
	"strings"
)

// object reads a JSON object as values of a script: no integers but those of 64 bits. Of other texts it is empty.
func object(text string) map[string]any {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out map[string]any
	if d.Decode(&out) != nil {
		return map[string]any{}
	}
	for k, v := range out {
		out[k] = plain(v)
	}
	return out
}

func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return n
		}
		x, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return nil
		}
		return x
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return v
}

// countdown is whether a text is an expression of + - * / and brackets that has a value, and takes its numbers from a
// list, each once at most. Space, an equals sign with the text after it, and a full stop at the end do not count.
func countdown(text string, numbers, value any) bool {
	list, ok1 := numbers.([]any)
	want, ok2 := value.(int64)
	text, _, _ = strings.Cut(text, "=")
	text = strings.TrimSuffix(strings.Trim(text, spaces), ".")
	if !ok1 || !ok2 || text == "" {
		return false
	}
	e := expression{left: map[int64]int{}, text: strings.Map(func(r rune) rune {
		if strings.ContainsRune(spaces, r) {
			return -1
		}
		return r
	}, text)}
	for _, n := range list {
		if i, ok := n.(int64); ok {
			e.left[i]++
		}
	}
	got := e.sum(0)
	return !e.wrong && e.at == len(e.text) && got.over == 1 && got.n == want
}

// expression is read from left to right. wrong is set by text that is no expression, takes a number too often, divides
// by zero, or has values beyond 31 bits.
type expression struct {
	text  string
	at    int
	left  map[int64]int // how often a number may be taken
	wrong bool
}

// fraction is n/over with over > 0.
type fraction struct{ n, over int64 }

// deepest is how many brackets may be open.
const deepest = 64

func (e *expression) next(of string) byte {
	if e.at < len(e.text) && strings.IndexByte(of, e.text[e.at]) >= 0 {
		e.at++
		return e.text[e.at-1]
	}
	return 0
}

func (e *expression) sum(depth int) fraction {
	x := e.product(depth)
	for op := e.next("+-"); op != 0 && !e.wrong; op = e.next("+-") {
		y := e.product(depth)
		if op == '-' {
			y.n = -y.n
		}
		x = e.fraction(x.n*y.over+y.n*x.over, x.over*y.over)
	}
	return x
}

func (e *expression) product(depth int) fraction {
	x := e.factor(depth)
	for op := e.next("*/"); op != 0 && !e.wrong; op = e.next("*/") {
		y := e.factor(depth)
		if op == '/' {
			y = fraction{y.over, y.n}
		}
		x = e.fraction(x.n*y.n, x.over*y.over)
	}
	return x
}

func (e *expression) factor(depth int) fraction {
	if e.next("(") != 0 && depth < deepest {
		x := e.sum(depth + 1)
		e.wrong = e.wrong || e.next(")") == 0
		return x
	}
	from := e.at
	for e.next("0123456789") != 0 {
	}
	n, err := strconv.ParseInt(e.text[from:e.at], 10, 32)
	if err != nil || e.left[n] == 0 {
		e.wrong = true
		return fraction{0, 1}
	}
	e.left[n]--
	return fraction{n, 1}
}

// fraction is in lowest terms. Both parts of those that it is made from have 31 bits, so that the products fit.
func (e *expression) fraction(n, over int64) fraction {
	if over == 0 {
		e.wrong = true
		return fraction{0, 1}
	}
	if over < 0 {
		n, over = -n, -over
	}
	a, b := max(n, -n), over
	for b != 0 {
		a, b = b, a%b
	}
	n, over = n/a, over/a
	if bits.Len64(uint64(max(n, -n))) > 31 || bits.Len64(uint64(over)) > 31 {
		e.wrong = true
		return fraction{0, 1}
	}
	return fraction{n, over}
}

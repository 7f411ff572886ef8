// Package fields reads the keys of a config.json of the Hugging Face ecosystem one by one, with defaults and limits,
// and reports the first one that is wrong, with a fix.
//
// It knows kinds of values. Which keys a model has is known by compute/model/architecture.
package fields

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Error says which key of a configuration is wrong, why, and what to write instead.
type Error struct {
	Key     string
	Problem string
	Fix     string
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("model: config key %q: %s; %s", e.Key, e.Problem, e.Fix)
}

// Reader reads a configuration key by key, remembers the keys it was asked for, and keeps the first error.
type Reader struct {
	Raw   map[string]any
	known []string
	Err   error // the first one, an *Error

	Published bool // of a model that was trained already: another value would be another model
}

// Get returns the value of a key; null counts as absent.
func (f *Reader) Get(key string) (value any, ok bool) {
	f.known = append(f.known, key)
	value = f.Raw[key]
	return value, value != nil
}

// Fail keeps an error about a key, unless there is one already.
func (f *Reader) Fail(key, problem, fix string) {
	if f.Err == nil {
		f.Err = &Error{Key: key, Problem: problem, Fix: fix}
	}
}

// Size reads an integer in [1, limit] that may stand under several keys. On an error it returns 1, so that reading can
// continue.
func (f *Reader) Size(key string, fallback, limit int, aliases ...string) int {
	n, first := fallback, ""
	for _, name := range append([]string{key}, aliases...) {
		if _, ok := f.Get(name); !ok {
			continue
		}
		m := f.oneSize(name, fallback, limit)
		if first != "" && m != n {
			f.Fail(name, fmt.Sprintf("%d contradicts %q, which is %d", m, first, n), "leave one of them out")
		}
		n, first = m, name
	}
	return n
}

// Sizes reads a list of integers in [1, limit], which may be empty. most bounds its length.
func (f *Reader) Sizes(key string, fallback []int, most, limit int) []int {
	v, ok := f.Get(key)
	if !ok {
		return fallback
	}
	list, ok := v.([]any)
	sizes := make([]int, len(list))
	for i, x := range list {
		n, whole := Integer(x)
		ok = ok && whole && n >= 1 && n <= limit
		sizes[i] = n
	}
	if !ok || len(list) > most {
		f.Fail(key, fmt.Sprintf("%v is no list of at most %d whole numbers from 1 to %d", v, most, limit),
			fmt.Sprintf("for example %v", fallback))
		return nil
	}
	return sizes
}

func (f *Reader) oneSize(key string, fallback, limit int) int {
	v := f.Raw[key]
	n, ok := Integer(v)
	if !ok || n < 1 || n > limit {
		f.Fail(key, fmt.Sprintf("%v is no whole number from 1 to %d", v, limit), fmt.Sprintf("for example %d", fallback))
		return 1
	}
	return n
}

// Positive reads a number in (0, limit].
func (f *Reader) Positive(key string, fallback, limit float64) float64 {
	v, ok := f.Get(key)
	if !ok {
		return fallback
	}
	x, ok := number(v)
	if !ok || !(x > 0) || x > limit {
		f.Fail(key, fmt.Sprintf("%v is no number above 0 and up to %g", v, limit), fmt.Sprintf("for example %g", fallback))
		return fallback
	}
	return x
}

// Flag reads true or false.
func (f *Reader) Flag(key string, fallback bool) bool {
	v, ok := f.Get(key)
	if !ok {
		return fallback
	}
	b, ok := v.(bool)
	if !ok {
		f.Fail(key, fmt.Sprintf("%v is neither true nor false", v), fmt.Sprintf("the default is %t", fallback))
	}
	return b
}

// Only accepts a key if it has one of the values, which are all the same to this package. Without values, a key is
// accepted only if it is absent or null.
func (f *Reader) Only(key string, values ...any) {
	v, ok := f.Get(key)
	if !ok {
		return
	}
	for _, want := range values {
		x, isNumber := number(want)
		if y, ok := number(v); v == want || isNumber && ok && x == y {
			return
		}
	}
	fix := "leave the key out"
	if len(values) > 0 {
		fix = fmt.Sprintf("write %v, or leave the key out", values[0])
	}
	f.Fail(key, fmt.Sprintf("%v is not supported", v), f.Advice(fix))
}

// OtherModel is the advice about a key that a trained model needs: without it, its weights mean something else.
const OtherModel = "the weights were trained with it, so that it cannot be changed; use another base model"

// Advice is what to do about a key whose value is not supported: fix, where the model is still to be made.
func (f *Reader) Advice(fix string) string {
	if f.Published {
		return OtherModel
	}
	return fix
}

// Word reads one of the words of a table.
func Word[T any](f *Reader, key, fallback string, table map[string]T) string {
	v, ok := f.Get(key)
	if !ok {
		return fallback
	}
	s, _ := v.(string)
	if _, ok := table[s]; !ok {
		f.Fail(key, fmt.Sprintf("%v is not supported", v),
			f.Advice("use one of "+strings.Join(slices.Sorted(maps.Keys(table)), ", ")))
		return fallback
	}
	return s
}

// Optional reads a number in (0, limit], 0 if the key is absent.
func (f *Reader) Optional(key string, limit float64) float64 {
	if _, ok := f.Get(key); !ok {
		return 0
	}
	return f.Positive(key, 1, limit)
}

// Token reads the id of a special token; -1 is none. Of a list of ids the first counts.
func (f *Reader) Token(key string, vocab int) int {
	v, ok := f.Get(key)
	if list, isList := v.([]any); isList && len(list) > 0 {
		v = list[0]
	}
	if !ok {
		return -1
	}
	id, ok := Integer(v)
	if !ok || id < 0 || id >= vocab {
		f.Fail(key, fmt.Sprintf("%v is no id of a vocabulary of %d", v, vocab), "write an id of the tokenizer, or null")
		return -1
	}
	return id
}

// Group reads the keys of an object inside the configuration with read.
func (f *Reader) Group(key string, read func(inner *Reader)) {
	v, ok := f.Get(key)
	if !ok {
		return
	}
	raw, ok := v.(map[string]any)
	if !ok {
		f.Fail(key, fmt.Sprintf("%v is not an object", v), "write key: value pairs, or leave it out")
		return
	}
	inner := &Reader{Raw: raw, Published: f.Published}
	read(inner)
	if bad := (*Error)(nil); errors.As(inner.Finish(), &bad) {
		f.Fail(key+"."+bad.Key, bad.Problem, bad.Fix)
	}
}

// Ignore accepts keys whatever their values are.
func (f *Reader) Ignore(keys ...string) { f.known = append(f.known, keys...) }

// Finish returns the first error, or an error for a key that was not asked for.
func (f *Reader) Finish() error {
	for _, key := range f.Unknown() {
		f.Fail(key, "unknown key", f.Advice("remove it"+DidYouMean(key, f.known)))
	}
	return f.Err
}

// Unknown lists the keys that were not asked for, ascending.
func (f *Reader) Unknown() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.Raw)),
		func(key string) bool { return slices.Contains(f.known, key) })
}

// Integer returns the whole number that a decoder of JSON or YAML gave, if it is one.
func Integer(v any) (int, bool) {
	x, ok := number(v)
	return int(x), ok && x == math.Trunc(x) && math.Abs(x) < 1<<53
}

// number reads whatever Go type a JSON or YAML decoder gives to a number.
func number(v any) (float64, bool) {
	switch x := v.(type) {
	case float64:
		return x, !math.IsNaN(x) && !math.IsInf(x, 0)
	case int:
		return float64(x), true
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case json.Number:
		y, err := x.Float64()
		return y, err == nil
	}
	return 0, false
}

// DidYouMean returns ", did you mean ...?" with the known word closest to a misspelt one, or nothing.
func DidYouMean(word string, known []string) string {
	best, least := "", 1+max(2, len(word)/4)
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), k); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// editDistance is the number of letters to insert, delete or replace to turn a into b (Levenshtein 1966).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

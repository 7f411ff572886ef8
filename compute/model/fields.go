package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// ConfigError says which key of a configuration is wrong, why, and what to write instead.
type ConfigError struct {
	Key     string
	Problem string
	Fix     string
}

// Error implements error.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("model: config key %q: %s; %s", e.Key, e.Problem, e.Fix)
}

// fields reads a configuration key by key, remembers the keys it was asked for, and keeps the first error.
type fields struct {
	raw   map[string]any
	known []string
	err   error

	published bool // of a model that somebody trained: another value would be another model
}

// get returns the value of a key; null counts as absent.
func (f *fields) get(key string) (value any, ok bool) {
	f.known = append(f.known, key)
	value = f.raw[key]
	return value, value != nil
}

func (f *fields) fail(key, problem, fix string) {
	if f.err == nil {
		f.err = &ConfigError{Key: key, Problem: problem, Fix: fix}
	}
}

// size reads an integer in [1, limit] that may stand under several keys. On an error it returns 1, so that reading can
// go on.
func (f *fields) size(key string, fallback, limit int, aliases ...string) int {
	n, first := fallback, ""
	for _, name := range append([]string{key}, aliases...) {
		if _, ok := f.get(name); !ok {
			continue
		}
		m := f.oneSize(name, fallback, limit)
		if first != "" && m != n {
			f.fail(name, fmt.Sprintf("%d contradicts %q, which is %d", m, first, n), "leave one of them out")
		}
		n, first = m, name
	}
	return n
}

func (f *fields) oneSize(key string, fallback, limit int) int {
	v := f.raw[key]
	n, ok := integer(v)
	if !ok || n < 1 || n > limit {
		f.fail(key, fmt.Sprintf("%v is no whole number from 1 to %d", v, limit), fmt.Sprintf("for example %d", fallback))
		return 1
	}
	return n
}

// positive reads a number in (0, limit].
func (f *fields) positive(key string, fallback, limit float64) float64 {
	v, ok := f.get(key)
	if !ok {
		return fallback
	}
	x, ok := number(v)
	if !ok || !(x > 0) || x > limit {
		f.fail(key, fmt.Sprintf("%v is no number above 0 and up to %g", v, limit), fmt.Sprintf("for example %g", fallback))
		return fallback
	}
	return x
}

func (f *fields) flag(key string, fallback bool) bool {
	v, ok := f.get(key)
	if !ok {
		return fallback
	}
	b, ok := v.(bool)
	if !ok {
		f.fail(key, fmt.Sprintf("%v is neither true nor false", v), fmt.Sprintf("the default is %t", fallback))
	}
	return b
}

// only accepts a key if it has one of the values, which are all the same to this package. Without values, a key is
// accepted only if it is absent or null.
func (f *fields) only(key string, values ...any) {
	v, ok := f.get(key)
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
	f.fail(key, fmt.Sprintf("%v is not supported", v), f.advice(fix))
}

// otherModel is the advice about a key that a trained model needs: without it, its weights mean something else.
const otherModel = "the weights were trained with it, so that it cannot be changed; use another base model"

// advice is what to do about a key whose value is not supported: fix, where the model is still to be made.
func (f *fields) advice(fix string) string {
	if f.published {
		return otherModel
	}
	return fix
}

// word reads one of the words of a table.
func word[T any](f *fields, key, fallback string, table map[string]T) string {
	v, ok := f.get(key)
	if !ok {
		return fallback
	}
	s, _ := v.(string)
	if _, ok := table[s]; !ok {
		f.fail(key, fmt.Sprintf("%v is not supported", v),
			f.advice("use one of "+strings.Join(slices.Sorted(maps.Keys(table)), ", ")))
		return fallback
	}
	return s
}

// optional reads a number in (0, limit], 0 if the key is absent.
func (f *fields) optional(key string, limit float64) float64 {
	if _, ok := f.get(key); !ok {
		return 0
	}
	return f.positive(key, 1, limit)
}

// token reads the id of a special token; -1 is none. Of a list of ids the first counts.
func (f *fields) token(key string, vocab int) int {
	v, ok := f.get(key)
	if list, isList := v.([]any); isList && len(list) > 0 {
		v = list[0]
	}
	if !ok {
		return -1
	}
	id, ok := integer(v)
	if !ok || id < 0 || id >= vocab {
		f.fail(key, fmt.Sprintf("%v is no id of a vocabulary of %d", v, vocab), "write an id of the tokenizer, or null")
		return -1
	}
	return id
}

// group reads the keys of an object inside the configuration with read.
func (f *fields) group(key string, read func(inner *fields)) {
	v, ok := f.get(key)
	if !ok {
		return
	}
	raw, ok := v.(map[string]any)
	if !ok {
		f.fail(key, fmt.Sprintf("%v is not an object", v), "write key: value pairs, or leave it out")
		return
	}
	inner := &fields{raw: raw, published: f.published}
	read(inner)
	if bad := (*ConfigError)(nil); errors.As(inner.finish(), &bad) {
		f.fail(key+"."+bad.Key, bad.Problem, bad.Fix)
	}
}

func (f *fields) ignore(keys ...string) { f.known = append(f.known, keys...) }

// finish returns the first error, or an error for a key that nobody asked for.
func (f *fields) finish() error {
	for _, key := range f.unknown() {
		f.fail(key, "unknown key", f.advice("remove it"+didYouMean(key, f.known)))
	}
	return f.err
}

// unknown lists the keys that nobody asked for.
func (f *fields) unknown() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.raw)),
		func(key string) bool { return slices.Contains(f.known, key) })
}

func integer(v any) (int, bool) {
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

// didYouMean returns ", did you mean ...?" with the known word closest to a misspelt one, or nothing.
func didYouMean(word string, known []string) string {
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

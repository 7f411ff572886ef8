package strict

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spelling"
)

// Key is one key of a section, from the tags of its field:
//
//	job:"name,options"  the key. Options: required; null (an explicit null leaves the default); local (it belongs to
//	                    one machine, so Local is set)
//	in:"(0,1]"          the interval a number must lie in
//	one:"a b"           the words a text may be; longer lists are in the method Words of the section
//	size:"[1,8]"        the interval the length of a list must lie in
//	example:"..."       a value to show where the key is missing
//	old:"key"           the name of the key in the previous version, which is still read
//	oldone:"c=a d=b"    words of the previous version, which are still read, with the words that replace them
type Key struct {
	Index                 int // of the field in its struct
	Name                  string
	Required, Null, Local bool
	In, Size              Interval
	One                   []string
	Kind                  reflect.Type
	Old                   string            // name of the key in the previous version; "": the same
	OldOne                map[string]string // words by those of the previous version

	sample string
}

// Interval is a range of numbers; the zero value is no bound.
type Interval struct {
	Low, High         float64
	LowOpen, HighOpen bool
	Given             bool
}

func (r Interval) holds(x float64) bool {
	return !r.Given || ((x > r.Low || !r.LowOpen && x == r.Low) && (x < r.High || !r.HighOpen && x == r.High))
}

// String says the interval in words.
func (r Interval) String() string {
	low, high := "at least ", "at most "
	if r.LowOpen {
		low = "above "
	}
	if r.HighOpen {
		high = "below "
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	switch {
	case math.IsInf(r.High, 1):
		return low + number(r.Low)
	case r.Low == r.High:
		return "exactly " + number(r.Low)
	}
	return low + number(r.Low) + " and " + high + number(r.High)
}

// parseInterval reads "[0,1)" and "(0,inf)". A tag that it cannot read is a mistake of this package.
func parseInterval(s string) Interval {
	if s == "" {
		return Interval{}
	}
	low, high, ok := strings.Cut(s[1:len(s)-1], ",")
	r := Interval{Given: true, LowOpen: s[0] == '(', HighOpen: s[len(s)-1] == ')'}
	var err1, err2 error
	r.Low, err1 = strconv.ParseFloat(low, 64)
	r.High, err2 = strconv.ParseFloat(high, 64)
	if !ok || err1 != nil || err2 != nil {
		panic("job: bad interval " + s)
	}
	return r
}

// lister is a section that lists the words of keys, by the name of the key, where they do not fit in a tag.
type lister interface{ Words() map[string]string }

// Keys reads the tags of a section, in the order of its fields. Fields without a tag are no keys.
func Keys(t reflect.Type) []Key {
	words := map[string]string{}
	if l, ok := reflect.Zero(t).Interface().(lister); ok {
		words = l.Words()
	}
	keys := make([]Key, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		options := strings.Split(tag.Get("job"), ",")
		if options[0] == "" {
			continue
		}
		keys = append(keys, Key{
			Index:    i,
			Name:     options[0],
			Required: slices.Contains(options, "required"),
			Null:     slices.Contains(options, "null"),
			Local:    slices.Contains(options, "local"),
			In:       parseInterval(tag.Get("in")),
			Size:     parseInterval(tag.Get("size")),
			One:      strings.Fields(cmp.Or(tag.Get("one"), words[options[0]])),
			Kind:     t.Field(i).Type,
			Old:      tag.Get("old"),
			OldOne:   oldWords(tag.Get("oldone")),
			sample:   tag.Get("example"),
		})
	}
	return keys
}

func oldWords(tag string) map[string]string {
	words := map[string]string{}
	for _, pair := range strings.Fields(tag) {
		old, now, _ := strings.Cut(pair, "=")
		words[old] = now
	}
	return words
}

// check holds a decoded value against the tag of its key.
func (d *Decoder) check(path string, n *yaml.Node, f Key, v reflect.Value) {
	if d.bad[path] {
		return
	}
	if v.Kind() == reflect.Slice {
		if count := v.Len(); !f.Size.holds(float64(count)) {
			d.report(d.at(n), path, problem.BadValue, fmt.Sprintf("%s has %d elements", path, count),
				"it must have "+f.Size.String(), "add or remove elements")
		}
		for i := range v.Len() {
			d.checkOne(join(path, strconv.Itoa(i)), n.Content[i], f, v.Index(i))
		}
		return
	}
	d.checkOne(path, n, f, v)
}

func (d *Decoder) checkOne(path string, n *yaml.Node, f Key, v reflect.Value) {
	if d.bad[path] {
		return
	}
	if x, ok := number(v); ok && !f.In.holds(x) {
		d.report(d.at(n), path, problem.BadValue, fmt.Sprintf("%s is %s", path, Clip(n.Value)),
			"it must be "+f.In.String()+unit(v),
			"choose a value in that range")
	}
	if now, old := f.OldOne[v.String()]; old && v.Kind() == reflect.String {
		d.Note(path, fmt.Sprintf("%s is called %s now, and the next version will not read the old word", v.String(), now))
		v.SetString(now)
	}
	if v.Kind() == reflect.String && len(f.One) > 0 {
		d.checkWord(path, n, f, v.String())
	}
}

func (d *Decoder) checkWord(path string, n *yaml.Node, f Key, word string) {
	choices := strings.Join(f.One, ", ")
	switch {
	case slices.Contains(f.One, word):
	default:
		fix := "use " + choices
		if guess := spelling.Nearest(word, f.One); guess != "" {
			fix = fmt.Sprintf("did you mean %s?", guess)
		}
		d.report(d.at(n), path, problem.BadValue, fmt.Sprintf("%s: %q is not one of its values", path, Clip(word)),
			"the values are "+choices, fix)
	}
}

// number is the value that an interval bounds; durations count in seconds.
func number(v reflect.Value) (float64, bool) {
	if t, ok := v.Addr().Interface().(Timed); ok {
		return t.Seconds(), true
	}
	switch {
	case v.CanInt():
		return float64(v.Int()), true
	case v.CanUint():
		return float64(v.Uint()), true
	case v.CanFloat():
		return v.Float(), true
	}
	return 0, false
}

func unit(v reflect.Value) string {
	if _, ok := v.Addr().Interface().(Timed); ok {
		return " seconds"
	}
	return ""
}

// example shows a key with a value in its place.
func (f Key) example() string {
	switch {
	case f.sample != "":
		return f.Name + ": " + f.sample
	case len(f.One) > 0:
		return fmt.Sprintf("%s: %s", f.Name, f.One[0])
	case f.Kind.Kind() == reflect.Struct:
		return "a section " + f.Name + ":"
	}
	return f.Name + ": ..."
}

// elsewhere guesses which key of another section was meant: the one that other trainers call so, the ones of that
// very name, or those of nearly that name. It returns whole paths.
func (d *Decoder) elsewhere(word string) []string {
	if p, ok := d.aliases[word]; ok {
		return []string{p}
	}
	byName := map[string][]string{}
	var names []string
	Walk("", d.root, func(path string, k Key) {
		byName[k.Name] = append(byName[k.Name], path)
		names = append(names, k.Name)
	})
	near := spelling.Nearest(word, names)
	if len(near) < 3 && near != word { // words of two letters are near to any other
		return nil
	}
	return byName[near]
}

// Walk visits every key of a section and of the sections in it, with its path from that of the section.
func Walk(path string, t reflect.Type, visit func(path string, k Key)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	for _, f := range Keys(t) {
		visit(join(path, f.Name), f)
		Walk(join(path, f.Name), f.Kind, visit)
	}
}

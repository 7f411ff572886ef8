package job

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/spelling"
)

// field is one key of a section, as its tag says.
type field struct {
	index                 int
	name                  string
	required, null, local bool
	in, size              interval
	one                   []string
	kind                  reflect.Type
}

// interval is a range of numbers; the zero value is no bound.
type interval struct {
	text            string
	low, high       float64
	lowOpen, hiOpen bool
}

func (r interval) holds(x float64) bool {
	return r.text == "" || ((x > r.low || !r.lowOpen && x == r.low) && (x < r.high || !r.hiOpen && x == r.high))
}

// String says the interval in words.
func (r interval) String() string {
	low, high := "at least ", "at most "
	if r.lowOpen {
		low = "above "
	}
	if r.hiOpen {
		high = "below "
	}
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	switch {
	case math.IsInf(r.high, 1):
		return low + number(r.low)
	case r.low == r.high:
		return "exactly " + number(r.low)
	}
	return low + number(r.low) + " and " + high + number(r.high)
}

// parseInterval reads "[0,1)" and "(0,inf)". A tag that it cannot read is a mistake of this package.
func parseInterval(s string) interval {
	if s == "" {
		return interval{}
	}
	low, high, ok := strings.Cut(s[1:len(s)-1], ",")
	r := interval{text: s, lowOpen: s[0] == '(', hiOpen: s[len(s)-1] == ')'}
	var err1, err2 error
	r.low, err1 = strconv.ParseFloat(low, 64)
	r.high, err2 = strconv.ParseFloat(high, 64)
	if !ok || err1 != nil || err2 != nil {
		panic("job: bad interval " + s)
	}
	return r
}

// keysOf reads the tags of a section, in the order of its fields.
func keysOf(t reflect.Type) []field {
	fields := make([]field, 0, t.NumField())
	for i := range t.NumField() {
		tag := t.Field(i).Tag
		options := strings.Split(tag.Get("job"), ",")
		fields = append(fields, field{
			index:    i,
			name:     options[0],
			required: slices.Contains(options, "required"),
			null:     slices.Contains(options, "null"),
			local:    slices.Contains(options, "local"),
			in:       parseInterval(tag.Get("in")),
			size:     parseInterval(tag.Get("size")),
			one:      strings.Fields(tag.Get("one")),
			kind:     t.Field(i).Type,
		})
	}
	return fields
}

// check holds a decoded value against the tag of its key.
func (d *decoder) check(path string, n *yaml.Node, f field, v reflect.Value) {
	if d.bad[path] {
		return
	}
	if v.Kind() == reflect.Slice {
		if count := v.Len(); !f.size.holds(float64(count)) {
			d.report(d.at(n), path, CodeBadValue, fmt.Sprintf("%s has %d elements", path, count),
				"it must have "+f.size.String(), "add or remove elements")
		}
		for i := range v.Len() {
			d.checkOne(join(path, strconv.Itoa(i)), n.Content[i], f, v.Index(i))
		}
		return
	}
	d.checkOne(path, n, f, v)
}

func (d *decoder) checkOne(path string, n *yaml.Node, f field, v reflect.Value) {
	if d.bad[path] {
		return
	}
	if x, ok := number(v); ok && !f.in.holds(x) {
		d.report(d.at(n), path, CodeBadValue, fmt.Sprintf("%s is %s", path, clip(n.Value)),
			"it must be "+f.in.String()+unit(v),
			"choose a value in that range")
	}
	if v.Kind() == reflect.String && len(f.one) > 0 {
		d.checkWord(path, n, f, v.String())
	}
}

func (d *decoder) checkWord(path string, n *yaml.Node, f field, word string) {
	choices := strings.Join(f.one, ", ")
	switch {
	case slices.Contains(f.one, word):
	default:
		fix := "use " + choices
		if guess := spelling.Nearest(word, f.one); guess != "" {
			fix = fmt.Sprintf("did you mean %s?", guess)
		}
		d.report(d.at(n), path, CodeBadValue, fmt.Sprintf("%s: %q is not one of its values", path, clip(word)),
			"the values are "+choices, fix)
	}
}

// number is the value that an interval bounds; durations count in seconds.
func number(v reflect.Value) (float64, bool) {
	switch {
	case v.Type() == reflect.TypeFor[Duration]():
		return time.Duration(v.Int()).Seconds(), true
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
	if v.Type() == reflect.TypeFor[Duration]() {
		return " seconds"
	}
	return ""
}

// example shows a key with a value in its place.
func example(f field, path string) string {
	switch {
	case len(f.one) > 0:
		return fmt.Sprintf("%s: %s", f.name, f.one[0])
	case f.kind == reflect.TypeFor[[]Dataset]():
		return `datasets: [{path: "./data/*.txt"}]`
	case f.kind.Kind() == reflect.Struct:
		return "a section " + f.name + ":"
	case path == "training.max_steps":
		return "max_steps: 1000"
	}
	return f.name + ": ..."
}

// spoken are names that other trainers give to our keys.
var spoken = map[string]string{
	"output_dir": "output.dir", "model_type": "model.architecture", "tokenizer_type": "model.tokenizer",
	"model_name_or_path": "model.base_model", "num_train_epochs": "training.num_epochs", "max_seq_len": "sequence_len",
	"seq_len": "sequence_len", "cutoff_len": "sequence_len", "per_device_train_batch_size": "training.micro_batch_size",
	"train_batch_size": "training.global_batch_size", "batch_size": "training.global_batch_size",
	"lr":                "training.learning_rate",
	"lr_scheduler_type": "training.lr_scheduler", "eval_steps": "eval.every_steps", "save_steps": "checkpoint.every_steps",
	"save_total_limit": "checkpoint.keep_last", "steps": "training.max_steps", "report_to": "tracking",
	"keep_latest_k": "checkpoint.keep_last", "dataset": "datasets",
}

// elsewhere guesses which key of another section was meant: the one that other trainers call so, the ones of that
// very name, or those of nearly that name. It returns whole paths.
func elsewhere(word string) []string {
	if p, ok := spoken[word]; ok {
		return []string{p}
	}
	byName := map[string][]string{}
	var names []string
	walk("", reflect.TypeFor[Spec](), func(path, name string) {
		byName[name] = append(byName[name], path)
		names = append(names, name)
	})
	near := spelling.Nearest(word, names)
	if len(near) < 3 && near != word { // words of two letters are near to any other
		return nil
	}
	return byName[near]
}

// walk visits every key of a section and of the sections in it.
func walk(path string, t reflect.Type, visit func(path, name string)) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[Tokenizer]() {
		return
	}
	for _, f := range keysOf(t) {
		visit(join(path, f.name), f.name)
		walk(join(path, f.name), f.kind, visit)
	}
}

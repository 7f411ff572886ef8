package job

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/spelling"
)

// mark is where a value stands.
type mark struct {
	file         string
	line, column int
}

// decoder reads YAML nodes into Spec as its tags say, and collects everything that is wrong on the way. Paths are
// the keys from the top, joined by points; elements of lists are numbered from 0: datasets.0.path.
type decoder struct {
	file     string
	origin   map[*yaml.Node]string // nodes that came from an override
	marks    map[string]mark       // of values, by path
	bad      map[string]bool       // paths with a problem
	problems []*Error
}

// node is implemented by values with more than one YAML form.
type node interface {
	decode(d *decoder, path string, n *yaml.Node)
}

func (d *decoder) at(n *yaml.Node) mark {
	if from, ok := d.origin[n]; ok {
		return mark{file: from}
	}
	return mark{d.file, n.Line, n.Column}
}

func (d *decoder) report(at mark, path, code, what, why, fix string) {
	d.bad[path] = true
	d.problems = append(d.problems,
		&Error{Code: code, File: at.file, Line: at.line, Column: at.column, What: what, Why: why, Fix: fix})
}

func (d *decoder) wrongType(path string, n *yaml.Node, want string) {
	why, fix := "a job file is strict: nothing is converted or guessed", "give "+want
	if isNull(n) {
		why, fix = "an empty value does not stand for the default", fix+", or remove the key"
	}
	d.report(d.at(n), path, CodeWrongType, fmt.Sprintf("%s is %s", path, describe(n)), why, fix)
}

// value decodes n into v, which holds the defaults.
func (d *decoder) value(path string, n *yaml.Node, v reflect.Value) {
	d.marks[path] = d.at(n)
	switch t := v.Addr().Interface().(type) {
	case node:
		t.decode(d, path, n)
		return
	case text:
		if n.Kind != yaml.ScalarNode || isNull(n) {
			d.wrongType(path, n, wanted(v))
		} else if err := t.parse(n.Value); err != nil {
			d.report(d.at(n), path, CodeBadValue, fmt.Sprintf("%s: %q is not valid", path, clip(n.Value)), err.Error(),
				"give "+wanted(v))
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.section(path, n, v)
	case reflect.Pointer:
		if isNull(n) {
			return
		}
		p := reflect.New(v.Type().Elem())
		fill(p.Interface())
		d.value(path, n, p.Elem())
		v.Set(p)
	case reflect.Slice:
		d.elements(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	default:
		d.scalar(path, n, v)
	}
}

func (d *decoder) scalar(path string, n *yaml.Node, v reflect.Value) {
	tag, ok := n.ShortTag(), false
	if n.Kind == yaml.ScalarNode {
		switch v.Kind() {
		case reflect.String:
			if ok = tag == "!!str"; ok {
				v.SetString(n.Value)
			}
		case reflect.Bool:
			ok = tag == "!!bool" && n.Decode(v.Addr().Interface()) == nil
		case reflect.Int, reflect.Uint64:
			ok = tag == "!!int" && n.Decode(v.Addr().Interface()) == nil
		case reflect.Float64:
			ok = (tag == "!!int" || tag == "!!float") && n.Decode(v.Addr().Interface()) == nil &&
				!math.IsInf(v.Float(), 0) && !math.IsNaN(v.Float())
		default:
			panic("job: no decoder for " + v.Type().String())
		}
	}
	if !ok {
		d.wrongType(path, n, wanted(v))
	}
}

func (d *decoder) elements(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.wrongType(path, n, wanted(v))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		fill(list.Index(i).Addr().Interface())
		d.value(join(path, strconv.Itoa(i)), c, list.Index(i))
	}
	v.Set(list)
}

// mapping decodes a mapping whose keys are not ours: labels, and the model's config.
func (d *decoder) mapping(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(path, n, wanted(v))
		return
	}
	out := reflect.MakeMap(v.Type())
	d.pairs(path, n, func(key string, _, val *yaml.Node) {
		e := reflect.New(v.Type().Elem()).Elem()
		if e.Kind() == reflect.Interface {
			d.marks[join(path, key)] = d.at(val)
			if raw := d.raw(join(path, key), val); raw != nil {
				e.Set(reflect.ValueOf(raw))
			}
		} else {
			d.value(join(path, key), val, e)
		}
		out.SetMapIndex(reflect.ValueOf(key), e)
	})
	v.Set(out)
}

// raw decodes a value of no known type: nil, bool, int, float64, string, []any or map[string]any.
func (d *decoder) raw(path string, n *yaml.Node) any {
	d.marks[path] = d.at(n)
	switch n.Kind {
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, c := range n.Content {
			out[i] = d.raw(join(path, strconv.Itoa(i)), c)
		}
		return out
	case yaml.MappingNode:
		out := map[string]any{}
		d.pairs(path, n, func(key string, _, val *yaml.Node) { out[key] = d.raw(join(path, key), val) })
		return out
	}
	var v any
	if err := n.Decode(&v); err != nil {
		d.wrongType(path, n, "a number, true or false, text, a list or a mapping")
		return nil
	}
	switch v.(type) {
	case nil, bool, int, float64, string:
		return v
	}
	d.wrongType(path, n, "a number below 2^63, true or false, or text (in quotes if it looks like a date)")
	return nil
}

// pairs visits the keys of a mapping once each.
func (d *decoder) pairs(path string, n *yaml.Node, visit func(key string, k, v *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			d.report(d.at(k), path, CodeBadYAML, "a key that is "+describe(k), "keys are plain words", "write key: value")
			continue
		}
		if first, dup := seen[k.Value]; dup {
			d.report(d.at(k), join(path, k.Value), CodeDuplicateKey,
				fmt.Sprintf("%s is given twice", join(path, k.Value)),
				fmt.Sprintf("line %d already gives it, and nothing says which one counts", first), "remove one of the two")
			continue
		}
		seen[k.Value] = k.Line
		visit(k.Value, k, v)
	}
}

func (d *decoder) section(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.wrongType(path, n, "a section of keys")
		return
	}
	fields := keysOf(v.Type())
	d.pairs(path, n, func(key string, k, val *yaml.Node) {
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == key })
		if i < 0 {
			d.unknown(path, k, fields)
			return
		}
		f := fields[i]
		if isNull(val) && f.null {
			return
		}
		d.value(join(path, key), val, v.Field(f.index))
		d.check(join(path, key), val, f, v.Field(f.index))
	})
	for _, f := range fields {
		if p := join(path, f.name); f.required && !d.bad[p] && d.marks[p] == (mark{}) {
			d.report(d.at(n), p, CodeMissingKey, fmt.Sprintf("%s is missing", p), "it has no default", "add "+example(f, p))
		}
	}
}

func (d *decoder) unknown(path string, k *yaml.Node, siblings []field) {
	names := make([]string, len(siblings))
	for i, f := range siblings {
		names[i] = f.name
	}
	fix := "remove it; the keys here are " + strings.Join(names, ", ")
	if s := spelling.Nearest(k.Value, names); s != "" {
		fix = fmt.Sprintf("did you mean %s?", s)
		d.bad[join(path, s)] = true // given, if misspelt: not missing as well
	} else if paths := elsewhere(k.Value); len(paths) > 0 {
		fix = fmt.Sprintf("did you mean %s?", strings.Join(paths, " or "))
		d.bad[paths[0]] = true
	}
	where := "at the top of a job file"
	if path != "" {
		where = "in " + path
	}
	d.report(d.at(k), join(path, k.Value), CodeUnknownKey, fmt.Sprintf("unknown key %q %s", clip(k.Value), where),
		"an unknown key would be ignored silently, so it is an error", fix)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// clip keeps a stranger's text short enough for one line.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:57]) + "..."
	}
	return s
}

// describe names what a node is, for "X is ...".
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section of keys"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty (null)"
	case "!!str":
		return fmt.Sprintf("the text %q", clip(n.Value))
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	}
	return clip(n.Value)
}

// wanted names what a value of a type must be, for "give ...".
func wanted(v reflect.Value) string {
	switch v.Addr().Interface().(type) {
	case *Size:
		return "a size such as 16GB"
	case *Bandwidth:
		return "a bandwidth such as 10Mbps"
	case *Duration:
		return "a duration such as 10m"
	case *Amount:
		return "an amount of ZEN such as 25 or 0.40"
	case *Auto:
		return "auto or a whole number"
	case *AtLeast:
		return "a least number such as 4+"
	}
	switch v.Kind() {
	case reflect.String:
		return "text (in quotes if it looks like something else)"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Uint64:
		return "a whole number such as 100"
	case reflect.Float64:
		return "a finite number such as 0.5"
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			return "a list: every element on lines of its own, the first of them starting with a hyphen"
		}
		return "a list such as [a, b]"
	}
	return "a section of keys"
}

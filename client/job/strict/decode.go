// Package strict decodes the YAML of a job file into structs whose tags are the grammar of the file. Every key, type
// and bound is checked, everything wrong is found at once with its place, and nothing is converted, guessed or ignored.
// The package does not know the keys of a job, nor whether two of them fit together.
package strict

import (
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

// Decoder decodes one file, and collects its problems.
type Decoder struct {
	Findings
	file    string
	aliases map[string]string     // paths of keys, by the names that other programs give them
	root    reflect.Type          // of the top of the file
	origin  map[*yaml.Node]string // nodes that came from an override
	renamed map[string]string     // paths of keys, by their paths in the previous version

	Variants Variants // of the file; zero: it has none
}

// Text is a value that parses itself from one YAML scalar. The error of Parse says what is accepted, with an example;
// Wanted describes a valid value.
type Text interface {
	Parse(s string) error
	Wanted() string
}

// Timed is a value whose bounds are in seconds.
type Timed interface{ Seconds() float64 }

// Defaulter is an element of a list, or an optional section, that has defaults of its own.
type Defaulter interface{ SetDefaults() }

// Node is a value with more than one YAML form.
type Node interface {
	Decode(d *Decoder, path string, n *yaml.Node)
}

// New makes a decoder of the file of that name. Aliases are paths of keys by the names that other programs give them:
// the problem of an unknown key of such a name suggests the path.
func New(file string, aliases map[string]string) *Decoder {
	return &Decoder{file: file, aliases: aliases, origin: map[*yaml.Node]string{},
		Findings: Findings{marks: Marks{}, bad: map[string]bool{}}}
}

// Decode decodes a file, with the keys of its chosen variant, then with overrides of the form key=value in their order,
// into a pointer to a struct that holds the defaults. It reports whether the file is YAML of a job file at all; Err has
// the problems.
func (d *Decoder) Decode(source []byte, overrides []string, into any) bool {
	root := d.document(source)
	if root == nil {
		return false
	}
	v := reflect.ValueOf(into).Elem()
	d.root = v.Type()
	d.renamed = oldPaths(d.root)
	d.renameKeys(root)
	of, rest := d.Variants.divide(overrides)
	for _, o := range of {
		d.override(root, o)
	}
	d.Variants.choose(root, rest)
	for _, o := range rest {
		d.override(root, o)
	}
	d.renameKeys(root) // of sections that overrides give
	d.Value("", root, v)
	return true
}

// ReportAt adds a problem of a key at the place of a node.
func (d *Decoder) ReportAt(n *yaml.Node, path, code, what, why, fix string) {
	d.report(d.at(n), path, code, what, why, fix)
}

func (d *Decoder) at(n *yaml.Node) Mark {
	if from, ok := d.origin[n]; ok {
		return Mark{File: from}
	}
	return Mark{d.file, n.Line, n.Column}
}

// WrongType reports that a node is not of the wanted type.
func (d *Decoder) WrongType(path string, n *yaml.Node, want string) {
	why, fix := "a job file is strict: nothing is converted or guessed", "give "+want
	if isNull(n) {
		why, fix = "an empty value does not stand for the default", fix+", or remove the key"
	}
	d.report(d.at(n), path, problem.WrongType, fmt.Sprintf("%s is %s", path, describe(n)), why, fix)
}

// Value decodes n into v, which holds the defaults.
func (d *Decoder) Value(path string, n *yaml.Node, v reflect.Value) {
	d.marks[path] = d.at(n)
	switch t := v.Addr().Interface().(type) {
	case Node:
		t.Decode(d, path, n)
		return
	case Text:
		if n.Kind != yaml.ScalarNode || isNull(n) {
			d.WrongType(path, n, wanted(v))
		} else if err := t.Parse(n.Value); err != nil {
			d.report(d.at(n), path, problem.BadValue, fmt.Sprintf("%s: %q is not valid", path, Clip(n.Value)), err.Error(),
				"give "+wanted(v))
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.Section(path, n, v)
	case reflect.Pointer:
		if isNull(n) {
			return
		}
		p := reflect.New(v.Type().Elem())
		setDefaults(p.Interface())
		d.Value(path, n, p.Elem())
		v.Set(p)
	case reflect.Slice:
		d.elements(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	default:
		d.Scalar(path, n, v)
	}
}

// Scalar decodes a text, a truth value or a number.
func (d *Decoder) Scalar(path string, n *yaml.Node, v reflect.Value) {
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
		d.WrongType(path, n, wanted(v))
	}
}

func setDefaults(section any) {
	if s, ok := section.(Defaulter); ok {
		s.SetDefaults()
	}
}

func (d *Decoder) elements(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.SequenceNode {
		d.WrongType(path, n, wanted(v))
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, c := range n.Content {
		setDefaults(list.Index(i).Addr().Interface())
		d.Value(join(path, strconv.Itoa(i)), c, list.Index(i))
	}
	v.Set(list)
}

// mapping decodes a mapping whose keys are not ours: labels, and the model's config.
func (d *Decoder) mapping(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(path, n, wanted(v))
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
			d.Value(join(path, key), val, e)
		}
		out.SetMapIndex(reflect.ValueOf(key), e)
	})
	v.Set(out)
}

// raw decodes a value of no known type: nil, bool, int, float64, string, []any or map[string]any.
func (d *Decoder) raw(path string, n *yaml.Node) any {
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
		d.WrongType(path, n, "a number, true or false, text, a list or a mapping")
		return nil
	}
	switch v.(type) {
	case nil, bool, int, float64, string:
		return v
	}
	d.WrongType(path, n, "a number below 2^63, true or false, or text (in quotes if it looks like a date)")
	return nil
}

// pairs visits the keys of a mapping once each.
func (d *Decoder) pairs(path string, n *yaml.Node, visit func(key string, k, v *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			d.report(d.at(k), path, problem.BadYAML, "a key that is "+describe(k), "keys are plain words", "write key: value")
			continue
		}
		if first, dup := seen[k.Value]; dup {
			d.report(d.at(k), join(path, k.Value), problem.DuplicateKey,
				fmt.Sprintf("%s is given twice", join(path, k.Value)),
				fmt.Sprintf("line %d already gives it, and nothing says which one counts", first), "remove one of the two")
			continue
		}
		seen[k.Value] = k.Line
		visit(k.Value, k, v)
	}
}

// Section decodes a mapping into a struct.
func (d *Decoder) Section(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.WrongType(path, n, "a section of keys")
		return
	}
	fields := Keys(v.Type())
	d.pairs(path, n, func(key string, k, val *yaml.Node) {
		i := slices.IndexFunc(fields, func(f Key) bool { return f.Name == key })
		if i < 0 {
			d.unknown(path, k, fields)
			return
		}
		f := fields[i]
		if isNull(val) && f.Null {
			return
		}
		d.Value(join(path, key), val, v.Field(f.Index))
		d.check(join(path, key), val, f, v.Field(f.Index))
	})
	for _, f := range fields {
		if p := join(path, f.Name); f.Required && !d.bad[p] && d.marks[p] == (Mark{}) {
			d.report(d.at(n), p, problem.MissingKey, fmt.Sprintf("%s is missing", p), "it has no default", "add "+f.example())
		}
	}
}

// Element decodes a node as the value of one key of a section, which stands there without the key.
func (d *Decoder) Element(path, key string, n *yaml.Node, v reflect.Value) {
	for _, f := range Keys(v.Type()) {
		if f.Name == key {
			d.Value(join(path, key), n, v.Field(f.Index))
			d.check(join(path, key), n, f, v.Field(f.Index))
		}
	}
}

func (d *Decoder) unknown(path string, k *yaml.Node, siblings []Key) {
	names := make([]string, len(siblings))
	for i, f := range siblings {
		names[i] = f.Name
	}
	fix := "remove it; the keys here are " + strings.Join(names, ", ")
	if s := spelling.Nearest(k.Value, names); s != "" {
		fix = fmt.Sprintf("did you mean %s?", s)
		d.bad[join(path, s)] = true // given, if misspelt: not missing as well
	} else if paths := d.elsewhere(k.Value); len(paths) > 0 {
		fix = fmt.Sprintf("did you mean %s?", strings.Join(paths, " or "))
		d.bad[paths[0]] = true
	}
	where := "at the top of a job file"
	if path != "" {
		where = "in " + path
	}
	d.report(d.at(k), join(path, k.Value), problem.UnknownKey, fmt.Sprintf("unknown key %q %s", Clip(k.Value), where),
		"an unknown key would be ignored silently, so it is an error", fix)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

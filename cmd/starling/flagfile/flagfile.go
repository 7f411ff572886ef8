// Package flagfile reads the flags of a command from a file, for machines that start it by themselves. The flags
// describe the file: each key is the name of a flag, and the JSON Schema is made of the same flags, so that neither can
// say something else than the command does.
//
// A file is YAML, strict as job files are: everything wrong with it is found at once, each with its line and column.
package flagfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	yaml "go.yaml.in/yaml/v3"

	"github.com/starling-network/starling/client/job/spelling"
	"github.com/starling-network/starling/cmd/starling/terminal"
)

// MaxBytes bounds a file.
const MaxBytes = 64 << 10

// Keys that say what a file is.
const (
	keyVersion = "apiVersion"
	keyKind    = "kind"
	version    = "starling/v1"
)

// Form is what files of one kind may say.
type Form struct {
	Kind   string         // value of the key kind: Worker
	Flags  *pflag.FlagSet // of the command
	Except []string       // flags that are no keys
}

// names are the flags that are keys, in alphabetical order.
func (f Form) names() (names []string) {
	f.Flags.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(f.Except, flag.Name) {
			names = append(names, flag.Name)
		}
	})
	return names
}

// Read sets the flags that a file gives and the command line does not: the command line wins. The error joins a
// *terminal.Problem for everything that is wrong.
func (f Form) Read(path string) error {
	var text []byte
	file, err := os.Open(path)
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(file, MaxBytes+1))
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return &terminal.Problem{Code: "CONFIG_FILE_NOT_FOUND", What: "cannot read " + path, Why: err.Error(),
			Fix: "check the path; examples/worker.yaml is a file to start from"}
	}
	r := &reader{Form: f, path: path, line: map[string]int{}, meant: map[string]bool{}}
	r.document(text)
	return errors.Join(r.problems...)
}

// reader reads one file.
type reader struct {
	Form
	path     string
	line     map[string]int  // of keys
	meant    map[string]bool // keys that were misspelt
	problems []error
}

func (r *reader) report(at *yaml.Node, code, what, why, fix string) {
	r.problems = append(r.problems, &terminal.Problem{Code: "CONFIG_" + code,
		Place: fmt.Sprintf("%s:%d:%d", r.path, at.Line, at.Column), What: what, Why: why, Fix: fix})
}

func (r *reader) document(text []byte) {
	top := &yaml.Node{Line: 1, Column: 1}
	if len(text) > MaxBytes {
		r.report(top, "BAD_YAML", "the file is too large", fmt.Sprintf("it may have %d bytes", MaxBytes),
			"give the file of a worker")
		return
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); err != nil || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		why := "it is not a list of keys with values"
		if err != nil {
			why = err.Error()
		}
		r.report(top, "BAD_YAML", "the file cannot be read as YAML", why, "start from examples/worker.yaml")
		return
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		r.report(top, "BAD_YAML", "there is more than one document in the file", "only the first would count",
			"remove the others")
	}
	pairs := doc.Content[0].Content
	for i := 0; i+1 < len(pairs); i += 2 {
		r.pair(pairs[i], pairs[i+1])
	}
	for _, key := range []string{keyVersion, keyKind} {
		if r.line[key] == 0 && !r.meant[key] {
			r.report(top, "MISSING_KEY", key+" is missing", "it says what the file is", "add "+key+": "+r.word(key))
		}
	}
}

// word is the only value of a key that says what the file is.
func (r *reader) word(key string) string {
	if key == keyKind {
		return r.Kind
	}
	return version
}

// pair reads a key and its value.
func (r *reader) pair(k, v *yaml.Node) {
	key := k.Value
	if first := r.line[key]; first > 0 {
		r.report(k, "DUPLICATE_KEY", key+" is given twice",
			fmt.Sprintf("line %d gives it, and nothing says which one counts", first), "remove one of the two")
		return
	}
	r.line[key] = k.Line
	if key == keyVersion || key == keyKind {
		if want := r.word(key); v.Kind != yaml.ScalarNode || v.Value != want {
			r.report(v, "BAD_VALUE", fmt.Sprintf("%s is not %s", key, want), "a file says what it is", "write "+key+": "+want)
		}
		return
	}
	names := r.names()
	if k.Kind != yaml.ScalarNode || !slices.Contains(names, key) {
		fix := "remove it; the keys are " + strings.Join(append([]string{keyVersion, keyKind}, names...), ", ")
		if guess := spelling.Nearest(key, append(names, keyVersion, keyKind)); guess != "" {
			fix = "did you mean " + guess + "?"
			r.meant[guess] = true
		}
		r.report(k, "UNKNOWN_KEY", fmt.Sprintf("unknown key %q", key),
			"an unknown key would be ignored silently, so it is an error", fix)
		return
	}
	flag := r.Flags.Lookup(key)
	t := typeOf(flag.Value)
	texts, ok := t.read(v)
	if !ok {
		r.report(v, "WRONG_TYPE", key+" has a value of another type", "the file is strict: nothing is converted or guessed",
			"give "+t.wanted)
		return
	}
	if flag.Changed {
		return // the command line wins
	}
	if err := r.set(flag, texts); err != nil {
		r.report(v, "BAD_VALUE", fmt.Sprintf("%s: %q is not valid", key, strings.Join(texts, ", ")), err.Error(),
			"see --"+key+" in the help of the command")
	}
}

// set gives a flag its value. One that has it already stays as it is: relay: false is no choice against behind-nat.
func (r *reader) set(flag *pflag.Flag, texts []string) error {
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Changed = true
		return list.Replace(texts)
	}
	if texts[0] == flag.Value.String() {
		return nil
	}
	if err := flag.Value.Set(texts[0]); err != nil {
		return err
	}
	flag.Changed = true
	return nil
}

// kind is what the value of a key is, in YAML and in JSON Schema.
type kind struct {
	tag    string // of a scalar in YAML
	list   bool   // of such scalars
	schema map[string]any
	wanted string
}

// typeOf tells the kind of a flag by its value: what pflag calls it, and the words that it may be.
func typeOf(v pflag.Value) kind {
	switch v.Type() {
	case "bool":
		return kind{tag: "!!bool", schema: map[string]any{"type": "boolean"}, wanted: "true or false"}
	case "int":
		return kind{tag: "!!int", schema: map[string]any{"type": "integer"}, wanted: "a whole number"}
	case "uint64", "uint32":
		return kind{tag: "!!int", schema: map[string]any{"type": "integer", "minimum": 0}, wanted: "a whole number"}
	case "stringSlice":
		return kind{tag: "!!str", list: true,
			schema: map[string]any{"type": "array", "items": map[string]any{"type": "string"}}, wanted: "a list such as [a, b]"}
	}
	if c, ok := v.(*Choice); ok {
		return kind{tag: "!!str", schema: map[string]any{"enum": c.words}, wanted: "one of " + strings.Join(c.words, ", ")}
	}
	return kind{tag: "!!str", schema: map[string]any{"type": "string"},
		wanted: "text (in quotes if it looks like something else)"}
}

// read returns the texts of a value that a flag takes.
func (t kind) read(v *yaml.Node) (texts []string, ok bool) {
	if t.list {
		for _, e := range v.Content {
			if e.Kind != yaml.ScalarNode || e.ShortTag() != t.tag {
				return nil, false
			}
			texts = append(texts, e.Value)
		}
		return texts, v.Kind == yaml.SequenceNode
	}
	if v.Kind != yaml.ScalarNode || v.ShortTag() != t.tag {
		return nil, false
	}
	if t.tag == "!!bool" { // which has several spellings
		var b bool
		err := v.Decode(&b)
		return []string{strconv.FormatBool(b)}, err == nil
	}
	return []string{v.Value}, true
}

// Schema is the JSON Schema (draft 2020-12) of the files.
func (f Form) Schema(title string) ([]byte, error) {
	keys := map[string]any{keyVersion: map[string]any{"const": version}, keyKind: map[string]any{"const": f.Kind}}
	for _, name := range f.names() {
		flag := f.Flags.Lookup(name)
		s := typeOf(flag.Value).schema
		s["description"] = flag.Usage
		keys[name] = s
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema",
		"$id": "urn:starling:" + strings.ToLower(f.Kind) + ":v1", "title": title,
		"description": "Each key is the flag of its name.", "type": "object", "properties": keys,
		"additionalProperties": false, "required": []string{keyVersion, keyKind}})
	return b.Bytes(), err
}

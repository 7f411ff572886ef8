package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// Form is what standard output carries.
type Form string

// The forms of -o.
const (
	Table Form = "table" // for people
	Wide  Form = "wide"  // the table, with the columns that it leaves out
	JSON  Form = "json"  // one object
	JSONL Form = "jsonl" // a line for every item of the list that the answer is, or for the one thing that it is
	YAML  Form = "yaml"  // the object of json
	Name  Form = "name"  // what scripts pass to the next command about each, one a line
)

// Forms are all forms, in the order of the help.
var Forms = []Form{Table, Wide, JSON, JSONL, YAML, Name}

// FormNames are the words that -o takes.
func FormNames() (names []string) {
	for _, f := range Forms {
		names = append(names, string(f))
	}
	return names
}

// Machine reports whether a program is to read it.
func (f Form) Machine() bool { return f != Table && f != Wide }

// Answer is what a command found, as programs get it: as one object, as a line for each thing, and as what things are
// called.
type Answer struct {
	whole any
	lines []any
	names []string
}

// One is the answer that is one thing. name is what a script passes to the next command about it; "" if it is figures
// alone.
func One(whole any, name string) Answer {
	a := Answer{whole: whole, lines: []any{whole}}
	if name != "" {
		a.names = []string{name}
	}
	return a
}

// Figures is the answer that is one thing and has no name.
func Figures(whole any) Answer { return One(whole, "") }

// FiguresOnly marks, as its Annotations, a command whose answer has no name: numbers or text that no other command
// takes.
var FiguresOnly = map[string]string{AnswerKind: "figures"}

// AnswerKind is the key of FiguresOnly.
const AnswerKind = "answer"

// List is the answer that is a list, which may be empty. whole is the object that holds it, and name what a script
// passes to the next command about one of its items.
func List[T any](whole any, items []T, name func(T) string) Answer {
	a := Answer{whole: whole, lines: make([]any, len(items)), names: make([]string, len(items))}
	for i, item := range items {
		a.lines[i], a.names[i] = item, name(item)
	}
	return a
}

// Lines is the answer that is a list of items without names.
func Lines[T any](whole any, items []T) Answer {
	a := List(whole, items, func(T) string { return "" })
	a.names = nil
	return a
}

// Items is the answer that is a list and nothing else: whole, it is an object with the list under a key.
func Items[T any](key string, items []T, name func(T) string) Answer {
	if items == nil {
		items = []T{}
	}
	return List(map[string]any{key: items}, items, name)
}

// Print writes an answer in a form for programs.
func (f Form) Print(w io.Writer, a Answer) error {
	var b bytes.Buffer
	switch f {
	case Name:
		if len(a.names) < len(a.lines) {
			return Nameless("the answer")
		}
		for _, name := range a.names {
			fmt.Fprintln(&b, name)
		}
	case JSONL:
		for _, line := range a.lines {
			if err := encode(&b, line); err != nil {
				return err
			}
		}
	default:
		if err := encode(&b, a.whole); err != nil {
			return err
		}
	}
	if f == YAML {
		return printYAML(w, b.Bytes())
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Nameless is the error of -o name for what nothing can be called by.
func Nameless(what string) error {
	return WithExit(&Problem{Code: "USAGE", What: "-o name: " + what + " has no name",
		Why: "it is figures or text, and nothing that another command takes", Fix: "use -o json"}, ExitUsage)
}

// encode appends JSON on one line, without escapes for HTML.
func encode(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

func printYAML(w io.Writer, object []byte) error {
	var n yaml.Node
	if err := yaml.Unmarshal(object, &n); err != nil { // JSON is YAML; a node keeps the order of the keys
		return err
	}
	block(&n)
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	return errors.Join(e.Encode(&n), e.Close())
}

// oldBools are texts that readers of YAML 1.1 take for true or false.
var oldBools = []string{"y", "n", "yes", "no", "on", "off"}

// block takes away the style of JSON, but from texts that need their quotes.
func block(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode || !slices.Contains(oldBools, strings.ToLower(n.Value)) {
		n.Style = 0
	}
	for _, c := range n.Content {
		block(c)
	}
}

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
	JSONL Form = "jsonl" // one object a line for every element of the answer
	YAML  Form = "yaml"  // the object of json
	Name  Form = "name"  // what every element of the answer is called, one a line
)

// Forms are all forms, in the order of the help.
var Forms = []Form{Table, Wide, JSON, JSONL, YAML, Name}

// Machine reports whether a program is to read it.
func (f Form) Machine() bool { return f != Table && f != Wide }

// Print writes an answer, which encodes to a JSON object, in a form for programs. The elements of an answer are those of its
// list, if it has exactly one list of objects, and otherwise itself.
func (f Form) Print(w io.Writer, answer any) error {
	whole, err := encode(answer)
	if err != nil {
		return err
	}
	switch f {
	case YAML:
		return printYAML(w, whole)
	case JSONL:
		for _, e := range elements(whole) {
			if _, err := fmt.Fprintf(w, "%s\n", e); err != nil {
				return err
			}
		}
		return nil
	case Name:
		for _, e := range elements(whole) {
			name, ok := nameOf(e)
			if !ok {
				return WithExit(&Problem{Code: "USAGE", What: "nothing in this answer has a name", Fix: "use -o json"}, ExitUsage)
			}
			if _, err := fmt.Fprintln(w, name); err != nil {
				return err
			}
		}
		return nil
	}
	_, err = fmt.Fprintf(w, "%s\n", whole)
	return err
}

// encode writes JSON on one line, without escapes for HTML.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
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

// elements are the objects of an answer.
func elements(whole []byte) []json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(whole, &fields) != nil {
		return []json.RawMessage{whole}
	}
	var lists [][]json.RawMessage
	for _, f := range fields {
		var list []json.RawMessage
		if json.Unmarshal(f, &list) == nil && (len(list) == 0 || bytes.HasPrefix(list[0], []byte("{"))) {
			lists = append(lists, list)
		}
	}
	if len(lists) == 1 {
		return lists[0]
	}
	return []json.RawMessage{whole}
}

// called are the keys that hold what an object is called, the best first.
var called = []string{"id", "job", "job_id", "name", "account", "address", "seq", "path", "base_url", "hash"}

func nameOf(object []byte) (string, bool) {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		return "", false
	}
	best, name := len(called), ""
	for key, value := range fields {
		if i := slices.Index(called, strings.ToLower(key)); i >= 0 && i < best && value != nil {
			best, name = i, fmt.Sprint(value)
		}
	}
	return name, best < len(called)
}

// Package component reads the components of a tokenizer.json of Hugging Face tokenizers: their types, the fields that
// several of them have, and Sequences of them. The other packages of the tokenizer do what the components ask for.
package component

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

var (
	// ErrMalformed is returned for bytes that are not a consistent tokenizer.json.
	ErrMalformed = errors.New("tokenizer: malformed tokenizer.json")
	// ErrUnsupported is returned for a tokenizer.json that asks for a part that is not known here.
	ErrUnsupported = errors.New("tokenizer: a tokenizer.json with a part that is not known")
)

// maxParts is how many parts a Sequence may have.
const maxParts = 16

// Component is what pre-tokenizers, decoders and post-processors share. A field that its type does not have stays nil.
type Component struct {
	Type           string       `json:"type"`
	Pattern        *TextPattern `json:"pattern,omitempty"`
	Behavior       string       `json:"behavior,omitempty"`
	Invert         *bool        `json:"invert,omitempty"`
	PreTokenizers  []Component  `json:"pretokenizers,omitempty"`
	AddPrefixSpace *bool        `json:"add_prefix_space,omitempty"`
	TrimOffsets    *bool        `json:"trim_offsets,omitempty"` // offsets are not computed here
	UseRegex       *bool        `json:"use_regex,omitempty"`    // Absent: true
}

// TextPattern is what a component looks for.
type TextPattern struct {
	Regex  *string `json:"Regex,omitempty"`
	String *string `json:"String,omitempty"`
}

// TypeOf returns the type of a component, "" for none. A component of another type may have any fields, so that the
// type is what an error is about.
func TypeOf(raw json.RawMessage) (string, error) {
	if Absent(raw) {
		return "", nil
	}
	var c struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if c.Type == "" {
		return "", fmt.Errorf("%w: %.40s has no type", ErrMalformed, raw)
	}
	return c.Type, nil
}

// Absent reports whether a field is not there, or null.
func Absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// Strict reads all of data, which may have no fields that into does not have.
func Strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("%w: more follows the object", ErrMalformed)
	}
	return nil
}

// Parts are the components that a Sequence lists, or the component itself.
func Parts(raw json.RawMessage, key string) ([]json.RawMessage, error) {
	kind, err := TypeOf(raw)
	if err != nil || kind == "" {
		return nil, err
	}
	if kind != "Sequence" {
		return []json.RawMessage{raw}, nil
	}
	var s map[string]json.RawMessage
	var list, out []json.RawMessage
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := json.Unmarshal(s[key], &list); err != nil {
		return nil, fmt.Errorf("%w: a Sequence without %s", ErrMalformed, key)
	}
	for _, one := range list {
		inner, err := Parts(one, key)
		if err != nil {
			return nil, err
		}
		if out = append(out, inner...); len(out) > maxParts {
			return nil, fmt.Errorf("%w: a Sequence of more than %d parts", ErrUnsupported, maxParts)
		}
	}
	return out, nil
}

// IsTrue is a flag, or what it is if it is not there.
func IsTrue(flag *bool, fallback bool) bool {
	if flag == nil {
		return fallback
	}
	return *flag
}

// Package labelled reads texts, each with the name of its class, from lines of JSON and from CSV. It says what is wrong
// with a file, and in which line. It opens no files, and makes no tokens of the texts.
package labelled

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/starling-network/starling/compute/data/source"
)

// Limits of an example, in bytes.
const (
	MaxText  = 1 << 20
	MaxLabel = 256
)

// maxRow is more bytes than a row of CSV has, with its other columns.
const maxRow = 4 * MaxText

// DefaultLabel is the field or column of the name of the class, unless another is given.
const DefaultLabel = "label"

// ErrExample is wrapped by every reason why an object or a row is no text with a class.
var ErrExample = errors.New("no text with a class")

// Example is a text and the name of its class.
type Example struct{ Text, Label string }

// Each gives the examples of a file in the format source.JSONL or source.CSV, until one is refused. The text is in the
// field or column f.Field, the class in label. The error is a *source.Error, and wraps ErrExample, an error of package
// source, or that of take.
func Each(f source.File, label string, take func(Example) error) error {
	field := f.Field
	if field == "" {
		field = source.DefaultField
	}
	switch f.Format {
	case source.JSONL:
		return f.EachObject(func(o map[string]json.RawMessage) error {
			x, err := Of(o, field, label)
			if err != nil {
				return err
			}
			return take(x)
		})
	case source.CSV:
		return f.EachTwo(maxRow, field, label, func(text, class string) error {
			x := Example{Text: text, Label: class}
			if err := x.check(); err != nil {
				return err
			}
			return take(x)
		})
	}
	return &source.Error{Name: f.Name, Err: fmt.Errorf("%w: texts with classes are read as jsonl or csv, not as %s",
		ErrExample, f.Format)}
}

// Of is the example in two fields of a JSON object. The error wraps ErrExample or source.ErrField.
func Of(o map[string]json.RawMessage, field, label string) (x Example, err error) {
	if x.Text, err = source.StringOf(o, field); err != nil {
		return x, err
	}
	if o[label] == nil {
		return x, fmt.Errorf("%w: the object has no field %q", source.ErrField, label)
	}
	if x.Label, err = LabelOf(label, o[label]); err != nil {
		return x, err
	}
	return x, x.check()
}

// LabelOf is the name of a class in a field of a JSON object: a text, or a number as it is written. The error wraps
// ErrExample.
func LabelOf(field string, raw json.RawMessage) (string, error) {
	switch name := source.Name(raw); {
	case name == "":
		return "", fmt.Errorf("%w: %q is neither a text nor a number", ErrExample, field)
	case len(name) > MaxLabel:
		return "", fmt.Errorf("%w: %q has more than %d bytes", ErrExample, field, MaxLabel)
	default:
		return name, nil
	}
}

// check refuses an example that has nothing to classify, or too much.
func (x Example) check() error {
	switch {
	case strings.TrimSpace(x.Text) == "":
		return fmt.Errorf("%w: the text is empty", ErrExample)
	case len(x.Text) > MaxText:
		return fmt.Errorf("%w: the text has more than %d bytes", ErrExample, MaxText)
	case x.Label == "" || len(x.Label) > MaxLabel:
		return fmt.Errorf("%w: the class has no name of 1 to %d bytes", ErrExample, MaxLabel)
	}
	return nil
}

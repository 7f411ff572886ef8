// Package paired reads pairs of texts that belong together, such as a question and its answer: two fields of JSON
// objects, one a line, or two columns of CSV. It makes no tokens of them.
package paired

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/data/source"
)

// MaxText limits the bytes of a text.
const MaxText = 1 << 20

// maxRow is more bytes than a row of CSV has, with its other columns.
const maxRow = 4 * MaxText

// The fields or columns of the texts, unless others are given: those of data sets of sentence-transformers.
const (
	DefaultAnchor   = "anchor"
	DefaultPositive = "positive"
)

// ErrPair is wrapped by every reason why an object or a row is no pair of texts.
var ErrPair = errors.New("no pair of texts")

// Pair is a text, and one that is to be found by it.
type Pair struct{ Anchor, Positive string }

// Each gives the pairs of a file in the format source.JSONL or source.CSV, until one is refused. The anchor is in the
// field or column f.Field, the other text in positive. The error is a *source.Error, and wraps ErrPair, an error of
// package source, or that of take.
func Each(f source.File, positive string, take func(Pair) error) error {
	anchor := f.Field
	if anchor == "" {
		anchor = DefaultAnchor
	}
	switch f.Format {
	case source.JSONL:
		return f.EachObject(func(o map[string]json.RawMessage) error {
			p, err := Of(o, anchor, positive)
			if err != nil {
				return err
			}
			return take(p)
		})
	case source.CSV:
		return eachRow(f, anchor, positive, take)
	}
	return &source.Error{Name: f.Name, Err: fmt.Errorf("%w: pairs are read as jsonl or csv, not as %s", ErrPair, f.Format)}
}

// Of is the pair in two fields of a JSON object. The error wraps ErrPair or source.ErrField.
func Of(o map[string]json.RawMessage, anchor, positive string) (p Pair, err error) {
	for _, of := range []struct {
		field string
		to    *string
	}{{anchor, &p.Anchor}, {positive, &p.Positive}} {
		text, _, err := source.TextOf(o, of.field)
		if err == nil && text == nil {
			err = fmt.Errorf("%w: the field %q is not a string", source.ErrField, of.field)
		}
		if err != nil {
			return Pair{}, err
		}
		*of.to = *text
	}
	return p, p.check()
}

// check refuses a pair of which a text is empty or too long.
func (p Pair) check() error {
	for _, of := range []struct{ name, text string }{{"first", p.Anchor}, {"second", p.Positive}} {
		switch {
		case strings.TrimSpace(of.text) == "":
			return fmt.Errorf("%w: the %s text is empty", ErrPair, of.name)
		case len(of.text) > MaxText:
			return fmt.Errorf("%w: the %s text has more than %d bytes", ErrPair, of.name, MaxText)
		}
	}
	return nil
}

func eachRow(f source.File, anchor, positive string, take func(Pair) error) error {
	var first, second int
	return f.EachRow(maxRow, func(names []string) error {
		first, second = slices.Index(names, anchor), slices.Index(names, positive)
		for _, name := range []string{anchor, positive} {
			if !slices.Contains(names, name) {
				return fmt.Errorf("%w: the first row names no column %q", source.ErrField, name)
			}
		}
		return nil
	}, func(values []string) error {
		// of the row, which is one string
		p := Pair{Anchor: strings.Clone(values[first]), Positive: strings.Clone(values[second])}
		if err := p.check(); err != nil {
			return err
		}
		return take(p)
	})
}

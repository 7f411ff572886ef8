// Package paired reads pairs of texts that belong together, such as a question and its answer: two fields of JSON
// objects, one a line, or two columns of CSV. It makes no tokens of them.
package paired

import (
	"encoding/json"
	"errors"
	"fmt"
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
		return f.EachTwo(maxRow, anchor, positive, func(first, second string) error {
			p := Pair{Anchor: first, Positive: second}
			if err := p.check(); err != nil {
				return err
			}
			return take(p)
		})
	}
	return &source.Error{Name: f.Name, Err: fmt.Errorf("%w: pairs are read as jsonl or csv, not as %s", ErrPair, f.Format)}
}

// Of is the pair in two fields of a JSON object. The error wraps ErrPair or source.ErrField.
func Of(o map[string]json.RawMessage, anchor, positive string) (p Pair, err error) {
	if p.Anchor, err = source.StringOf(o, anchor); err != nil {
		return Pair{}, err
	}
	if p.Positive, err = source.StringOf(o, positive); err != nil {
		return Pair{}, err
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

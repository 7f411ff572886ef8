package nodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/starling-network/starling/compute/data/source"
)

// object is a line of JSON.
type object = map[string]json.RawMessage

// The keys of a node and of an edge, and the columns of these names.
const (
	keyID, keyLabel, keyFeatures = "id", "label", "features"
	keySource, keyTarget         = "source", "target"
)

// each passes on the nodes and the edges of a file; a function that is nil takes none.
func each(f source.File, take func(node) error, connect func(from, to string) error) error {
	switch f.Format {
	case source.JSONL:
		return f.EachObject(func(o object) error { return ofObject(o, take, connect) })
	case source.CSV:
		return eachRow(f, take, connect)
	}
	return &source.Error{Name: f.Name, Err: fmt.Errorf("%w: a graph is read as jsonl or csv, not as %s", ErrGraph,
		f.Format)}
}

// Text is what a line of JSON says, for reports: the class of a node, or the ends of an edge.
func Text(o object) (text string, err error) {
	err = ofObject(o, func(n node) error { text = n.class; return nil },
		func(from, to string) error { text = from + " " + to; return nil })
	return text, err
}

func ofObject(o object, take func(node) error, connect func(from, to string) error) error {
	known, edge := []string{keyID, keyLabel, keyFeatures}, o[keyID] == nil
	if edge {
		known = []string{keySource, keyTarget}
	}
	if edge && (o[keySource] == nil || o[keyTarget] == nil) {
		return fmt.Errorf("%w: the object has neither %q nor %q and %q", ErrGraph, keyID, keySource, keyTarget)
	}
	for key := range o {
		if !slices.Contains(known, key) {
			return unknown(o, known)
		}
	}
	if edge && connect != nil {
		from, err := name(keySource, o[keySource])
		if err != nil {
			return err
		}
		to, err := name(keyTarget, o[keyTarget])
		if err != nil {
			return err
		}
		return connect(from, to)
	}
	if edge || take == nil {
		return nil
	}
	n, err := ofNode(o)
	if err != nil {
		return err
	}
	return take(n)
}

// unknown names the first key of an object, in order, that is not known.
func unknown(o object, known []string) error {
	var others []string
	for key := range o {
		if !slices.Contains(known, key) {
			others = append(others, key)
		}
	}
	return fmt.Errorf("%w: the key %.40q is not read; the keys are %q", ErrGraph, slices.Min(others), known)
}

func ofNode(o object) (n node, err error) {
	if n.id, err = name(keyID, o[keyID]); err != nil {
		return n, err
	}
	if raw := o[keyLabel]; raw != nil && string(raw) != "null" {
		if n.class, err = name(keyLabel, raw); err != nil {
			return n, err
		}
	}
	var list []*float32
	var places map[string]*float32
	switch raw := o[keyFeatures]; {
	case json.Unmarshal(raw, &list) == nil && list != nil:
		n.features, err = dense(list)
	case json.Unmarshal(raw, &places) == nil && places != nil:
		n.sparse, err = sparse(places)
	default:
		err = fmt.Errorf("%w: %q is neither a list of numbers nor an object of them by their places", ErrGraph, keyFeatures)
	}
	return n, err
}

// dense are the features of a list.
func dense(list []*float32) ([]float32, error) {
	if n := len(list); n < 1 || n > MaxFeatures {
		return nil, fmt.Errorf("%w: %d features, and a node has 1 to %d", ErrGraph, n, MaxFeatures)
	}
	features := make([]float32, len(list))
	for i, v := range list {
		if v == nil {
			return nil, fmt.Errorf("%w: feature %d is null", ErrGraph, i)
		}
		features[i] = *v
	}
	return features, nil
}

// sparse are features by their places; the others are 0.
func sparse(places map[string]*float32) ([]feature, error) {
	features := make([]feature, 0, len(places))
	for place, v := range places {
		i, err := strconv.Atoi(place)
		if err != nil || i < 0 || i >= MaxFeatures || strconv.Itoa(i) != place || v == nil {
			return nil, fmt.Errorf("%w: a feature is a number with a place from 0 to %d, such as \"7\": 1.5", ErrGraph,
				MaxFeatures-1)
		}
		features = append(features, feature{int32(i), *v})
	}
	return features, nil
}

// name is an id or a class: a text or a number.
func name(key string, raw json.RawMessage) (string, error) {
	if text := source.Name(raw); text != "" && len(text) <= maxName {
		return text, nil
	}
	return "", fmt.Errorf("%w: %q is neither a text of at most %d bytes nor a number", ErrGraph, key, maxName)
}

// eachRow passes on the nodes or the edges of a CSV file. The names in its first row say which it has.
func eachRow(f source.File, take func(node) error, connect func(from, to string) error) error {
	var row func([]string) error
	err := f.EachRow(maxRecord, func(names []string) (err error) {
		row, err = columns(names, take, connect)
		return err
	}, func(values []string) error { return row(values) })
	if errors.Is(err, source.ErrRow) {
		return &source.Error{Name: f.Name, Err: fmt.Errorf("%w: %w", ErrGraph, source.ErrRow)}
	}
	return err
}

// maxRecord is more bytes than a row of CSV has.
const maxRecord = MaxFeatures * 64

// columns returns how a row with values of these names is read.
func columns(names []string, take func(node) error, connect func(from, to string) error) (func([]string) error, error) {
	id, class := slices.Index(names, keyID), slices.Index(names, keyLabel)
	from, to := slices.Index(names, keySource), slices.Index(names, keyTarget)
	switch {
	case id >= 0 && len(names) > MaxFeatures:
		return nil, fmt.Errorf("%w: %d columns, and a node has at most %d features", ErrGraph, len(names), MaxFeatures)
	case id >= 0:
		features := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return name == keyID || name == keyLabel
		})
		return func(values []string) error {
			if take == nil {
				return nil
			}
			n, err := ofRow(names, values, id, class)
			if err != nil {
				return err
			}
			n.names = features
			return take(n)
		}, nil
	case from >= 0 && to >= 0 && len(names) == 2:
		return func(values []string) error {
			if connect == nil {
				return nil
			}
			for _, i := range []int{from, to} {
				if values[i] == "" || len(values[i]) > maxName {
					return fmt.Errorf("%w: the column %q has no id of 1 to %d bytes", ErrGraph, names[i], maxName)
				}
			}
			return connect(strings.Clone(values[from]), strings.Clone(values[to]))
		}, nil
	}
	return nil, fmt.Errorf("%w: the first row names neither %q, with %q and features, nor %q and %q alone", ErrGraph,
		keyID, keyLabel, keySource, keyTarget)
}

// ofRow is a node: every column but those of its id and its class is a feature.
func ofRow(names, values []string, id, class int) (n node, err error) {
	n.id, n.features = strings.Clone(values[id]), make([]float32, 0, len(values))
	if class >= 0 {
		n.class = strings.Clone(values[class])
	}
	if n.id == "" || max(len(n.id), len(n.class)) > maxName {
		return n, fmt.Errorf("%w: an id has 1 to %d bytes, and a class at most as many", ErrGraph, maxName)
	}
	for i, text := range values {
		if i == id || i == class {
			continue
		}
		v, err := strconv.ParseFloat(text, 32)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			return n, fmt.Errorf("%w: the column %.40q has %.40q, which is no number", ErrGraph, names[i], text)
		}
		n.features = append(n.features, float32(v))
	}
	if len(n.features) == 0 {
		return n, fmt.Errorf("%w: there is no column with a feature", ErrGraph)
	}
	return n, nil
}

package folder

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/starling-network/starling/compute/model/safetensors"
)

// DefaultShardBytes is the size above which transformers cuts a model.
const DefaultShardBytes = 5 << 30

// File is one file of a folder.
type File struct {
	Name  string
	write func(w io.Writer) error
}

// Write writes the content of the file. The same model has the same bytes.
func (f File) Write(w io.Writer) error { return f.write(w) }

// Files returns the files of a folder in which no file has more than shardBytes of tensors, unless one tensor alone
// does. A model that lacks a tensor, or has one of another shape, is an *Error.
func (m *Model) Files(shardBytes int64) ([]File, error) {
	shards, err := m.shards(shardBytes)
	if err != nil {
		return nil, err
	}
	files := []File{textFile(configFile, m.Config.JSON())}
	if len(shards) == 1 {
		return append(files, m.shardFile(weightsFile, shards[0])), nil
	}
	total := int64(0)
	weightMap := map[string]string{}
	for i, s := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		files = append(files, m.shardFile(name, s))
		total += s.bytes
		for _, t := range s.names {
			weightMap[t] = name
		}
	}
	index, err := json.MarshalIndent(map[string]any{
		"metadata":   map[string]any{"total_size": total},
		"weight_map": weightMap,
	}, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("folder: strings and numbers failed to encode: %v", err))
	}
	return append(files, textFile(indexFile, append(index, '\n'))), nil
}

// shard is what goes into one file.
type shard struct {
	names []string
	bytes int64
}

// shards cuts the tensors, in canonical order, as soon as the next one does not fit.
func (m *Model) shards(limit int64) ([]shard, error) {
	var all []shard
	for _, want := range m.Config.Tensors() {
		t := m.Tensors[want.Name]
		if t == nil {
			return nil, &Error{File: weightsFile, Tensor: want.Name, Err: ErrMissing}
		}
		if !t.Shape.Equal(want.Shape) {
			return nil, &Error{File: weightsFile, Tensor: want.Name, Err: fmt.Errorf("%w: %v", ErrShape, t.Shape)}
		}
		size := int64(t.Shape.Bytes())
		if d := m.DTypes[want.Name]; d == "F16" || d == "BF16" {
			size /= 2
		}
		if n := len(all); n == 0 || all[n-1].bytes+size > limit {
			all = append(all, shard{})
		}
		last := &all[len(all)-1]
		last.names = append(last.names, want.Name)
		last.bytes += size
	}
	return all, nil
}

func (m *Model) shardFile(name string, s shard) File {
	return File{name, func(w io.Writer) error {
		err := safetensors.EncodeAs(w, s.names, m.Tensors, m.DTypes, map[string]string{"format": "pt"})
		if err != nil {
			return &Error{File: name, Err: err}
		}
		return nil
	}}
}

func textFile(name string, text []byte) File {
	return File{name, func(w io.Writer) error {
		if _, err := w.Write(text); err != nil {
			return &Error{File: name, Err: err}
		}
		return nil
	}}
}

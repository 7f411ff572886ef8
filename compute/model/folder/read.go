package folder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
)

// Resting is a file system whose ReadFile returns mapped files.
type Resting interface {
	// Rest says that part of a file that ReadFile returned is not read for some time.
	Rest(part []byte)
}

// Read reads a folder of one of architecture.Architectures. Every tensor of the model must be there once, with the
// shape that config.json says, and be finite; all may lack their common prefix, such as "transformer." of GPT-2.
// Buffers that old files hold besides are left out, and so is a head that is tied to the embedding. Tensors that are
// float32 in a file lie in the bytes that fs.ReadFile returns of it; of a file system that is Resting, each rests once
// it was checked. Errors are of type *Error.
func Read(fsys fs.FS) (*Model, error) { return ReadPart(fsys, architecture.Config.Tensors) }

// ReadPart is Read of a folder that has a part of the tensors.
func ReadPart(fsys fs.FS, tensors func(architecture.Config) []architecture.Named) (*Model, error) {
	c, ignored, err := importConfig(fsys)
	if err != nil {
		return nil, &Error{File: configFile, Err: err}
	}
	m, err := ReadTensors(fsys, c, tensors(c))
	if err != nil {
		return nil, err
	}
	m.Ignored = ignored
	return m, nil
}

// ReadTensors is Read of a folder whose config.json was read, and which has the tensors of a list.
func ReadTensors(fsys fs.FS, c architecture.Config, list []architecture.Named) (*Model, error) {
	r := &reader{
		fsys:  fsys,
		list:  list,
		want:  make(map[string]tensor.Shape),
		model: &Model{Config: c, Tensors: make(map[string]*tensor.Tensor), DTypes: make(map[string]string)},
	}
	for _, t := range list {
		r.want[t.Name] = t.Shape
	}
	index, err := readIndex(fsys)
	if err != nil {
		return nil, &Error{File: indexFile, Err: err}
	}
	whole := weightsFile
	if index == nil && pickled(fsys) {
		return nil, &Error{File: pickleFile, Err: ErrPickle}
	}
	if index != nil {
		whole = indexFile
		err = r.shards(index)
	} else {
		err = r.file(weightsFile, nil)
	}
	if err != nil {
		return nil, err
	}
	return r.model, r.finish(whole)
}

// ReadExact reads the tensors in the list from the one file of weights that we write, by their names after a prefix, in
// the form that they have there.
func ReadExact(fsys fs.FS, list []architecture.Named, prefix string) (map[string]*tensor.Tensor, error) {
	raw, err := fs.ReadFile(fsys, weightsFile)
	if err != nil {
		return nil, err
	}
	f, err := safetensors.Open(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", weightsFile, err)
	}
	tensors := make(map[string]*tensor.Tensor, len(list))
	for _, n := range list {
		w, err := f.Tensor(n.Name)
		if err == nil && !w.Shape.Equal(n.Shape) {
			err = fmt.Errorf("tensor %q is %v, and config.json asks for %v", n.Name, w.Shape, n.Shape)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", weightsFile, err)
		}
		tensors[prefix+n.Name] = w
	}
	return tensors, nil
}

// ReadConfig reads config.json alone.
func ReadConfig(fsys fs.FS) (architecture.Config, error) {
	c, _, err := importConfig(fsys)
	return c, err
}

// importConfig reads config.json, and the keys of it that mean nothing.
func importConfig(fsys fs.FS) (architecture.Config, []string, error) {
	raw, err := readLimited(fsys, configFile, maxConfig)
	if err != nil {
		return architecture.Config{}, nil, err
	}
	var keys map[string]any
	if err := json.Unmarshal(raw, &keys); err != nil {
		return architecture.Config{}, nil, fmt.Errorf("%w (%w)", ErrJSON, err)
	}
	modelType, ok := keys["model_type"].(string)
	if !ok {
		return architecture.Config{}, nil, fmt.Errorf("%w: it has no model_type", ErrJSON)
	}
	return architecture.Import(modelType, keys)
}

// pickled reports whether a folder has its weights in PyTorch's own format alone.
func pickled(fsys fs.FS) bool {
	has := func(name string) bool {
		_, err := fs.Stat(fsys, name)
		return err == nil
	}
	return !has(weightsFile) && (has(pickleFile) || has(pickleIndex))
}

// readIndex returns the file of every tensor, or nil if there is no index.
func readIndex(fsys fs.FS) (map[string]string, error) {
	if _, err := fs.Stat(fsys, indexFile); err != nil {
		return nil, nil
	}
	raw, err := readLimited(fsys, indexFile, maxIndex)
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrJSON, err)
	}
	if len(index.WeightMap) == 0 {
		return nil, fmt.Errorf("%w: it has no weight_map", ErrJSON)
	}
	for name, file := range index.WeightMap {
		if !fs.ValidPath(file) || path.Base(file) != file || path.Ext(file) != ".safetensors" {
			return nil, fmt.Errorf("%w: %q lies in %q, which is no file of this folder", ErrIndex, name, file)
		}
	}
	return index.WeightMap, nil
}

func readLimited(fsys fs.FS, name string, limit int64) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)
	}
	return raw, err
}

// reader collects the tensors of a model.
type reader struct {
	fsys  fs.FS
	list  []architecture.Named
	want  map[string]tensor.Shape
	model *Model
	head  *tensor.Tensor // the output layer of a model whose config ties it to the embedding
}

// shards reads the files of an index, each of which must hold exactly what the index says.
func (r *reader) shards(index map[string]string) error {
	byFile := map[string]map[string]bool{}
	for name, file := range index {
		if byFile[file] == nil {
			byFile[file] = map[string]bool{}
		}
		byFile[file][name] = true
	}
	for _, file := range slices.Sorted(maps.Keys(byFile)) {
		if err := r.file(file, byFile[file]); err != nil {
			return err
		}
	}
	return nil
}

// file reads one file of tensors; if the names that it must hold are given, no others.
func (r *reader) file(name string, holds map[string]bool) error {
	raw, err := fs.ReadFile(r.fsys, name)
	if err != nil {
		return &Error{File: name, Err: err}
	}
	f, err := safetensors.Open(raw)
	if err != nil {
		return &Error{File: name, Err: err}
	}
	for _, t := range f.Names() {
		if holds != nil && !holds[t] {
			return &Error{File: name, Tensor: t, Err: fmt.Errorf("%w: the index puts it elsewhere", ErrIndex)}
		}
		if err := r.tensor(f, t); err != nil {
			return &Error{File: name, Tensor: t, Err: err}
		}
	}
	if holds != nil && len(holds) != len(f.Names()) {
		missing := slices.DeleteFunc(slices.Sorted(maps.Keys(holds)), func(t string) bool { return f.DType(t) != "" })
		return &Error{File: name, Tensor: missing[0], Err: fmt.Errorf("%w: the index puts it here", ErrIndex)}
	}
	return nil
}

// tensor takes one tensor of a file.
func (r *reader) tensor(f *safetensors.File, fileName string) error {
	name, c := fileName, r.model.Config
	shape, ok := r.want[name]
	tiedHead := !ok && name == c.OutputName()
	if long := c.TextPrefix() + name; !ok && !tiedHead && !strings.HasPrefix(name, c.TextPrefix()) {
		name = long
		shape, ok = r.want[name]
	}
	switch {
	case tiedHead:
		shape = r.want[c.EmbeddingName()]
	case !ok && isBuffer(name):
		return nil
	case !ok:
		return ErrUnknown
	}
	t, err := finiteTensor(f, fileName, shape)
	if err != nil {
		return err
	}
	if rests, ok := r.fsys.(Resting); ok {
		rests.Rest(f.Bytes(fileName))
	}
	switch {
	case tiedHead:
		r.head = t
	case r.model.Tensors[name] != nil:
		return fmt.Errorf("%w: it occurs twice", ErrIndex)
	default:
		r.model.Tensors[name], r.model.DTypes[name] = t, f.DType(fileName)
	}
	return nil
}

// finiteTensor reads a tensor of the given shape in which every element is finite.
func finiteTensor(f *safetensors.File, name string, shape tensor.Shape) (*tensor.Tensor, error) {
	if f.DType(name) == "" {
		return nil, ErrMissing
	}
	t, err := f.Tensor(name)
	if err != nil {
		return nil, err
	}
	if !t.Shape.Equal(shape) {
		return nil, fmt.Errorf("%w: %v in the file, %v in the model", ErrShape, t.Shape.Dims, shape.Dims)
	}
	if i := slices.IndexFunc(t.F32(), func(x float32) bool { return math.Float32bits(x)>>23&255 == 255 }); i >= 0 {
		return nil, fmt.Errorf("%w: element %d is %v", ErrNotFinite, i, t.F32()[i])
	}
	return t, nil
}

// isBuffer reports whether a tensor is one that transformers used to save and now computes itself: the causal mask of
// GPT-2 and GPT-NeoX, the frequencies of rotary positions.
func isBuffer(name string) bool {
	return strings.HasSuffix(name, ".attn.bias") || strings.HasSuffix(name, ".attn.masked_bias") ||
		strings.HasSuffix(name, ".attention.bias") || strings.HasSuffix(name, ".attention.masked_bias") ||
		strings.HasSuffix(name, ".rotary_emb.inv_freq")
}

// finish makes sure that nothing is missing. whole is the file that should have said where it is.
func (r *reader) finish(whole string) error {
	for _, t := range r.list {
		if r.model.Tensors[t.Name] == nil {
			return &Error{File: whole, Tensor: t.Name, Err: ErrMissing}
		}
	}
	c := r.model.Config
	if r.head != nil && !bytes.Equal(r.head.Bytes(), r.model.Tensors[c.EmbeddingName()].Bytes()) {
		return &Error{File: whole, Tensor: c.OutputName(), Err: ErrNotTied}
	}
	return nil
}

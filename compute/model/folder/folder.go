// Package folder reads and writes a model as the folder that Hugging Face libraries use: config.json, and the tensors
// in model.safetensors or, cut by size, in model-00001-of-00002.safetensors and so on with an index of which is where.
//
// An adapter is read as PEFT writes it: adapter_config.json and adapter_model.safetensors.
//
// Reading takes an fs.FS and writing gives files that write themselves to an io.Writer; where they come from and go to,
// and that none is left half-written, is the caller's business. The tokenizer's files are compute/data/tokenizer's.
package folder

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// The names of the files.
const (
	configFile  = "config.json"
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"

	pickleFile  = "pytorch_model.bin"
	pickleIndex = "pytorch_model.bin.index.json"
)

// Limits of the files that come from a stranger.
const (
	maxConfig = 1 << 20  // bytes
	maxIndex  = 64 << 20 // bytes
)

// Model is what a folder holds.
type Model struct {
	Config  architecture.Config
	Tensors map[string]*tensor.Tensor // float32, by the names of Config.Tensors

	// DTypes are the element types of the tensors in the files, F32 for one that is not here. A model that is written as
	// it was read has the same bytes in every tensor; after training, leave DTypes out.
	DTypes map[string]string

	// Ignored are the keys of config.json that mean nothing to the model, in ascending order, of those that are not known
	// to be without effect.
	Ignored []string
}

// Error says which file of a folder is wrong, and at which tensor of it, if at one.
type Error struct {
	File   string
	Tensor string
	Err    error
}

func (e *Error) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("model folder: %s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("model folder: %s: tensor %q: %v", e.File, e.Tensor, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Errors of folders, besides those that packages model and safetensors find in one file.
var (
	ErrJSON        = errors.New("not the JSON object that belongs here")
	ErrTooLarge    = errors.New("the file is too large")
	ErrIndex       = errors.New("the index and the files contradict each other")
	ErrMissing     = errors.New("the tensor is missing")
	ErrUnknown     = errors.New("the model has no such tensor")
	ErrShape       = errors.New("the tensor has another shape than config.json says")
	ErrNotFinite   = errors.New("a weight is infinite or not a number")
	ErrAdapterKind = errors.New("an adapter of another kind")
	ErrPickle      = errors.New("weights in pytorch_model.bin are not read, for a program may hide in that format; " +
		"convert them once: python -c \"from transformers import AutoModelForCausalLM as M; " +
		"M.from_pretrained('DIR').save_pretrained('DIR', safe_serialization=True)\"")
	ErrNotTied = errors.New("config.json says that it is the token embedding, and it differs")
)

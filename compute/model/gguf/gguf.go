// Package gguf writes a Llama model and its tokenizer as one GGUF file, version 3, the format that llama.cpp and what is
// built on it run. Specification: ggml, docs/gguf.md; the names and their meaning are those of llama.cpp.
//
// It writes F32, F16 and Q8_0 and reads nothing. It does no other quantisation and no other architecture: llama.cpp's
// own tools make smaller types from a file of F32 or F16.
package gguf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/tensor"
)

// Type is the type of the matrices of a file; vectors are always F32. The numbers are the format's.
type Type uint32

// The types. A matrix whose rows are no multiple of 32 elements is F16 in a file of Q8_0, as llama.cpp's converter does.
const (
	F32  Type = 0
	F16  Type = 1
	Q8_0 Type = 8 // blocks of 32 elements: an F16 scale and 32 signed bytes
)

// String returns the name of the type in llama.cpp.
func (t Type) String() string {
	switch t {
	case F32:
		return "F32"
	case F16:
		return "F16"
	case Q8_0:
		return "Q8_0"
	}
	return fmt.Sprintf("type(%d)", uint32(t))
}

// Errors of Encode.
var (
	ErrModel     = errors.New("gguf: the model cannot be written")
	ErrTokenizer = errors.New("gguf: the tokenizer has no equal in llama.cpp")
	ErrRange     = errors.New("gguf: a weight does not fit the type")
)

// Model is what a file holds.
type Model struct {
	Name      string // for people
	Config    model.Config
	Tensors   map[string]*tensor.Tensor // float32, by the names of Config.Tensors
	Tokenizer *tokenizer.Tokenizer
}

// Encode writes a file. Nothing is written if the model cannot be. The same model has the same bytes. Errors wrap
// ErrModel, ErrTokenizer, ErrRange or what w returned.
func Encode(w io.Writer, m Model, t Type) error {
	if m.Config.Architecture() != model.Llama {
		return fmt.Errorf("%w: it is %s, and only llama is written", ErrModel, m.Config.Architecture())
	}
	if t != F32 && t != F16 && t != Q8_0 {
		return fmt.Errorf("%w: %s is not one of F32, F16 and Q8_0", ErrModel, t)
	}
	c := readSizes(m.Config)
	entries, err := m.entries(c, t)
	if err != nil {
		return err
	}
	meta, err := m.metadata(c, t)
	if err != nil {
		return err
	}
	if _, err := w.Write(header(meta, entries)); err != nil {
		return fmt.Errorf("gguf: write: %w", err)
	}
	for _, e := range entries {
		if err := e.write(w); err != nil {
			return fmt.Errorf("gguf: write %s: %w", e.name, err)
		}
	}
	return nil
}

// sizes are the keys of config.json that a file repeats.
type sizes struct {
	Positions int     `json:"max_position_embeddings"`
	Width     int     `json:"hidden_size"`
	Inner     int     `json:"intermediate_size"`
	Layers    int     `json:"num_hidden_layers"`
	Heads     int     `json:"num_attention_heads"`
	KVHeads   int     `json:"num_key_value_heads"`
	HeadDim   int     `json:"head_dim"`
	NormEps   float64 `json:"rms_norm_eps"`
	RopeTheta float64 `json:"rope_theta"`
	Vocab     int     `json:"vocab_size"`
	BOS       *uint32 `json:"bos_token_id"`
	EOS       *uint32 `json:"eos_token_id"`
}

func readSizes(c model.Config) (s sizes) {
	if err := json.Unmarshal(c.JSON(), &s); err != nil {
		panic(fmt.Sprintf("gguf: a config's own JSON: %v", err))
	}
	return s
}

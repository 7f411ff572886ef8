// Package gguf writes a Llama or Mistral model and its tokenizer as one GGUF file, version 3, the format that llama.cpp
// and what is built on it run. Specification: ggml, docs/gguf.md; the names and their meaning are those of llama.cpp.
//
// It writes F32, F16, Q8_0 and Q4_0 and reads nothing. It does no other quantisation and no other architecture:
// llama.cpp's own tools make smaller types from a file of F32 or F16.
package gguf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// Type is the type of the matrices of a file; vectors are always F32. The numbers are the format's.
type Type uint32

// The types. A matrix whose rows are no multiple of 32 elements is F16 in a file of blocks, as llama.cpp's converter
// does. In a file of Q4_0 the embeddings and the head are Q8_0: llama.cpp keeps more bits for them, too.
const (
	F32  Type = 0
	F16  Type = 1
	Q4_0 Type = 2 // blocks of 32 elements: an F16 scale and 32 numbers of 4 bits
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
	case Q4_0:
		return "Q4_0"
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
	Config    architecture.Config
	Tensors   map[string]*tensor.Tensor // float32, by the names of Config.Tensors
	Tokenizer *tokenizer.Tokenizer
	Template  string // of conversations, in Jinja; "": none
}

// Encode writes a file. Nothing is written if the model cannot be. The same model has the same bytes. Errors wrap
// ErrModel, ErrTokenizer, ErrRange or what w returned.
func Encode(w io.Writer, m Model, t Type) error {
	if err := Writes(m.Config); err != nil {
		return err
	}
	if t != F32 && t != F16 && t != Q8_0 && t != Q4_0 {
		return fmt.Errorf("%w: %s is not one of F32, F16, Q8_0 and Q4_0", ErrModel, t)
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

// Writes returns why a model cannot be written, or nil: Llama without biases is, and Mistral without a window, which
// are one architecture to llama.cpp. The error wraps ErrModel.
func Writes(c architecture.Config) error {
	if c.Architecture() != architecture.Llama && c.Architecture() != architecture.Mistral {
		return fmt.Errorf("%w: it is %s, and only llama and mistral are written", ErrModel, c.Architecture())
	}
	var keys struct {
		Activation string          `json:"hidden_act"`
		Scaling    scaling         `json:"rope_scaling"`
		Window     json.RawMessage `json:"sliding_window"`
		Part       json.RawMessage `json:"partial_rotary_factor"`
		Bias       bool            `json:"attention_bias"`
		MLPBias    bool            `json:"mlp_bias"`
	}
	if err := json.Unmarshal(c.JSON(), &keys); err != nil {
		panic(fmt.Sprintf("gguf: a config's own JSON: %v", err))
	}
	windowed := keys.Window != nil && string(keys.Window) != "null"
	if keys.Activation != "silu" || keys.Scaling.Type == "yarn" || windowed || keys.Part != nil || keys.Bias ||
		keys.MLPBias {
		return fmt.Errorf("%w: it scales its positions by yarn or cuts them, or has a window, biases or another activation",
			ErrModel)
	}
	return nil
}

// scaling is how the positions of a model are scaled: linear, llama3 or "".
type scaling struct {
	Type   string  `json:"rope_type"`
	Factor float64 `json:"factor"`
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
	Scaling   scaling `json:"rope_scaling"`
	Vocab     int     `json:"vocab_size"`
	BOS       *uint32 `json:"bos_token_id"`
	EOS       *uint32 `json:"eos_token_id"`
}

func readSizes(c architecture.Config) (s sizes) {
	if err := json.Unmarshal(c.JSON(), &s); err != nil {
		panic(fmt.Sprintf("gguf: a config's own JSON: %v", err))
	}
	return s
}

// Package model is the models that jobs train. A Config, read from the keys of a Hugging Face config.json, is a GPT-2 or
// Llama: it knows its tensors by their Hugging Face names and layouts, their initial values, and low-rank adapters for
// its layers. MLP, CNN and GraphNet are small classifiers. A Task is a model, a batch and a loss, and gives the programs
// that train and evaluate it.
//
// It runs nothing and reads no files: a program is run by compute/program, weights are stored by
// compute/model/safetensors. Models are written with GoMLX graph functions and differentiated by GoMLX; none of that is
// left in the programs.
package model

import (
	"encoding/json"
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/tensor"
)

// The architectures that Parse knows.
const (
	GPT2  = "gpt2"
	Llama = "llama"
)

// Limits on the sizes that a Config may have. They keep the number of weights and the size of programs far from
// overflow.
const (
	maxVocab     = 1 << 22
	maxPositions = 1 << 20
	maxWidth     = 1 << 16
	maxLayers    = 1 << 10
	maxHeadDim   = 1 << 10 // of rotary heads, whose tables a program holds

	maxParameters = 1 << 40
)

// Config describes one model. It is made by Parse and is valid by construction; the zero Config is of no use.
type Config struct {
	architecture string
	family       family

	vocab     int // ids of the tokenizer
	positions int // longest sequence
	width     int // of the residual stream
	inner     int // of the feed-forward layer
	layers    int
	heads     int // of queries
	kvHeads   int // of keys and values; divides heads
	headDim   int

	normEps   float64
	initStd   float64
	ropeTheta float64
	tied      bool // the output layer is the token embedding
	bos, eos  int  // -1 when the model has none

	lora *LoRA // of Adapt; never changed
}

// family is what differs between architectures.
type family interface {
	parse(f *fields, c *Config)
	// tensors lists the tensors in canonical order.
	tensors(c Config) []Named
	// hidden maps tokens [batch, length] to what the output layer reads: [batch*length, width].
	hidden(c Config, w weights, tokens *graph.Node, s sequence) *graph.Node
	// output is the output layer: x [n, width] to logits [n, vocab].
	output(c Config, w weights, x *graph.Node) *graph.Node
	// json returns the keys of config.json that parse reads.
	json(c Config) map[string]any
}

func familyOf(architecture string) (family, bool) {
	switch architecture {
	case GPT2:
		return gpt2{}, true
	case Llama:
		return llama{}, true
	}
	return nil, false
}

// logits maps tokens [batch, length], each sequence from its first token on, to logits [batch*length, vocab].
func (c Config) logits(w weights, tokens *graph.Node) *graph.Node {
	x := c.family.hidden(c, w, tokens, whole{tokens})
	return c.family.output(c, w, x)
}

// Parse reads a Config from the keys of a Hugging Face config.json. Keys that are left out have the defaults of Hugging
// Face, except that a model has no bos and eos token unless given. Keys that do not change what is computed here are
// accepted and dropped. Every other unknown key, and a value this package cannot honour, is a *ConfigError.
func Parse(architecture string, raw map[string]any) (Config, error) {
	fam, ok := familyOf(architecture)
	if !ok {
		return Config{}, &ConfigError{Key: "architecture", Problem: fmt.Sprintf("%q is not known", architecture),
			Fix: "use gpt2 or llama" + didYouMean(architecture, []string{GPT2, Llama})}
	}
	c := Config{architecture: architecture, family: fam}
	f := newFields(raw)
	f.only("model_type", architecture)
	fam.parse(f, &c)
	c.initStd = f.positive("initializer_range", 0.02, 1)
	f.ignore("architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path", "use_cache", "pad_token_id",
		"is_decoder",
		"unk_token_id", "return_dict", "output_attentions", "output_hidden_states", "task_specific_params")
	c.bos, c.eos = f.token("bos_token_id", c.vocab), f.token("eos_token_id", c.vocab)
	if err := f.finish(); err != nil {
		return Config{}, err
	}
	if c.Parameters() > maxParameters {
		return Config{}, &ConfigError{Key: "config", Problem: "the model has more than 2^40 weights", Fix: "make it smaller"}
	}
	return c, nil
}

// JSON returns a config.json that transformers loads, and that Parse reads back as c.
func (c Config) JSON() []byte {
	keys := c.family.json(c)
	keys["model_type"] = c.architecture
	keys["torch_dtype"] = "float32"
	keys["vocab_size"] = c.vocab
	keys["initializer_range"] = c.initStd
	keys["tie_word_embeddings"] = c.tied
	keys["use_cache"] = true
	keys["bos_token_id"], keys["eos_token_id"] = tokenOrNull(c.bos), tokenOrNull(c.eos)
	text, err := json.MarshalIndent(keys, "", "  ")
	if err != nil {
		panic(err) // strings, numbers and booleans always encode
	}
	return append(text, '\n')
}

func tokenOrNull(id int) any {
	if id < 0 {
		return nil
	}
	return id
}

// Architecture is "gpt2" or "llama".
func (c Config) Architecture() string { return c.architecture }

// VocabSize is the number of token ids.
func (c Config) VocabSize() int { return c.vocab }

// End returns the token that ends a text, if the model has one.
func (c Config) End() (id int, ok bool) { return c.eos, c.eos >= 0 }

// Context is the length in tokens of the longest sequence the model takes.
func (c Config) Context() int { return c.positions }

// Named is the name, shape and initial distribution of one tensor of a model.
type Named struct {
	Name  string
	Shape tensor.Shape

	fill float32 // initial value, when std is 0
	std  float64 // standard deviation of the normal distribution of the initial values

	embedding bool // rows are looked up
}

// Tensors returns the tensors of the model, without adapters, in canonical order, with the names and layouts of Hugging Face. Tied tensors
// are listed once. Conv1D weights of GPT-2 are [in, out], Linear weights of Llama [out, in].
func (c Config) Tensors() []Named { return c.family.tensors(c) }

// Parameters is the number of weights.
func (c Config) Parameters() int {
	n := 0
	for _, t := range c.Tensors() {
		n += t.Shape.Elements()
	}
	return n
}

// Package model is the models that jobs train. A Config, read from the keys of a Hugging Face config.json, is a GPT-2,
// a Llama or another decoder of those that Architectures lists: it knows its tensors by their Hugging Face names and
// layouts, their initial values, and low-rank adapters for its layers. A Task is a model, a batch and a loss, and gives
// the programs that train and evaluate it.
//
// It runs nothing and reads no files: a program is run by compute/cpu, weights are stored by
// compute/model/safetensors. Models are written with GoMLX graph functions and differentiated by GoMLX; none of that is
// left in the programs.
package model

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/tensor"
)

// The architectures that Parse knows, by their model_type.
const (
	GPT2    = "gpt2"
	Llama   = "llama" // SmolLM, TinyLlama and others too
	Mistral = "mistral"
	Qwen2   = "qwen2"
	Qwen3   = "qwen3"
	Gemma   = "gemma"
	Gemma2  = "gemma2"
	Gemma3  = "gemma3_text"
	Phi     = "phi"
	Phi3    = "phi3"
	NeoX    = "gpt_neox" // Pythia
	OPT     = "opt"
)

// Architectures lists the architectures that Parse knows.
func Architectures() []string {
	return []string{GPT2, Llama, Mistral, Qwen2, Qwen3, Gemma, Gemma2, Gemma3, Phi, Phi3, NeoX, OPT}
}

// Limits on the sizes that a Config may have. They keep the number of weights and the size of programs far from
// overflow.
const (
	maxVocab     = 1 << 22
	maxPositions = 1 << 20
	maxWidth     = 1 << 16
	maxLayers    = 1 << 10
	maxHeadDim   = 1 << 10 // of rotary heads

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

	normEps  float64
	initStd  float64
	tied     bool // the output layer is the token embedding
	bos, eos int  // -1 when the model has none
	form     form // what else differs between decoders

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
	prefix() string        // of the names of all tensors but the output layer
	headName() string      // of the tensor of the output layer
	embeddingName() string // of the tensor of the token embedding
}

func familyOf(architecture string) (family, bool) {
	if architecture == GPT2 {
		return gpt2{}, true
	}
	return decoder{architecture}, slices.Contains(Architectures(), architecture)
}

// logits maps tokens [batch, length], each sequence from its first token on, to logits [batch*length, vocab].
func (c Config) logits(w weights, tokens *graph.Node) *graph.Node {
	x := c.family.hidden(c, w, tokens, whole{tokens})
	w.half = false // the output layer reads float32
	return c.family.output(c, w, x)
}

// Parse reads a Config from the keys of a Hugging Face config.json. Keys that are left out have the defaults of Hugging
// Face, except that a model has no bos and eos token unless given. Keys that do not change what is computed here are
// accepted and dropped. Every other unknown key, and a value this package cannot honour, is a *ConfigError.
func Parse(architecture string, raw map[string]any) (Config, error) {
	c, f, err := parse(architecture, raw, false)
	if err == nil {
		err = f.finish()
	}
	if err != nil {
		return Config{}, err
	}
	return c, nil
}

// Import reads the config.json of a model that somebody published, whose architecture is its model_type. It is Parse,
// but for the keys that are unknown: those that are no part of any model's mathematics known here are named and
// otherwise ignored, in ascending order. A key or value that changes what a model computes, and is not computed here,
// is a *ConfigError, which never advises to change it.
func Import(architecture string, raw map[string]any) (c Config, ignored []string, err error) {
	c, f, err := parse(architecture, raw, true)
	if err != nil {
		return Config{}, nil, err
	}
	f.foreign()
	if f.err != nil {
		return Config{}, nil, f.err
	}
	return c, f.unknown(), nil
}

// parse reads the keys that it knows.
func parse(architecture string, raw map[string]any, published bool) (Config, *fields, error) {
	fam, ok := familyOf(architecture)
	if !ok {
		return Config{}, nil, &ConfigError{Key: "architecture", Problem: fmt.Sprintf("%q is not known", architecture),
			Fix: "use one of " + strings.Join(Architectures(), ", ") + didYouMean(architecture, Architectures())}
	}
	c := Config{architecture: architecture, family: fam}
	f := &fields{raw: raw, published: published}
	f.only("model_type", architecture)
	fam.parse(f, &c)
	c.initStd = f.positive("initializer_range", 0.02, 1)
	f.ignore("architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path", "use_cache", "pad_token_id",
		"is_decoder",
		"unk_token_id", "return_dict", "output_attentions", "output_hidden_states", "task_specific_params")
	c.bos, c.eos = f.token("bos_token_id", c.vocab), f.token("eos_token_id", c.vocab)
	if f.err == nil && c.Parameters() > maxParameters {
		f.fail("config", "the model has more than 2^40 weights", "make it smaller")
	}
	return c, f, f.err
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

// Architecture is one of Architectures.
func (c Config) Architecture() string { return c.architecture }

// VocabSize is the number of token ids.
func (c Config) VocabSize() int { return c.vocab }

// End returns the token that ends a text, if the model has one.
func (c Config) End() (id int, ok bool) { return c.eos, c.eos >= 0 }

// TextPrefix is the prefix of the names of tensors that a folder without an output layer leaves out.
func (c Config) TextPrefix() string { return c.family.prefix() }

// OutputName and EmbeddingName are the tensors of the output layer, in a folder that is not tied, and of the embedding.
func (c Config) OutputName() string    { return c.family.headName() }
func (c Config) EmbeddingName() string { return c.family.embeddingName() }

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

// Tensors returns the tensors of the model, without adapters, in canonical order, with the names and layouts of Hugging
// Face. Tied tensors are listed once. Conv1D weights of GPT-2 are [in, out], Linear weights of others [out, in].
func (c Config) Tensors() []Named { return c.family.tensors(c) }

// Parameters is the number of weights.
func (c Config) Parameters() int {
	n := 0
	for _, t := range c.Tensors() {
		n += t.Shape.Elements()
	}
	return n
}

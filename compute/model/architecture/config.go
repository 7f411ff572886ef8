// Package architecture describes the models that jobs train. A Config, read from the keys of a Hugging Face
// config.json, is a GPT-2, a Llama or another decoder of those that Architectures lists: it has the sizes and the form
// of its layers, its tensors by their Hugging Face names and layouts, their initial values, and low-rank adapters for
// its layers.
//
// It computes no model: compute/model makes the programs of a Config. It reads no files: compute/model/folder does.
package architecture

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/model/fields"
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

// Config describes one model. It is made by Parse and is valid by construction; the zero Config is of no use. Its
// fields are exported to be read.
type Config struct {
	architecture string
	family       family

	vocab     int // ids of the tokenizer
	positions int // longest sequence
	Width     int // of the residual stream
	Inner     int // of the feed-forward layer
	Layers    int
	Heads     int // of queries
	KVHeads   int // of keys and values; divides heads
	HeadDim   int

	NormEps  float64
	initStd  float64
	Tied     bool // the output layer is the token embedding
	bos, eos int  // -1 when the model has none
	Form     Form // what else differs between decoders

	lora *LoRA // of Adapt; never changed
}

// family is what differs between architectures.
type family interface {
	parse(f *fields.Reader, c *Config)
	// tensors lists the tensors in canonical order.
	tensors(c Config) []Named
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

// Parse reads a Config from the keys of a Hugging Face config.json. Keys that are left out have the defaults of Hugging
// Face, except that a model has no bos and eos token unless given. Keys that do not change what is computed here are
// accepted and dropped. Every other unknown key, and a value this package cannot honour, is a *ConfigError.
func Parse(architecture string, raw map[string]any) (Config, error) {
	c, f, err := parse(architecture, raw, false)
	if err == nil {
		err = f.Finish()
	}
	if err != nil {
		return Config{}, err
	}
	return c, nil
}

// Import reads the config.json of a published model, whose architecture is its model_type. It is Parse,
// but for the keys that are unknown: those that are no part of any model's mathematics known here are named and
// otherwise ignored, in ascending order. A key or value that changes what a model computes, and is not computed here,
// is a *ConfigError, which never advises to change it.
func Import(architecture string, raw map[string]any) (c Config, ignored []string, err error) {
	c, f, err := parse(architecture, raw, true)
	if err != nil {
		return Config{}, nil, err
	}
	foreign(f)
	if f.Err != nil {
		return Config{}, nil, f.Err
	}
	return c, f.Unknown(), nil
}

// parse reads the keys that it knows.
func parse(architecture string, raw map[string]any, published bool) (Config, *fields.Reader, error) {
	fam, ok := familyOf(architecture)
	if !ok {
		return Config{}, nil, &fields.Error{Key: "architecture", Problem: fmt.Sprintf("%q is not known", architecture),
			Fix: "use one of " + strings.Join(Architectures(), ", ") + fields.DidYouMean(architecture, Architectures())}
	}
	c := Config{architecture: architecture, family: fam}
	f := &fields.Reader{Raw: raw, Published: published}
	f.Only("model_type", architecture)
	fam.parse(f, &c)
	c.initStd = f.Positive("initializer_range", 0.02, 1)
	f.Ignore("architectures", "torch_dtype", "dtype", "transformers_version", "_name_or_path", "use_cache", "pad_token_id",
		"is_decoder",
		"unk_token_id", "return_dict", "output_attentions", "output_hidden_states", "task_specific_params")
	c.bos, c.eos = f.Token("bos_token_id", c.vocab), f.Token("eos_token_id", c.vocab)
	if f.Err == nil && c.Parameters() > maxParameters {
		f.Fail("config", "the model has more than 2^40 weights", "make it smaller")
	}
	return c, f, f.Err
}

// JSON returns a config.json that transformers loads, and that Parse reads back as c.
func (c Config) JSON() []byte {
	keys := c.family.json(c)
	keys["model_type"] = c.architecture
	keys["torch_dtype"] = "float32"
	keys["vocab_size"] = c.vocab
	keys["initializer_range"] = c.initStd
	keys["tie_word_embeddings"] = c.Tied
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

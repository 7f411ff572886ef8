// Package embed has encoders of texts: a language model without its output layer, whose tokens see those before and
// after them, and the mean of its hidden states as a vector of length 1. The package reads and writes the files of such
// an encoder as sentence-transformers has them, and writes its computation; compute/model makes programs of it.
package embed

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/fields"
	"github.com/starling-network/starling/compute/model/padding"
	"github.com/starling-network/starling/compute/tensor"
)

// Network is an encoder of texts, which are rows of tokens of one length. A shorter text is filled up at its end with
// the token Pad.
type Network struct {
	config architecture.Config // without an output layer
	length int                 // tokens of a row
	pad    int                 // VocabSize of config if no token of it is padding
}

// Keys of a config.json besides those of the language model. Transformers from version 5.2 on lets the tokens of any
// decoder see both sides where the first is false.
const (
	keyCausal, keyPad, keyArchitectures = "is_causal", "pad_token_id", "architectures"
)

// New makes an encoder of texts of up to length tokens from a language model, whose output layer does not count. pad is
// a token of the model, or else VocabSize for a token that stands for padding alone. The error is a *fields.Error.
func New(c architecture.Config, length, pad int) (Network, error) {
	c.Tied = true // the token embedding stays, and an output layer besides it is left out
	n := Network{config: c, length: length, pad: pad}
	fail := func(key, problem, fix string) (Network, error) {
		return n, &fields.Error{Key: key, Problem: problem, Fix: fix}
	}
	switch w := c.Form.Window; {
	case length < 1 || length > c.Context():
		return fail("max_position_embeddings", fmt.Sprintf("texts of %d tokens, and the model has %d positions", length,
			c.Context()), "use shorter texts, or a model with more positions")
	case pad < 0 || pad > c.VocabSize():
		return fail(keyPad, fmt.Sprintf("%d, and the model has %d tokens", pad, c.VocabSize()), "use a token of the model")
	case c.EmbedWidth() != c.Width:
		return fail("word_embed_proj_dim", fmt.Sprintf("%d, and hidden_size is %d", c.EmbedWidth(), c.Width),
			"use a model whose token embedding is as wide as its layers")
	case w > 0 && w < length:
		return fail("sliding_window", fmt.Sprintf("%d, and texts have %d tokens", w, length),
			"use texts that are no longer than the window, or a model without one")
	}
	return n, nil
}

// Read reads the config.json of an encoder of texts of up to length tokens; 0: as many as the model has positions, or
// as its window has.
func Read(raw []byte, length int) (Network, error) {
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		return Network{}, err
	}
	var known struct {
		Name   string `json:"model_type"`
		Pad    *int   `json:"pad_token_id"`
		Causal *bool  `json:"is_causal"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return Network{}, err
	}
	if known.Causal == nil || *known.Causal {
		return Network{}, &fields.Error{Key: keyCausal, Problem: "it is not false: tokens see those before them alone",
			Fix: "use a model of task: embed"}
	}
	config = maps.Clone(config)
	delete(config, keyCausal)
	c, _, err := architecture.Import(known.Name, config)
	if err != nil {
		return Network{}, err
	}
	pad := c.VocabSize()
	if known.Pad != nil {
		pad = *known.Pad
	}
	if length == 0 {
		length = c.Context()
		if w := c.Form.Window; w > 0 {
			length = min(length, w)
		}
	}
	return New(c, length, pad)
}

// JSON is the config.json that Read and transformers read.
func (n Network) JSON() []byte {
	var config map[string]any
	if err := json.Unmarshal(n.config.JSON(), &config); err != nil {
		panic(err) // it was just written
	}
	config[keyArchitectures] = []string{class(config[keyArchitectures])}
	config[keyCausal], config[keyPad] = false, nil
	if n.pad < n.config.VocabSize() {
		config[keyPad] = n.pad
	}
	return indented(config)
}

// indented is a value that always encodes, as JSON for people.
func indented(v any) []byte {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // strings, numbers and booleans always encode
	}
	return append(text, '\n')
}

// class is the name that transformers gives to the model without an output layer, from that with one in a list.
func class(list any) string {
	names, _ := list.([]any)
	name, _ := names[0].(string)
	for _, end := range []string{"LMHeadModel", "ForCausalLM"} {
		name = strings.TrimSuffix(name, end)
	}
	if name == "Gemma3" { // which is the class of images and texts
		name = "Gemma3Text"
	}
	return name + "Model"
}

// Files are the files besides config.json, by their names, with which sentence-transformers loads the folder: the
// language model, the mean of its hidden states, and the division by the length.
func (n Network) Files() map[string][]byte {
	const in = "sentence_transformers.models."
	type module struct {
		Index int    `json:"idx"`
		Name  string `json:"name"`
		Path  string `json:"path"`
		Type  string `json:"type"`
	}
	return map[string][]byte{
		"modules.json": indented([]module{{0, "0", "", in + "Transformer"}, {1, "1", "1_Pooling", in + "Pooling"},
			{2, "2", "2_Normalize", in + "Normalize"}}),
		"sentence_bert_config.json": indented(map[string]any{"max_seq_length": n.length, "do_lower_case": false}),
		"1_Pooling/config.json": indented(map[string]any{"word_embedding_dimension": n.config.Width,
			"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false, "pooling_mode_max_tokens": false,
			"pooling_mode_mean_sqrt_len_tokens": false}),
	}
}

// On is the encoder with a language model that differs from Language by its adapter.
func (n Network) On(c architecture.Config) Network {
	n.config = c
	return n
}

// At is the encoder for texts of up to length tokens, at most Length.
func (n Network) At(length int) Network {
	n.length = min(n.length, max(length, 1))
	return n
}

// Language is the language model, without an output layer.
func (n Network) Language() architecture.Config { return n.config }

// Architecture is that of the language model.
func (n Network) Architecture() string { return n.config.Architecture() }

// Length is the number of tokens of a text.
func (n Network) Length() int { return n.length }

// Width is the number of elements of a vector.
func (n Network) Width() int { return n.config.Width }

// Example is the number of tokens of a row with the two texts of a pair, each with its number first.
func (n Network) Example() int { return 2 + 2*n.length }

// Parameters counts the elements of the tensors, without those of adapters.
func (n Network) Parameters() int { return n.config.Parameters() }

// Pad is the token that fills up texts.
func (n Network) Pad() int { return n.pad }

// Row is a text as its first Length tokens, filled up with padding.
func (n Network) Row(tokens []uint32) []uint32 { return padding.Row(tokens, n.length, n.pad) }

// Tensors lists those of the language model, with the names and layouts of transformers.
func (n Network) Tensors() []architecture.Named { return n.config.Tensors() }

// Begin are the initial values of the tensors that are trained: those of the language model, from base or, if that is
// nil, drawn from the seed; or those of its adapters, which draw from the streams of the seed after those of the model.
func (n Network) Begin(base map[string]*tensor.Tensor, seed uint64) map[string]*tensor.Tensor {
	_, adapted := n.config.LoRA()
	switch {
	case adapted:
		return n.config.InitAdapters(seed)
	case base == nil:
		return n.config.Init(seed)
	}
	all := map[string]*tensor.Tensor{}
	for _, t := range n.config.Tensors() {
		all[t.Name] = base[t.Name]
	}
	return all
}

// Saved lists the tensors of the adapter as PEFT saves them for the model without an output layer, and adds them under
// their names there to the trained ones.
func (n Network) Saved(trained map[string]*tensor.Tensor) (list []architecture.Named) {
	for _, t := range n.config.Adapters() {
		was := t.Name
		t.Name = architecture.AdapterPrefix + bare(strings.TrimPrefix(was, architecture.AdapterPrefix))
		trained[t.Name] = trained[was]
		list = append(list, t)
	}
	return list
}

// bare is the name of a layer in the model without an output layer, which is the first part of the names of the other.
func bare(name string) string {
	_, rest, _ := strings.Cut(name, ".")
	return rest
}

// AdapterJSON returns an adapter_config.json with which PEFT loads the adapter.
func (n Network) AdapterJSON() ([]byte, error) {
	text, err := n.config.AdapterJSON()
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	modules, _ := config["target_modules"].([]any)
	for i, m := range modules {
		name, _ := m.(string)
		modules[i] = bare(name)
	}
	config["task_type"] = "FEATURE_EXTRACTION"
	return indented(config), nil
}

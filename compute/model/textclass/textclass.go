// Package textclass has classifiers of texts: a language model without its output layer, and one linear layer on the
// hidden state of the last token. They have the form of the classes *ForSequenceClassification of transformers. One
// with a single class is a reward model: its score says how good a text is. The package reads and writes the
// config.json of such a classifier and writes its computation; compute/model makes programs of it.
package textclass

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/fields"
	"github.com/starling-network/starling/compute/model/padding"
	"github.com/starling-network/starling/compute/tensor"
)

// ScoreName is the tensor of the linear layer: float32 [classes, width].
const ScoreName = "score.weight"

// MaxClasses limits the classes of a network.
const MaxClasses = 1 << 12

// Network is a classifier of texts, which are rows of tokens of one length. A shorter text is filled up at its end with
// the token Pad.
type Network struct {
	config architecture.Config // without an output layer
	labels []string            // of the classes
	length int                 // tokens of a row
	pad    int                 // VocabSize of config if no token of it is padding
}

// Keys of a config.json besides those of the language model.
const (
	keyLabels, keyPad, keyArchitectures = "id2label", "pad_token_id", "architectures"
)

// New makes a classifier of texts of up to length tokens from a language model, whose output layer and whose size of
// the context do not count, and the names of the classes in their order. pad is a token of the model, or else VocabSize
// for a token that stands for padding alone. The error is a *fields.Error.
func New(c architecture.Config, labels []string, length, pad int) (Network, error) {
	c.Tied = true // the token embedding stays, and an output layer besides it is left out
	n := Network{config: c, labels: labels, length: length, pad: pad}
	fail := func(key, problem, fix string) (Network, error) {
		return n, &fields.Error{Key: key, Problem: problem, Fix: fix}
	}
	switch k := len(labels); {
	case k < 1 || k > MaxClasses:
		return fail(keyLabels, fmt.Sprintf("%d classes", k), fmt.Sprintf("there are 1 to %d", MaxClasses))
	case length < 1 || length > c.Context():
		return fail("max_position_embeddings", fmt.Sprintf("texts of %d tokens, and the model has %d positions", length,
			c.Context()), "use shorter texts, or a model with more positions")
	case pad < 0 || pad > c.VocabSize():
		return fail(keyPad, fmt.Sprintf("%d, and the model has %d tokens", pad, c.VocabSize()), "use a token of the model")
	case c.EmbedWidth() != c.Width:
		return fail("word_embed_proj_dim", fmt.Sprintf("%d, and hidden_size is %d", c.EmbedWidth(), c.Width),
			"use a model whose token embedding is as wide as its layers")
	}
	return n, nil
}

// Read reads the config.json of a classifier of texts of up to length tokens; 0: as many as the model has positions.
func Read(raw []byte, length int) (Network, error) {
	var config map[string]any
	if err := json.Unmarshal(raw, &config); err != nil {
		return Network{}, err
	}
	var known struct {
		Name   string            `json:"model_type"`
		Pad    *int              `json:"pad_token_id"`
		Labels map[string]string `json:"id2label"`
	}
	if err := json.Unmarshal(raw, &known); err != nil {
		return Network{}, err
	}
	labels, err := fields.Labels(known.Labels)
	if err != nil {
		return Network{}, err
	}
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
	}
	return New(c, labels, length, pad)
}

// JSON is the config.json that Read and transformers read. It has no pad_token_id where no token is padding:
// transformers then classifies one text at a time.
func (n Network) JSON() []byte {
	var config map[string]any
	if err := json.Unmarshal(n.config.JSON(), &config); err != nil {
		panic(err) // it was just written
	}
	ids := make(map[string]int, len(n.labels))
	for i, label := range n.labels {
		ids[label] = i
	}
	config[keyArchitectures] = []string{class(config[keyArchitectures])}
	config[keyLabels], config["label2id"] = fields.Numbered(n.labels), ids
	config["problem_type"], config[keyPad] = "single_label_classification", nil
	if len(n.labels) == 1 {
		config["problem_type"] = "regression"
	}
	if n.pad < n.config.VocabSize() {
		config[keyPad] = n.pad
	}
	text, err := json.MarshalIndent(config, "", "  ")
	if err != nil {
		panic(err) // strings, numbers and booleans always encode
	}
	return append(text, '\n')
}

// class is the name that transformers gives to the classifier, from that of the language model in a list.
func class(list any) string {
	names, _ := list.([]any)
	name, _ := names[0].(string)
	for _, end := range []string{"LMHeadModel", "ForCausalLM"} {
		name = strings.TrimSuffix(name, end)
	}
	if name == "Gemma3" { // which is the class of images and texts
		name = "Gemma3Text"
	}
	return name + "ForSequenceClassification"
}

// On is the classifier with a language model that differs from Language by its adapter.
func (n Network) On(c architecture.Config) Network {
	n.config = c
	return n
}

// At is the classifier for texts of up to length tokens, at most Example.
func (n Network) At(length int) Network {
	n.length = min(n.length, max(length, 1))
	return n
}

// Language is the language model, without an output layer.
func (n Network) Language() architecture.Config { return n.config }

// Architecture is that of the language model.
func (n Network) Architecture() string { return n.config.Architecture() }

// Labels are the names of the classes.
func (n Network) Labels() []string { return n.labels }

// Example implements model.Classifier.
func (n Network) Example() int { return n.length }

// Parameters counts the elements of the tensors, without those of adapters.
func (n Network) Parameters() int {
	return n.config.Parameters() + len(n.labels)*n.config.Width
}

// Row is a text as its first Example tokens, filled up with padding.
func (n Network) Row(tokens []uint32) []uint32 { return padding.Row(tokens, n.length, n.pad) }

// score is the linear layer. It begins as the other layers of the model do.
func (n Network) score() architecture.Named {
	return n.config.Linear(ScoreName, len(n.labels))
}

// Tensors implements model.Classifier: those of the language model, or of its adapters, and the linear layer last, with
// the names and layouts of transformers.
func (n Network) Tensors() []architecture.Named {
	if _, adapted := n.config.LoRA(); adapted {
		return append(n.config.Adapters(), n.score())
	}
	return append(n.config.Tensors(), n.score())
}

// Frozen implements model.Classifier: the language model under adapters.
func (n Network) Frozen() []architecture.Named {
	if _, adapted := n.config.LoRA(); adapted {
		return n.config.Frozen()
	}
	return nil
}

// Begin are the initial values of Tensors. Those of the language model are in base, or drawn from the seed if it is
// nil. Tensors that base lacks, which are the linear layer and the adapters, draw from the streams of the seed after
// those of the model.
func (n Network) Begin(base map[string]*tensor.Tensor, seed uint64) map[string]*tensor.Tensor {
	own, _ := n.config.LoRA()
	all := map[string]*tensor.Tensor{}
	switch {
	case own.Rank > 0:
		all = n.config.InitAdapters(seed)
	case base == nil:
		all = n.config.Init(seed)
	default:
		for _, t := range n.config.Tensors() {
			all[t.Name] = base[t.Name]
		}
	}
	stream := uint64(len(n.config.Tensors()) + len(n.config.Adapters()))
	all[ScoreName] = architecture.InitFrom([]architecture.Named{n.score()}, seed, stream)[ScoreName]
	return all
}

// Saved lists the tensors of the adapter as PEFT saves them, the linear layer last, and adds that under its name there
// to the trained ones.
func (n Network) Saved(trained map[string]*tensor.Tensor) []architecture.Named {
	score := n.score()
	score.Name = architecture.AdapterPrefix + ScoreName
	trained[score.Name] = trained[ScoreName]
	return append(n.config.Adapters(), score)
}

// AdapterJSON returns an adapter_config.json with which PEFT loads the adapter and the linear layer.
func (n Network) AdapterJSON() ([]byte, error) {
	text, err := n.config.AdapterJSON()
	if err != nil {
		return nil, err
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	config["task_type"], config["modules_to_save"] = "SEQ_CLS", []string{strings.TrimSuffix(ScoreName, ".weight")}
	text, err = json.MarshalIndent(config, "", "  ")
	return append(text, '\n'), err
}

// Pad is the token that fills up texts.
func (n Network) Pad() int { return n.pad }

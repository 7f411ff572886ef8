// Package encoder has the folders of networks for texts, each a language model without its output layer: how texts
// become their tokens, and their weights. It computes nothing.
package encoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Network is a network for texts, of which longer ones are cut off and shorter ones filled up.
type Network interface {
	Language() architecture.Config // without its output layer
	Pad() int                      // the token that fills up texts
	Tensors() []architecture.Named
}

// Folder is the folder of a trained network for texts.
type Folder struct {
	Config    []byte // its config.json
	Tokenizer *tokenizer.Tokenizer
	Length    int // tokens of texts that tokenizer_config.json names; 0: it names none

	dir fs.FS
}

// Open reads all of a folder, as transformers writes it with a tokenizer.json, but its weights.
func Open(dir fs.FS) (f Folder, err error) {
	f.dir = dir
	files := map[string][]byte{}
	for _, name := range []string{"config.json", "tokenizer.json"} {
		if files[name], err = fs.ReadFile(dir, name); err != nil {
			return f, err
		}
	}
	f.Config = files["config.json"]
	if f.Length, err = longest(dir); err != nil {
		return f, fmt.Errorf("%s: %w", TokenizerFile, err)
	}
	if f.Tokenizer, err = tokenizer.Parse(files["tokenizer.json"]); err != nil {
		return f, fmt.Errorf("tokenizer.json: %w", err)
	}
	return f, nil
}

// longest is the number of tokens of texts that tokenizer_config.json names; 0: it names none.
func longest(dir fs.FS) (int, error) {
	raw, err := fs.ReadFile(dir, TokenizerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	var config struct {
		Length float64 `json:"model_max_length"` // 1e30 where there is no limit
	}
	if err == nil {
		err = json.Unmarshal(raw, &config)
	}
	return int(max(0, min(config.Length, 1<<30))), err
}

// Weights reads the weights of the network that the config.json describes, by the names of the inputs of programs.
func (f Folder) Weights(n Network) (map[string]*tensor.Tensor, error) {
	if is, most := f.Tokenizer.VocabSize(), n.Language().VocabSize(); is > most {
		return nil, fmt.Errorf("the tokenizer has %d ids, and the model %d", is, most)
	}
	read, err := folder.ReadTensors(f.dir, n.Language(), n.Tensors())
	if err != nil {
		return nil, err
	}
	weights := map[string]*tensor.Tensor{}
	for name, t := range read.Tensors {
		weights[train.Param+name] = t
	}
	return weights, nil
}

// Rounded is a length that a text of n tokens is filled up to: one of few, as each has its own program.
func Rounded(n int) int { return 1 << bits.Len(uint(max(n, 1)-1)) }

// TokenizerFile says how transformers encodes texts for a model.
const TokenizerFile = "tokenizer_config.json"

// TokenizerConfig is the tokenizer_config.json of a network for texts: that in the folder of its base model, or a new
// one if that is "", with the length of texts, at whose end they are cut off and filled up, and the token that fills
// them up.
func TokenizerConfig(n Network, length int, tok *tokenizer.Tokenizer, base string) ([]byte, error) {
	config := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	if base != "" {
		raw, err := os.ReadFile(filepath.Join(base, TokenizerFile))
		if err == nil {
			err = json.Unmarshal(raw, &config)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		delete(config, "chat_template")
	}
	config["model_max_length"], config["padding_side"], config["truncation_side"] = length, "right", "right"
	tokens := tok.Vocabulary().Tokens
	switch pad := n.Pad(); {
	case pad < len(tokens) && tokens[pad].Text != "":
		config["pad_token"] = tokens[pad].Text
	case pad == len(tokens) && pad < n.Language().VocabSize():
		config["pad_token"] = "[PAD]" // it gets the first number that is free
	default:
		delete(config, "pad_token") // transformers then classifies one text at a time
	}
	text, err := json.MarshalIndent(config, "", "  ")
	return append(text, '\n'), err
}

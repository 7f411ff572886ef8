// Package pretrained loads a model from a folder in Hugging Face form, with its tokenizer, and measures how well it predicts a
// text. What is done with the model besides is its callers'.
package pretrained

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
)

// ErrModel wraps every reason why a folder is not a model that can be run.
var ErrModel = errors.New("not a model that can be run")

// The files of a folder besides those of package folder.
const tokenizerFile = "tokenizer.json"

// Model is what a folder holds.
type Model struct {
	Config    model.Config
	Tensors   map[string]*tensor.Tensor // by their Hugging Face names
	Tokenizer *tokenizer.Tokenizer
	Ignored   []string // keys of config.json that mean nothing to the model, as folder.Model has them
}

// Load reads config.json, tokenizer.json and the tensors. The error wraps ErrModel and names the file.
func Load(dir string) (*Model, error) {
	text, err := os.ReadFile(filepath.Join(dir, tokenizerFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	tok, err := tokenizer.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrModel, tokenizerFile, err)
	}
	m, err := folder.Read(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	if tok.VocabSize() > m.Config.VocabSize() {
		return nil, fmt.Errorf("%w: %s has %d ids, config.json only %d", ErrModel, tokenizerFile, tok.VocabSize(), m.Config.VocabSize())
	}
	return &Model{Config: m.Config, Tensors: m.Tensors, Tokenizer: tok, Ignored: m.Ignored}, nil
}

// End is the token that ends a text: the model's, or else the tokenizer's; -1 if neither has one.
func End(c model.Config, tok *tokenizer.Tokenizer) int32 {
	if id, ok := c.End(); ok {
		return int32(id)
	}
	if id, ok := tok.EndOfText(); ok {
		return int32(id)
	}
	return -1
}

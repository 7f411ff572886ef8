// Package pretrained loads a model from a folder in Hugging Face form, with its tokenizer, and measures how well it
// predicts a text. Its callers generate text and tune models.
package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
)

// ErrModel wraps every reason why a folder is not a model that can be run.
var ErrModel = errors.New("not a model that can be run")

// The files of a folder besides those of package folder.
const tokenizerFile = "tokenizer.json"

// Model is what a folder holds.
type Model struct {
	Config    architecture.Config
	Tensors   map[string]*tensor.Tensor // by their Hugging Face names
	Tokenizer *tokenizer.Tokenizer
	Ends      []int32  // the tokens that end a text, none if the model and its tokenizer have none
	Ignored   []string // keys of config.json that mean nothing to the model, as folder.Model has them
}

// Load reads config.json, tokenizer.json and the tensors. The error wraps ErrModel and names the file.
func Load(dir string) (*Model, error) { return LoadPart(dir, architecture.Config.Tensors) }

// LoadPart is Load of a folder that has a part of the tensors.
func LoadPart(dir string, tensors func(architecture.Config) []architecture.Named) (*Model, error) {
	text, err := os.ReadFile(filepath.Join(dir, tokenizerFile))
	if list, _ := ReadMixture(dir); err != nil && list != nil {
		return nil, fmt.Errorf("%w: it is a mixture of experts, and one model is wanted: give the folder of one, such as %s",
			ErrModel, filepath.Join(dir, list[0].Path))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	tok, err := tokenizer.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrModel, tokenizerFile, err)
	}
	m, err := folder.ReadPart(os.DirFS(dir), tensors)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	if tok.VocabSize() > m.Config.VocabSize() {
		return nil, fmt.Errorf("%w: %s has %d ids, config.json only %d", ErrModel, tokenizerFile, tok.VocabSize(),
			m.Config.VocabSize())
	}
	out := &Model{Config: m.Config, Tensors: m.Tensors, Tokenizer: tok, Ignored: m.Ignored}
	if out.Ends, err = readEnds(dir, m.Config.VocabSize()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	if len(out.Ends) == 0 {
		out.Ends = Ends(m.Config, tok)
	}
	return out, nil
}

// maxEnds bounds the tokens that end a text, which a stranger lists.
const maxEnds = 64

// readEnds reads the tokens that end a text: those of generation_config.json, as other libraries do, or else of
// config.json.
func readEnds(dir string, vocab int) (ends []int32, err error) {
	for _, name := range []string{"generation_config.json", "config.json"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var keys struct {
			EOS json.RawMessage `json:"eos_token_id"`
		}
		if err == nil {
			err = json.Unmarshal(raw, &keys)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		var one *int32
		if json.Unmarshal(keys.EOS, &one) == nil && one != nil {
			ends = []int32{*one}
		} else if len(keys.EOS) > 0 && json.Unmarshal(keys.EOS, &ends) != nil {
			return nil, fmt.Errorf("%s: eos_token_id is neither an id nor a list of ids", name)
		}
		wrong := func(id int32) bool { return id < 0 || int(id) >= vocab }
		if len(ends) > maxEnds || slices.ContainsFunc(ends, wrong) {
			return nil, fmt.Errorf("%s: eos_token_id %.80s is no list of at most %d ids of a vocabulary of %d", name, keys.EOS,
				maxEnds, vocab)
		}
		if len(ends) > 0 {
			return ends, nil
		}
	}
	return nil, nil
}

// Ends is the token that ends a text: the model's, or else the tokenizer's; none if neither has one.
func Ends(c architecture.Config, tok *tokenizer.Tokenizer) []int32 {
	if id, ok := c.End(); ok {
		return []int32{int32(id)}
	}
	if id, ok := tok.EndOfText(); ok {
		return []int32{int32(id)}
	}
	return nil
}

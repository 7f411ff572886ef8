package classes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// ErrTextModel wraps every reason why a folder holds no model that classifies texts.
var ErrTextModel = errors.New("not a model that classifies texts")

// Texts is a trained network that names the classes of texts.
type Texts struct {
	network   textclass.Network
	tokenizer *tokenizer.Tokenizer
	weights   map[string]*tensor.Tensor
}

// OpenTexts reads the folder of a classifier as transformers writes it, with a tokenizer.json. Texts are as long as
// tokenizer_config.json says, if it does, and at most as the model has positions. Errors wrap ErrTextModel.
func OpenTexts(dir fs.FS) (*Texts, error) {
	m := &Texts{weights: map[string]*tensor.Tensor{}}
	files := map[string][]byte{}
	for _, name := range []string{"config.json", "tokenizer.json"} {
		var err error
		if files[name], err = fs.ReadFile(dir, name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTextModel, err)
		}
	}
	length, err := longest(dir)
	if err == nil {
		m.network, err = textclass.Read(files["config.json"], 0)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: config.json: %w", ErrTextModel, err)
	}
	if length > 0 {
		m.network = m.network.At(length)
	}
	if m.tokenizer, err = tokenizer.Parse(files["tokenizer.json"]); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrTextModel, err)
	}
	if is, most := m.tokenizer.VocabSize(), m.network.Language().VocabSize(); is > most {
		return nil, fmt.Errorf("%w: the tokenizer has %d ids, and the model %d", ErrTextModel, is, most)
	}
	read, err := folder.ReadTensors(dir, m.network.Language(), m.network.Tensors())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTextModel, err)
	}
	for name, t := range read.Tensors {
		m.weights[train.Param+name] = t
	}
	return m, nil
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

// Labels are the names of the classes.
func (m *Texts) Labels() []string { return m.network.Labels() }

// Classify returns the probabilities of the classes, in the order of Labels, for each of some texts, of which the first
// tokens count, up to the length of texts of the model.
func (m *Texts) Classify(ctx context.Context, texts []string, threads int) (all [][]float64, err error) {
	s := newScorer(m.weights, threads)
	for _, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tokens := m.tokenizer.EncodeText(text)
		n := m.network.At(1 << bits.Len(uint(max(len(tokens), 1)-1))) // few lengths, as each has its own program
		each, err := s.probabilities(n, 1, func(row []int32) {
			for i, id := range n.Row(tokens) {
				row[i] = int32(id)
			}
		})
		if err != nil {
			return nil, err
		}
		all = append(all, each...)
	}
	return all, nil
}

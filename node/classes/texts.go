package classes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/encoder"
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
	f, err := encoder.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTextModel, err)
	}
	m := &Texts{tokenizer: f.Tokenizer}
	if m.network, err = textclass.Read(f.Config, 0); err != nil {
		return nil, fmt.Errorf("%w: config.json: %w", ErrTextModel, err)
	}
	if f.Length > 0 {
		m.network = m.network.At(f.Length)
	}
	if m.weights, err = f.Weights(m.network); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTextModel, err)
	}
	return m, nil
}

// Labels are the names of the classes.
func (m *Texts) Labels() []string { return m.network.Labels() }

// Ranks reports whether the model is a reward model: it has one class, whose score says how good a text is.
func (m *Texts) Ranks() bool { return len(m.network.Labels()) == 1 }

// Rewards returns the scores that a reward model gives to some texts. Of a text the first tokens count, up to the
// length of texts of the model.
func (m *Texts) Rewards(ctx context.Context, texts []string, threads int) (all []float32, err error) {
	s := newScorer(m.weights, threads)
	err = m.each(ctx, texts, func(n textclass.Network, fill func(row []int32)) error {
		score, err := s.scores(n, 1, fill)
		all = append(all, score...)
		return err
	})
	return all, err
}

// Classify returns the probabilities of the classes, in the order of Labels, for each of some texts, of which the same
// tokens count as of Rewards.
func (m *Texts) Classify(ctx context.Context, texts []string, threads int) (all [][]float64, err error) {
	s := newScorer(m.weights, threads)
	err = m.each(ctx, texts, func(n textclass.Network, fill func(row []int32)) error {
		probabilities, err := s.probabilities(n, 1, fill)
		all = append(all, probabilities...)
		return err
	})
	return all, err
}

// each calls score for each text, with the network for its length and a function that writes its tokens.
func (m *Texts) each(ctx context.Context, texts []string,
	score func(n textclass.Network, fill func(row []int32)) error) error {
	for _, text := range texts {
		if err := ctx.Err(); err != nil {
			return err
		}
		tokens := m.tokenizer.EncodeText(text)
		n := m.network.At(encoder.Rounded(len(tokens)))
		err := score(n, func(row []int32) {
			for i, id := range n.Row(tokens) {
				row[i] = int32(id)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

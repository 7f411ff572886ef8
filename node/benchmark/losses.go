package benchmark

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/starling-network/starling/compute/model/folder"
)

// ErrFile wraps every reason why a model or a file of batches cannot be used.
var ErrFile = errors.New("benchmark: unusable file")

// LossesOptions say what is trained and how.
type LossesOptions struct {
	Model   string // folder of a GPT-2 or Llama in Hugging Face form
	Batches string // file of little-endian int32 [steps, Batch, context+1]
	Steps   int
	Batch   int // sequences of a step
	Threads int
	Rate    float64 // learning rate
	Decay   float64 // weight decay, of every tensor
	Clip    float64 // bound of the global gradient norm; 0 is none
}

// LossesReport is what a model goes through in training.
type LossesReport struct {
	Losses []float32 `json:"losses"` // mean cross-entropy of every step, before its update, in nats
}

// Losses trains a model on given batches, so that its losses can be compared with those of another implementation.
func Losses(ctx context.Context, o LossesOptions) (*LossesReport, error) {
	for name, n := range map[string]int{"threads": o.Threads, "steps": o.Steps, "batch": o.Batch} {
		if err := positive(name, n); err != nil {
			return nil, err
		}
	}
	m, err := folder.Read(os.DirFS(o.Model))
	if err != nil {
		return nil, unusable(o.Model, err)
	}
	c := m.Config
	tokens, err := readTokens(o.Batches, o.Steps*o.Batch, c.Context()+1, c.VocabSize())
	if err != nil {
		return nil, err
	}
	t, err := newTrainer(recipe{
		config: c, optimizer: adamW(o.Decay, o.Clip), rate: o.Rate, batch: o.Batch, length: c.Context(), threads: o.Threads,
	}, m.Tensors)
	if err != nil {
		return nil, err
	}
	r := &LossesReport{}
	for range o.Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tokens = tokens[copy(t.tokens(), tokens):]
		loss, err := t.step()
		if err != nil {
			return nil, err
		}
		r.Losses = append(r.Losses, loss)
	}
	return r, nil
}

// unusable says what is wrong with a file.
func unusable(path string, err error) error { return fmt.Errorf("%w: %s: %w", ErrFile, path, err) }

// readTokens returns the first rows x columns tokens of a file, each below vocab.
func readTokens(path string, rows, columns, vocab int) ([]int32, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, unusable(path, err)
	}
	if len(raw)/4/columns < rows {
		return nil, unusable(path, fmt.Errorf("%d bytes are less than %d sequences of %d tokens: take fewer steps", len(raw),
			rows, columns))
	}
	tokens := make([]int32, rows*columns)
	for i := range tokens {
		tokens[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
		if tokens[i] < 0 || int(tokens[i]) >= vocab {
			return nil, unusable(path, fmt.Errorf("token %d at byte %d is outside the vocabulary of %d", tokens[i], 4*i, vocab))
		}
	}
	return tokens, nil
}

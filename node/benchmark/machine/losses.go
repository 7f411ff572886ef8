package machine

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/node/benchmark"
)

// LossesOptions configure the training.
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

// LossesReport is the losses and weights of a model during training.
type LossesReport struct {
	Losses []float32 `json:"losses"` // mean cross-entropy of every step, before its update, in nats
}

// Losses trains a model on given batches, so that its losses can be compared with those of another implementation.
func Losses(ctx context.Context, o LossesOptions) (*LossesReport, error) {
	for name, n := range map[string]int{"threads": o.Threads, "steps": o.Steps, "batch": o.Batch} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	m, err := folder.Read(os.DirFS(o.Model))
	if err != nil {
		return nil, benchmark.Unusable(o.Model, err)
	}
	c := m.Config
	tokens, err := readTokens(o.Batches, o.Steps*o.Batch, c.Context()+1, c.VocabSize())
	if err != nil {
		return nil, err
	}
	t, err := NewTrainer(Recipe{
		Config: c, Optimizer: AdamW(o.Decay, o.Clip), Rate: o.Rate, Batch: o.Batch, Length: c.Context(), Threads: o.Threads,
	}, m.Tensors)
	if err != nil {
		return nil, err
	}
	r := &LossesReport{}
	for range o.Steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tokens = tokens[copy(t.Tokens(), tokens):]
		loss, err := t.Step()
		if err != nil {
			return nil, err
		}
		r.Losses = append(r.Losses, loss)
	}
	return r, nil
}

// readTokens returns the first rows x columns tokens of a file, each below vocab.
func readTokens(path string, rows, columns, vocab int) ([]int32, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, benchmark.Unusable(path, err)
	}
	if len(raw)/4/columns < rows {
		return nil, benchmark.Unusable(path, fmt.Errorf("%d bytes are less than %d sequences of %d tokens: take fewer steps",
			len(raw),
			rows, columns))
	}
	tokens := make([]int32, rows*columns)
	for i := range tokens {
		tokens[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
		if tokens[i] < 0 || int(tokens[i]) >= vocab {
			return nil, benchmark.Unusable(path, fmt.Errorf("token %d at byte %d is outside the vocabulary of %d", tokens[i],
				4*i, vocab))
		}
	}
	return tokens, nil
}

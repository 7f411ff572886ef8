// Package exampleloss computes the loss of a language model on single examples, as integers that are the same on every
// machine, whatever the other examples are, and adjusted losses, which depend on all examples of a set but not on how
// often a model expects each token. It reads no files.
package exampleloss

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Unit is the number of units of a loss in one nat. Most is the largest loss of a token, in units, and that of one
// which is not a number.
const (
	Unit = 1 << 20
	Most = 64 * Unit
)

// ErrExamples is wrapped by errors about examples that the model cannot predict.
var ErrExamples = errors.New("exampleloss: not examples of this model")

// Limits of a batch. One of a single example may have more.
const (
	batchTokens = 1024
	batchScores = 1 << 24 // of tokens: one for each position and each token of the vocabulary
)

// arrays is how many arrays of the scores of a batch are in memory at most: the scores, their exponentials, and the
// probabilities of this batch and of the one before.
const arrays = 4

// Measure returns the mean loss of each example over its tokens after the first, in units of which a nat has 2^20,
// rounded down. Tokens have their losses rounded to the nearest unit. The tensors are float32, by the names of
// c.Tensors. progress is called after each batch; it may be nil.
func Measure(ctx context.Context, c architecture.Config, tensors map[string]*tensor.Tensor, examples [][]uint32,
	threads int, progress func(done int)) ([]uint32, error) {
	s, err := newSet(c, tensors, examples, threads)
	if err != nil {
		return nil, err
	}
	return s.losses(ctx, tokenloss.Forward, progress, nil)
}

// Adjusted is Measure, and with it the losses by adjusted logits: to the logits of each token its Bias in Prior is
// added. It computes the model twice on each example.
func Adjusted(ctx context.Context, c architecture.Config, tensors map[string]*tensor.Tensor, examples [][]uint32,
	threads int, progress func(done int)) (losses, adjusted []uint32, _ error) {
	s, err := newSet(c, tensors, examples, threads)
	if err != nil {
		return nil, nil, err
	}
	prior := NewPrior(c.VocabSize())
	losses, err = s.losses(ctx, tokenloss.Expected, nil, func(batch [][]uint32, out map[string]*tensor.Tensor) {
		probs := out[tokenloss.Probs].F32()
		for i, e := range batch {
			for j, target := range e[1:] {
				prior.Add(probs[(i*s.length+j)*c.VocabSize():][:c.VocabSize()], int(target))
			}
		}
	})
	if err != nil {
		return nil, nil, err
	}
	s.in[tokenloss.Bias] = tensor.FromF32(prior.Bias(), c.VocabSize())
	adjusted, err = s.losses(ctx, tokenloss.Biased, progress, nil)
	return losses, adjusted, err
}

// set is a model with the examples that it is measured on.
type set struct {
	c            architecture.Config
	in           map[string]*tensor.Tensor // of programs: the tensors of the model, and more
	examples     [][]uint32
	rows, length int // of a batch
	threads      int
}

func newSet(c architecture.Config, tensors map[string]*tensor.Tensor, examples [][]uint32, threads int) (*set, error) {
	length, err := longest(c, examples)
	if err != nil {
		return nil, err
	}
	s := &set{c: c, in: map[string]*tensor.Tensor{}, examples: examples, length: length, threads: threads,
		rows: min(rows(c, length), len(examples))}
	for _, n := range c.Tensors() {
		s.in[optimizer.Param+n.Name] = tensors[n.Name]
	}
	return s, nil
}

// rows is how many examples of a length are computed at once, at most.
func rows(c architecture.Config, length int) int {
	return max(1, min(batchTokens/length, batchScores/(length*c.VocabSize())))
}

// Bytes is the memory that scores of tokens take while the losses of a model on examples are computed, besides its
// tensors. The error wraps ErrExamples if the model cannot predict them.
func Bytes(c architecture.Config, examples [][]uint32) (int64, error) {
	length, err := longest(c, examples)
	if err != nil {
		return 0, err
	}
	return arrays * 4 * int64(rows(c, length)) * int64(length) * int64(c.VocabSize()), nil
}

// losses are those of the examples by a program of tokenloss.LogProbs. progress and also may be nil; also has all
// outputs of a batch.
func (s *set) losses(ctx context.Context, by func(c architecture.Config, rows, length int) (*program.Program, error),
	progress func(done int), also func(batch [][]uint32, out map[string]*tensor.Tensor)) ([]uint32, error) {
	p, err := by(s.c, s.rows, s.length)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExamples, err)
	}
	exec, err := cpu.Compile(p, s.threads)
	if err != nil {
		return nil, err
	}
	defer exec.Release()
	losses := make([]uint32, 0, len(s.examples))
	for batch := range slices.Chunk(s.examples, s.rows) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.in[tokenloss.Tokens], s.in[tokenloss.Targets] = padded(batch, s.rows, s.length)
		out, err := exec.Run(s.in)
		if err != nil {
			return nil, err
		}
		logs := out[tokenloss.LogProbs].F32()
		for i, e := range batch {
			losses = append(losses, mean(logs[i*s.length:][:len(e)-1]))
		}
		if also != nil {
			also(batch, out)
		}
		if progress != nil {
			progress(len(losses))
		}
	}
	return losses, nil
}

// longest is how many tokens the longest example has that are predicted.
func longest(c architecture.Config, examples [][]uint32) (length int, err error) {
	for i, e := range examples {
		if len(e) < 2 || len(e)-1 > c.Context() {
			return 0, fmt.Errorf("%w: example %d has %d tokens, wanted 2 to %d", ErrExamples, i, len(e), c.Context()+1)
		}
		for _, id := range e {
			if int64(id) >= int64(c.VocabSize()) {
				return 0, fmt.Errorf("%w: example %d has the token %d, and the model has %d", ErrExamples, i, id, c.VocabSize())
			}
		}
		length = max(length, len(e)-1)
	}
	if length == 0 {
		return 0, fmt.Errorf("%w: there are none", ErrExamples)
	}
	return length, nil
}

// padded are the tokens and the targets of a batch. The padding has the token 0.
func padded(batch [][]uint32, rows, length int) (tokens, targets *tensor.Tensor) {
	a, b := make([]int32, rows*length), make([]int32, rows*length)
	for i, e := range batch {
		for j := range len(e) - 1 {
			a[i*length+j], b[i*length+j] = int32(e[j]), int32(e[j+1])
		}
	}
	return tensor.FromI32(a, rows, length), tensor.FromI32(b, rows, length)
}

// mean is the mean of negated log-probabilities in units, rounded down.
func mean(logs []float32) uint32 {
	sum := uint64(0)
	for _, l := range logs {
		loss := -float64(l) * Unit // a power of two: the product is exact
		switch {
		case !(loss < Most):
			sum += Most
		case loss > 0:
			sum += uint64(math.RoundToEven(loss))
		}
	}
	return uint32(sum / uint64(len(logs)))
}

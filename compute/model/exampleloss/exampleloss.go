// Package exampleloss computes the loss of a language model on single examples, as integers that are the same on every
// machine, whatever the other examples are. It reads no files.
package exampleloss

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/compute/optimizer"
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

// batchTokens is about how many tokens are computed at once.
const batchTokens = 1024

// Measure returns the mean loss of each example over its tokens after the first, in units of which a nat has 2^20,
// rounded down. Tokens have their losses rounded to the nearest unit. The tensors are float32, by the names of
// c.Tensors. progress is called after each batch; it may be nil.
func Measure(ctx context.Context, c architecture.Config, tensors map[string]*tensor.Tensor, examples [][]uint32,
	threads int, progress func(done int)) ([]uint32, error) {
	length, err := longest(c, examples)
	if err != nil {
		return nil, err
	}
	rows := max(1, min(batchTokens/length, len(examples)))
	p, err := tokenloss.Forward(c, rows, length)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExamples, err)
	}
	exec, err := cpu.Compile(p, threads)
	if err != nil {
		return nil, err
	}
	in := map[string]*tensor.Tensor{}
	for _, n := range c.Tensors() {
		in[optimizer.Param+n.Name] = tensors[n.Name]
	}
	losses := make([]uint32, 0, len(examples))
	for len(losses) < len(examples) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch := examples[len(losses):min(len(losses)+rows, len(examples))]
		in[tokenloss.Tokens], in[tokenloss.Targets] = padded(batch, rows, length)
		out, err := exec.Run(in)
		if err != nil {
			return nil, err
		}
		logs := out[tokenloss.LogProbs].F32()
		for i, e := range batch {
			losses = append(losses, mean(logs[i*length:][:len(e)-1]))
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

package learner

import (
	"context"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/exampleloss"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/descent"
	"github.com/starling-network/starling/node/benchmark/privacy/digits"
)

// Shared is the model of a round, which members train by plain gradient descent on batches of their examples.
type Shared struct {
	*Model
	descent *descent.Descent
	many    *cpu.Exec // scores of as many examples as looked says
}

// looked is how many examples are scored at once.
const looked = 100

// NewShared is a network with weights that a seed draws.
func NewShared(seed uint64) (*Shared, error) {
	m, err := ofBatch(seed, batch)
	if err != nil {
		return nil, err
	}
	d, err := descent.New(m.Step, optimizer.SGD{}, nil, nil, 1)
	if err != nil {
		return nil, err
	}
	code, err := model.Scores(m.Vision, looked)
	if err != nil {
		return nil, err
	}
	many, err := cpu.Compile(code, 1)
	return &Shared{m, d, many}, err
}

// Update is what a member subtracts from the weights in a round: by a number of steps at a rate.
func (s *Shared) Update(ctx context.Context, data Data, round, steps int, rate float32) ([]*tensor.Tensor, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.steps(s.descent, data, round*steps, steps, rate)
}

// Loss is the mean loss of the model less a part of an update on examples, in nats.
func (s *Shared) Loss(update []*tensor.Tensor, part float32, of Data) (float64, error) {
	all, err := s.moved(update, part, of)
	return mean(all, nil, of), err
}

// Adjusted is Loss, and the loss by adjusted scores, as evaluators of committees compute them (exampleloss.Adjusted).
func (s *Shared) Adjusted(update []*tensor.Tensor, part float32, of Data) (exact, adjusted float64, _ error) {
	all, err := s.moved(update, part, of)
	prior := exampleloss.NewPrior(digits.Classes)
	for i, scores := range all {
		prior.Add(probabilities(scores), of[i].Digit)
	}
	exact = mean(all, nil, of)
	return exact, mean(all, prior.Bias(), of), err
}

// probabilities are those of scores.
func probabilities(scores []float32) []float32 {
	p, best, sum := make([]float32, len(scores)), slices.Max(scores), float32(0)
	for i, s := range scores {
		p[i] = float32(math.Exp(float64(s - best)))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// mean is the mean loss of the scores of examples, to which a bias is added; nil: none.
func mean(all [][]float32, bias []float32, of Data) float64 {
	sum := 0.0
	for i, scores := range all {
		for k, b := range bias {
			scores[k] += b
		}
		sum += entropy(scores, of[i].Digit)
	}
	return sum / float64(len(of))
}

// moved are the scores of the model less a part of an update for each example.
func (s *Shared) moved(update []*tensor.Tensor, part float32, of Data) (all [][]float32, _ error) {
	in := map[string]*tensor.Tensor{}
	for i, w := range s.less(scaled(update, part)) {
		in[optimizer.Param+s.Names[i]] = w
	}
	row := make([]int32, digits.Values+1)
	for some := range slices.Chunk(of, looked) {
		tokens := tensor.New(tensor.Make(tensor.Int32, looked, digits.Values))
		for i, e := range some {
			e.Tokens(row)
			copy(tokens.I32()[i*digits.Values:], row[1:])
		}
		in["tokens"] = tokens
		out, err := s.many.Run(in)
		if err != nil {
			return nil, err
		}
		scores := slices.Clone(out["scores"].F32())
		for i := range some {
			all = append(all, scores[i*digits.Classes:][:digits.Classes])
		}
	}
	return all, nil
}

// less are the weights less an update; nil: as they are.
func (s *Shared) less(update []*tensor.Tensor) []*tensor.Tensor {
	if update == nil {
		return s.Weights
	}
	list := make([]*tensor.Tensor, len(s.Weights))
	for i, w := range s.Weights {
		list[i] = train.Difference(w, update[i])
	}
	return list
}

// Move subtracts the mean of updates from the weights.
func (s *Shared) Move(updates [][]*tensor.Tensor) {
	for _, u := range updates {
		s.Weights = s.less(scaled(u, 1/float32(len(updates))))
	}
}

// scaled is a part of an update.
func scaled(update []*tensor.Tensor, part float32) []*tensor.Tensor {
	var list []*tensor.Tensor
	for i, t := range update {
		list = append(list, tensor.New(t.Shape))
		for k, x := range t.F32() {
			list[i].F32()[k] = x * part
		}
	}
	return list
}

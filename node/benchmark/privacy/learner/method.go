package learner

import (
	"context"

	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/descent"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/exchange/scaffold"
	"github.com/starling-network/starling/node/benchmark/privacy/digits"
)

// Method is the accuracy that owners reach by a method, without noise.
type Method struct {
	Dirichlet float64 `json:"dirichlet"` // parameter of the shares of the digits of an owner
	Name      string  `json:"method"`    // federated.method of a job
	Accuracy  float64 `json:"accuracy"`  // on digits of no owner
}

// Of Methods: the examples of a step, the steps of a round, and the rate of learning.
const (
	batch = 20
	steps = 20
	rate  = 0.1
)

// longest is above the norm of all updates, so that none is clipped.
const longest = 100

// Methods trains on digits of owners with shares of Dirichlet distributions by each method.
func Methods(ctx context.Context, s Size, progress func(Method)) (all []Method, err error) {
	for _, alpha := range []float64{0.1, 0.5} {
		owners := Owners(alpha, s)
		for _, name := range []string{"mean", "scaffold"} {
			m, err := ofBatch(1, batch)
			if err != nil {
				return nil, err
			}
			if err := m.rounds(ctx, s.Rounds, owners, name == "scaffold"); err != nil {
				return nil, err
			}
			x := Method{Dirichlet: alpha, Name: name}
			if x.Accuracy, err = m.Accuracy(Drawn(1<<20, 1000)); err != nil {
				return nil, err
			}
			all = append(all, x)
			progress(x)
		}
	}
	return all, nil
}

// rounds plays rounds of owners that take their examples in turn, with control variates or without.
func (m *Model) rounds(ctx context.Context, rounds int, owners []Data, steered bool) error {
	d, err := descent.New(m.Step, optimizer.SGD{}, nil, nil, 1)
	if err != nil {
		return err
	}
	variates := make([][]*tensor.Tensor, len(owners))
	for i := range variates {
		variates[i] = scaffold.Zeros(m.Weights)
	}
	sum := scaffold.Zeros(m.Weights)
	var shapes []tensor.Shape
	for _, w := range m.Weights {
		shapes = append(shapes, w.Shape)
	}
	for r := range rounds {
		mean := scaffold.Mean(sum, len(owners))
		var added []uint32
		for i, data := range owners {
			if err := ctx.Err(); err != nil {
				return err
			}
			if steered {
				d.Steer = scaffold.Steer(mean, variates[i])
			}
			update, err := m.steps(d, data, r*steps, steps, rate)
			if err != nil {
				return err
			}
			values, err := fixedpoint.Encode(update, longest, 1)
			if err != nil {
				return err
			}
			sent, err := fixedpoint.Mean(values, longest, shapes)
			if err != nil {
				return err
			}
			variates[i] = scaffold.Next(variates[i], mean, sent, steps*float64(float32(rate)))
			if added == nil {
				added = make([]uint32, len(values))
			}
			for k, v := range values {
				added[k] += v
			}
		}
		moved, err := fixedpoint.Mean(added, longest, shapes)
		if err != nil {
			return err
		}
		sum = scaffold.Sum(sum, mean, moved, len(owners), steps*float64(float32(rate)))
		for i, w := range m.Weights {
			m.Weights[i] = train.Difference(w, moved[i])
		}
	}
	return nil
}

// steps is the update of an owner in a round: the weights before a number of steps at a rate less those after them.
// first is the number of the first step, counted over all rounds.
func (m *Model) steps(d *descent.Descent, data Data, first, number int, rate float32) (update []*tensor.Tensor,
	err error) {
	if err := d.Begin(m.Weights); err != nil {
		return nil, err
	}
	const row = digits.Values + 2 // with the first token of the next one, which nothing reads
	tokens := make([]int32, batch*row)
	for k := range number {
		for j := range batch {
			data.Row(((first+k)*batch+j)%len(data), tokens[j*row:][:digits.Values+1])
		}
		if _, err := d.Step(tokens, nil, rate, 1, 1); err != nil {
			return nil, err
		}
	}
	end := scaffold.Zeros(m.Weights)
	if err := d.State(end); err != nil {
		return nil, err
	}
	for i, w := range m.Weights {
		update = append(update, train.Difference(w, end[i]))
	}
	return update, nil
}

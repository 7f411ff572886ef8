package learner

import (
	"context"

	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/descent"
)

// Shared is the model of a round, which members train by plain gradient descent on batches of their examples.
type Shared struct {
	*Model
	descent *descent.Descent
}

// NewShared is a network with weights that a seed draws.
func NewShared(seed uint64) (*Shared, error) {
	m, err := ofBatch(seed, batch)
	if err != nil {
		return nil, err
	}
	d, err := descent.New(m.Step, optimizer.SGD{}, nil, nil, 1)
	return &Shared{m, d}, err
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
	whole := s.Weights
	defer func() { s.Weights = whole }()
	s.Weights = s.less(scaled(update, part))
	sum := 0.0
	for _, e := range of {
		loss, _, err := s.look(e)
		if err != nil {
			return 0, err
		}
		sum += loss
	}
	return sum / float64(len(of)), nil
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

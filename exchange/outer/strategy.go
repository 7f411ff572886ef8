package outer

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

// Strategy is a recipe for exchanging pseudo-gradients: when, how compressed, how combined, how applied.
type Strategy struct {
	Schedule  Schedule
	Codec     codec.Codec
	Feedback  float32 // decay of the residual of error feedback; 0 sends without it
	Rule      aggregate.Rule
	Optimizer Optimizer
	Merge     Merge
}

func named(name string) codec.Codec {
	c, ok := codec.ByName(name)
	if !ok {
		panic("outer: no codec " + name)
	}
	return c
}

// DiLoCo exchanges the whole model after every h inner steps, 8 bits a parameter (Douillard et al. 2023; the codec is
// that of INTELLECT-1).
func DiLoCo(h int) Strategy {
	return Strategy{
		Schedule: Schedule{Every: h, Fragments: 1}, Codec: named(codec.Int8),
		Rule: aggregate.Average{}, Optimizer: Momentum{Rate: 0.7, Decay: 0.9}, Merge: DeltaRule,
	}
}

// StreamingDiLoCo exchanges fragments in turn while training goes on, 4 bits a parameter (Douillard et al. 2025), with
// the delta rule in place of the paper's merge.
func StreamingDiLoCo(h, fragments, delay int) Strategy {
	return Strategy{
		Schedule: Schedule{Every: h, Fragments: fragments, Delay: delay}, Codec: named(codec.E3M0),
		Rule: aggregate.Average{}, Optimizer: Momentum{Rate: 0.7, Decay: 0.9}, Merge: DeltaRule,
	}
}

// SparseLoCo sends 64 of 4096 elements in 2 bits with error feedback, which takes the place of momentum (Sarfi et al.
// 2025). Updates are shortened to the median length and averaged over those that sent an element.
func SparseLoCo(h int) Strategy {
	return Strategy{
		Schedule: Schedule{Every: h, Fragments: 1}, Codec: named(codec.Sparse), Feedback: 0.95,
		Rule: aggregate.PerTensor{Rule: aggregate.NormClip{Rule: aggregate.ContributorMean{}}}, Optimizer: Descent{Rate: 1}, Merge: DeltaRule,
	}
}

// FedAvg averages the parameters themselves after every h inner steps, weighted by the tokens of each worker (McMahan et
// al. 2017).
func FedAvg(h int) Strategy {
	return Strategy{
		Schedule: Schedule{Every: h, Fragments: 1}, Codec: named(codec.Float32),
		Rule: aggregate.Average{}, Optimizer: Descent{Rate: 1}, Merge: DeltaRule,
	}
}

// Pack compresses the pseudo-gradient of a fragment. residual is what Pack returned for the worker's last update of it,
// or nil for a worker that begins, comes back, or whose last update was not used.
func (s Strategy) Pack(residual, delta []*tensor.Tensor) (payloads [][]byte, next []*tensor.Tensor, err error) {
	if residual == nil {
		residual = make([]*tensor.Tensor, len(delta))
	} else if err := alike(delta, residual); err != nil {
		return nil, nil, err
	}
	for i, d := range delta {
		var p []byte
		var r *tensor.Tensor
		if s.Feedback == 0 {
			p, err = codec.Compress(s.Codec, d)
		} else {
			p, r, err = codec.Feedback{Codec: s.Codec, Decay: s.Feedback}.Encode(residual[i], d)
			next = append(next, r)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("parameter %d: %w", i, err)
		}
		payloads = append(payloads, p)
	}
	return payloads, next, nil
}

// Unpack restores what Pack sent, for parameters of these shapes.
func (s Strategy) Unpack(payloads [][]byte, shapes []tensor.Shape) ([]*tensor.Tensor, error) {
	if len(payloads) != len(shapes) {
		return nil, fmt.Errorf("%w: %d payloads for %d parameters", codec.ErrPayload, len(payloads), len(shapes))
	}
	delta := make([]*tensor.Tensor, len(shapes))
	for i, p := range payloads {
		var err error
		if delta[i], err = codec.Restore(s.Codec, p, shapes[i]); err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i, err)
		}
	}
	return delta, nil
}

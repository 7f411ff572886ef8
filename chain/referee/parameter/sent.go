// Package parameter computes, for one parameter of a job, the elements that a unit sends of it and the residual that
// the unit carries, part by part, and whether the evidence for a part fits in a payload.
//
// It compares nothing with a claim: that is chain/referee.
package parameter

import (
	"fmt"

	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/transform"
)

// Shape is the shape of a parameter that is trained.
func Shape(p *program.Program, name string) tensor.Shape {
	for _, in := range p.Inputs() {
		if in.Name == train.Param+name {
			return in.Shape
		}
	}
	return tensor.Shape{}
}

// Sent is what is sent of a parameter in a round: how its payload is made.
type Sent struct {
	codec.PartialEncoder
	Codec     string
	Transform string // of the elements, before
	Shape     tensor.Shape
}

// Of returns what is sent of parameter index in a round. The error wraps evidence.ErrPayload.
func Of(s *train.Spec, p *program.Program, round, index uint32) (x Sent, err error) {
	names := train.Params(p)
	if uint64(index) >= uint64(len(names)) {
		return x, evidence.Wrong("there is no parameter %d", index)
	}
	return of(s, names[index], Shape(p, names[index]), round, index)
}

// of is Of for a parameter with a name and a shape.
func of(s *train.Spec, name string, shape tensor.Shape, round, index uint32) (x Sent, err error) {
	turn, err := outer.TurnOf(s, name, int(index), round)
	if err != nil {
		return x, fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	x.Codec, x.Transform, x.Shape = turn.Codec, s.Exchange.Transform, shape
	if x.PartialEncoder, err = codec.MakingOf(x.Codec, x.Shape); err != nil {
		return x, fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	return x, nil
}

// ToSend is elements lo up to hi of the update of a parameter, before it is compressed, from the elements of the
// checkpoint and of the last state within their transform.Reach. The residual is added, if it is not nil; where rounds
// overlap, the carried state is sent already.
func (x Sent) ToSend(s *train.Spec, base, end, left []float32, lo, hi int) []float32 {
	if left != nil && s.Exchange.Overlap > 0 {
		return Minus(Minus(base, left), end)
	}
	from, _ := transform.Reach(x.Transform, x.Shape, lo, hi)
	delta := transform.Piece(x.Transform, x.Shape, Minus(base, end))[lo-from : hi-from]
	if left != nil {
		feedback(s).Accumulate(delta, left)
	}
	return delta
}

// Adds reports whether the update of a parameter is computed from the carried state of the unit, besides the checkpoint
// and the last state. The updates of most replicas are not: these began with it.
func Adds(s *train.Spec, round uint32, name string) bool {
	return s.Exchange.Feedback > 0 || s.UnderWay(round, name)
}

// Minus returns the elements of a less those of b, which are as many.
func Minus(a, b []float32) []float32 {
	out := make([]float32, len(a))
	for i := range out {
		out[i] = a[i] - b[i]
	}
	return out
}

// feedback is the error feedback of a job that has it.
func feedback(s *train.Spec) codec.Feedback {
	return codec.Feedback{Decay: float32(s.Exchange.Feedback)}
}

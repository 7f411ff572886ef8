package outer

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/fragment"
	"github.com/starling-network/starling/exchange/codec"
)

// ParamStep is the exchange of a parameter in a round.
type ParamStep struct {
	Codec string    // of its update
	Moves Optimizer // optimizer of the checkpoint; nil: it stays as it is
}

// Turns are the steps of the parameters with these names in a round, in order. Most jobs exchange everything in every
// round. A job with replicas does so in the last round of a group, where the rest would be lost. In the others it
// exchanges random elements of every parameter, which move to their mean as in Sparta, or the whole of one fragment of
// the layers, as in Streaming DiLoCo; with a delay of a round where they overlap.
func Turns(s *train.Spec, names []string, round uint32) ([]ParamStep, error) {
	turns := make([]ParamStep, len(names))
	for i, name := range names {
		var err error
		if turns[i], err = TurnOf(s, name, i, round); err != nil {
			return nil, err
		}
	}
	return turns, nil
}

// TurnOf is the step of the parameter of this name and number in a round.
func TurnOf(s *train.Spec, name string, number int, round uint32) (ParamStep, error) {
	x := s.Exchange
	if x.Pairs > 0 { // every replica moves by itself
		return ParamStep{Codec: x.Codec}, nil
	}
	optimizer, err := NewOptimizer(x)
	if err != nil {
		return ParamStep{}, err
	}
	switch {
	case !s.Carries(round):
	case x.SampleEvery > 0:
		pick := codec.RandomK{Every: int(x.SampleEvery), Bits: 16, Seed: s.Seed, Stream: uint64(number), Round: round}
		return ParamStep{Codec: codec.RandomName(pick), Moves: GradientDescent{Rate: 1}}, nil
	case !s.Sends(round, name):
		return ParamStep{Codec: codec.Skip}, nil
	}
	return ParamStep{Codec: x.Codec, Moves: optimizer}, nil
}

// Sent is how many bytes the payloads of a unit have, in each round of a group.
func Sent(s *train.Spec, names []string, shapes []tensor.Shape) (bytes []int64, err error) {
	bytes = make([]int64, max(1, s.Exchange.Carry))
	for round := range bytes {
		for i, name := range names {
			turn, err := TurnOf(s, name, i, uint32(round))
			if err != nil {
				return nil, err
			}
			c, ok := codec.ByName(turn.Codec)
			if !ok {
				return nil, fmt.Errorf("outer: codec %q is not known", turn.Codec)
			}
			bytes[round] += int64(codec.Size(c, shapes[i]))
		}
	}
	return bytes, nil
}

// Exchanged reports, as an error, the first fragment that no parameter with one of these names belongs to.
func Exchanged(x train.Exchange, names []string) error {
	has := make([]bool, x.Fragments)
	for _, n := range names {
		if x.Fragments > 0 {
			has[fragment.Of(n, x.Fragments)] = true
		}
	}
	for f, ok := range has {
		if !ok {
			return fmt.Errorf("outer: of %d fragments of the layers, number %d has no parameter", x.Fragments, f+1)
		}
	}
	return nil
}

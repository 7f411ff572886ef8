package bundle

import (
	"errors"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
)

// ErrNoData is returned for a round whose data, which its consumer named, cannot be had, or are not what was named.
var ErrNoData = errors.New("engine: the data that the consumer named for the round cannot be had")

// Begun are the names and shapes of the tensors with which units begin besides a checkpoint: the data of a round that
// the consumer leads, or what other units of a step have passed on.
func Begun(s *train.Spec, x train.Exchange, step *program.Program) (names []string, shapes []tensor.Shape) {
	if !s.Led {
		return train.CarriedNames(x, step), train.HandedShapes(x, step)
	}
	inputs := step.InputShapes()
	for _, n := range parts.Given(step) {
		names, shapes = append(names, n), append(shapes, inputs[n])
	}
	return names, shapes
}

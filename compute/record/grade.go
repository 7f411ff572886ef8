package record

import (
	"errors"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/program"
)

// errReward is returned where a gradient goes through a reward.
var errReward = errors.New("record: a reward has no gradient")

// Grade rewards answers [m, length] to the prompts of examples [n, columns], both int32, by the bytes of a rule, as
// program.Grade specifies it: float32 [m].
func Grade(rule []byte, examples, answers *graph.Node) *graph.Node {
	at := valueOf(examples)
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		g, err := grade.Decode(rule)
		if err != nil {
			return -1, err
		}
		cost, err := g.Cost(b.Shape(in[0]).Dims[1])
		if err != nil {
			return -1, err
		}
		return b.Append(program.Operator{Kind: program.Grade, In: []int32{int32(at), int32(in[0])},
			Ints: []int64{int64(cost)}, Data: rule})
	}
	op.backward = func(*program.Builder, [3]program.Value, program.Value, program.Value) ([3]program.Value, error) {
		return [3]program.Value{}, errReward
	}
	return apply(op, answers)
}

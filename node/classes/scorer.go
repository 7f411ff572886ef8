package classes

import (
	"math"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/tensor"
)

// scorer computes scores of classes. It has a program for each number and length of examples that it has seen.
type scorer struct {
	weights  map[string]*tensor.Tensor // by the names of the programs' inputs
	threads  int
	programs map[shape]*cpu.Exec
}

// network gives scores of classes to examples.
type network interface {
	model.Classifier
	Labels() []string
}

// shape is that of examples which are scored at once.
type shape struct{ rows, length int }

func newScorer(weights map[string]*tensor.Tensor, threads int) *scorer {
	return &scorer{weights, threads, map[shape]*cpu.Exec{}}
}

// probabilities are those of the classes of a network, for each of a number of examples whose tokens fill writes, row
// after row.
func (s *scorer) probabilities(n network, rows int, fill func(tokens []int32)) (all [][]float64, err error) {
	scores, err := s.scores(n, rows, fill)
	for k := len(n.Labels()); len(scores) > 0; scores = scores[k:] {
		all = append(all, softmax(scores[:k]))
	}
	return all, err
}

// scores are those of the classes, in place of their probabilities, one example after another.
func (s *scorer) scores(n network, rows int, fill func(tokens []int32)) ([]float32, error) {
	at := shape{rows, n.Example()}
	if s.programs[at] == nil {
		p, err := model.Scores(n, rows)
		if err != nil {
			return nil, err
		}
		if s.programs[at], err = cpu.Compile(p, s.threads); err != nil {
			return nil, err
		}
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.New(tensor.Make(tensor.Int32, rows, at.length))}
	fill(in["tokens"].I32())
	for name, w := range s.weights {
		in[name] = w
	}
	out, err := s.programs[at].Run(in)
	if err != nil {
		return nil, err
	}
	return out["scores"].F32(), nil
}

// softmax is that of scores.
func softmax(scores []float32) []float64 {
	top, sum := math.Inf(-1), 0.
	for _, s := range scores {
		top = max(top, float64(s))
	}
	out := make([]float64, len(scores))
	for i, s := range scores {
		out[i] = math.Exp(float64(s) - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

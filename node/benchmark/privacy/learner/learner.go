// Package learner trains a small network on digits by the steps of owners of data, with noise and without, and says
// which digits it knows and how well an attacker tells the examples that it was trained on from others.
package learner

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/dpsgd"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/exchange/renyi"
	"github.com/starling-network/starling/node/benchmark/privacy/digits"
	"github.com/starling-network/starling/node/benchmark/privacy/network"
)

// Data are the examples of an owner.
type Data []digits.Example

// Len implements dpsgd.Examples.
func (d Data) Len() int { return len(d) }

// Row implements dpsgd.Examples.
func (d Data) Row(i int, into []int32) { d[i].Tokens(into) }

// Plan is how owners train.
type Plan struct {
	dpsgd.Terms
	Rounds, Steps int     // steps of a round, of each owner
	Rate          float32 // of learning
}

// Epsilon is the least epsilon of each example of an owner with this number of examples.
func (p Plan) Epsilon(examples int, delta float64) float64 {
	return renyi.Gaussian(p.Terms.Rate(examples), p.Noise).Times(float64(p.Rounds * p.Steps)).Epsilon(delta)
}

// For is the plan with the least noise, in hundredths, of which epsilon is at most a number.
func (p Plan) For(epsilon float64, examples int, delta float64) Plan {
	low, high := 20, 400
	for low < high {
		if mid := (low + high) / 2; p.at(mid).Epsilon(examples, delta) <= epsilon {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return p.at(high)
}

func (p Plan) at(hundredths int) Plan {
	p.Noise = float64(hundredths) / 100
	return p
}

// Model is a network with its weights.
type Model struct {
	*network.Network
	scores *cpu.Exec
}

// New is a network of one hidden layer for digits, with weights that a seed draws.
func New(seed uint64) (*Model, error) { return ofBatch(seed, 1) }

// ofBatch is New with a step on a number of examples.
func ofBatch(seed uint64, examples int) (*Model, error) {
	n, err := network.New(vision.MLP, map[string]any{"hidden_sizes": []any{32}}, seed, examples)
	if err != nil {
		return nil, err
	}
	code, err := model.Scores(n.Vision, 1)
	if err != nil {
		return nil, err
	}
	m := &Model{Network: n}
	m.scores, err = cpu.Compile(code, 1)
	return m, err
}

// Train moves the model by the mean of the updates of owners in each round of a plan.
func (m *Model) Train(ctx context.Context, p Plan, owners []Data, seed prg.Key) error {
	for r := range p.Rounds {
		sum := make([]*tensor.Tensor, len(m.Weights))
		for i, w := range m.Weights {
			sum[i] = tensor.New(w.Shape)
		}
		for i, data := range owners {
			if err := ctx.Err(); err != nil {
				return err
			}
			key := prg.Derive(seed[:], "starling/benchmark/owner", binary.LittleEndian.AppendUint64(nil, uint64(r<<16|i)))
			end, err := m.Private(p.Terms, data, p.Rate, p.Steps, key)
			if err != nil {
				return err
			}
			for k, t := range sum {
				for j := range t.F32() {
					t.F32()[j] += end[k].F32()[j] / float32(len(owners))
				}
			}
		}
		m.Weights = sum
	}
	return nil
}

// look is the loss of the model on an example, and whether it names its digit.
func (m *Model) look(e digits.Example) (loss float64, hit bool, err error) {
	row := make([]int32, digits.Values+1)
	e.Tokens(row)
	in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(row[1:], 1, digits.Values)}
	for i, n := range m.Names {
		in[optimizer.Param+n] = m.Weights[i]
	}
	out, err := m.scores.Run(in)
	if err != nil {
		return 0, false, err
	}
	scores := out["scores"].F32()
	return entropy(scores, e.Digit), scores[e.Digit] == slices.Max(scores), nil
}

// entropy is the loss of the scores of an example.
func entropy(scores []float32, digit int) float64 {
	best, sum := slices.Max(scores), 0.0
	for _, s := range scores {
		sum += math.Exp(float64(s - best))
	}
	return math.Log(sum) + float64(best-scores[digit])
}

// Accuracy is the share of examples whose digit the model names.
func (m *Model) Accuracy(of Data) (float64, error) {
	hits := 0
	for _, e := range of {
		_, hit, err := m.look(e)
		if err != nil {
			return 0, err
		}
		if hit {
			hits++
		}
	}
	return float64(hits) / float64(len(of)), nil
}

// Membership is the area under the curve of an attacker that takes examples with a low loss for those that the model
// was trained on (Yeom et al. 2018): 1/2 of one that guesses.
func (m *Model) Membership(members, others Data) (float64, error) {
	type seen struct {
		loss   float64
		member bool
	}
	var all []seen
	for i, e := range slices.Concat(members, others) {
		loss, _, err := m.look(e)
		if err != nil {
			return 0, err
		}
		all = append(all, seen{loss, i < len(members)})
	}
	slices.SortStableFunc(all, func(a, b seen) int { return cmp.Compare(a.loss, b.loss) })
	before, pairs := 0.0, 0.0
	for _, s := range all {
		if s.member {
			before++
		} else {
			pairs += before
		}
	}
	return pairs / float64(len(members)*len(others)), nil
}

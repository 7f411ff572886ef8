// Package factors measures ways to add what owners of data train with adapters: the mean of products of two factors is
// not the product of the mean factors. All owners are in this process, and their updates are added on the grid of
// integers without masks, which cancel to the bit.
package factors

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/adapter"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/descent"
	"github.com/starling-network/starling/compute/train/schedule"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/exchange/fixedpoint"
)

// Size is how much a measurement computes.
type Size struct {
	Owners int
	Rounds int // of each way
	Base   int // steps that the base model is trained with
}

// Way is how owners train adapters.
type Way struct {
	Name  string  `json:"way"`
	Loss  float64 `json:"loss"`  // on texts of all owners that none has trained on, in nats
	Above float64 `json:"above"` // by how much it is above that of one owner of all data, relatively
	Bytes int     `json:"bytes"` // that an owner sends in a round
}

// Sizes of the network and of the steps.
const (
	symbols, length, batch = 32, 32, 8
	rank, steps            = 4, 20 // steps of an owner in a round
	ratePeak               = 1e-2
	clip                   = 100 // above the norm of all updates
)

// network is a language model with adapters, and its training step.
type network struct {
	config architecture.Config
	step   *program.Program
	frozen []*tensor.Tensor
	first  []*tensor.Tensor // adapters that the next round begins with
}

var inner = optimizer.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}

// Measure trains adapters on a base model in each way.
func Measure(ctx context.Context, s Size, progress func(string)) (ways []Way, err error) {
	n, err := newNetwork(s)
	if err != nil {
		return nil, err
	}
	of := owners(s.Owners)
	all := func(string, uint32) bool { return true }
	up := func(name string, _ uint32) bool { return strings.HasSuffix(name, architecture.UpSuffix) }
	for _, w := range []plan{
		{"one owner of all data", all, false, [][]texts{slices.Concat(of...)}},
		{"factors that take turns", federated.Trains, false, of},
		{"one factor, the other as it was drawn", up, false, of},
		{"the mean of each factor", all, false, of},
		{"products of both factors", all, true, of},
	} {
		progress("adapters: " + w.name)
		way := Way{Name: w.name}
		if way.Loss, way.Bytes, err = n.train(ctx, s, w); err != nil {
			return nil, err
		}
		if len(ways) > 0 {
			way.Above = way.Loss/ways[0].Loss - 1
		}
		ways = append(ways, way)
	}
	return ways, nil
}

// plan is a way with its owners.
type plan struct {
	name     string
	trains   func(name string, round uint32) bool
	products bool // owners send by how much their adapters change weights, and begin with new adapters in each round
	owners   [][]texts
}

// newNetwork trains a base model on texts of a language that the languages of owners differ from.
func newNetwork(s Size) (*network, error) {
	c, err := architecture.Parse(architecture.Llama, map[string]any{"vocab_size": symbols, "hidden_size": 32,
		"intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": length})
	if err != nil {
		return nil, err
	}
	n := &network{}
	whole, err := model.TrainStep(c, inner, batch, length)
	if err != nil {
		return nil, err
	}
	first := architecture.Init(c.Tensors(), 1)
	var params []*tensor.Tensor
	for _, name := range train.Params(whole) {
		params = append(params, first[name])
	}
	base, err := unit(whole, nil, nil, params, []texts{{language(0)}}, 5, s.Base, 0, s.Base)
	if err != nil {
		return nil, err
	}
	trained := map[string]*tensor.Tensor{}
	for i, name := range train.Params(whole) {
		trained[name] = base[i]
	}
	if n.config, err = c.Adapt(architecture.LoRA{Rank: rank, Alpha: 2 * rank,
		Targets: []string{architecture.AllLinear}}); err != nil {
		return nil, err
	}
	if n.step, err = model.TrainStep(n.config, inner, batch, length); err != nil {
		return nil, err
	}
	for _, name := range train.Frozen(n.step) {
		n.frozen = append(n.frozen, trained[name])
	}
	adapters := n.config.InitAdapters(2)
	for _, name := range train.Params(n.step) {
		n.first = append(n.first, adapters[name])
	}
	return n, nil
}

// unit returns the parameters after a number of steps of one owner, on texts that are drawn with a seed. from is the
// number of the first of these steps among all steps, by which the learning rate is scheduled.
func unit(step *program.Program, trains func(string) bool, frozen, params []*tensor.Tensor, of []texts, seed uint64,
	steps, from, all int) ([]*tensor.Tensor, error) {
	d, state, err := begun(step, trains, frozen, params)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, 9))
	rate := train.Rate{Peak: ratePeak, Floor: 0.1, Kind: train.Cosine}
	tokens := make([]int32, batch*(length+1))
	for k := range steps {
		for i := range batch {
			of[random.IntN(len(of))].write(random, tokens[i*(length+1):][:length+1])
		}
		t := uint32(k + 1)
		if _, err := d.Step(tokens, nil, rate.At(uint32(from+k), uint32(all)), schedule.Correction(inner.Beta1, t),
			schedule.Correction(inner.Beta2, t)); err != nil {
			return nil, err
		}
	}
	for i, x := range state {
		state[i] = tensor.New(x.Shape)
	}
	return state[:len(params)], d.State(state)
}

// begun is a descent that begins with parameters and with moments of 0, and the state that these are.
func begun(step *program.Program, trains func(string) bool, frozen,
	params []*tensor.Tensor) (d *descent.Descent, state []*tensor.Tensor, err error) {
	if d, err = descent.New(step, inner, trains, frozen, 1); err != nil {
		return nil, nil, err
	}
	state = slices.Clone(params)
	shapes := step.InputShapes()
	for _, name := range train.Moments(step) {
		state = append(state, tensor.New(shapes[name]))
	}
	return d, state, d.Begin(state)
}

// train plays the rounds of a way, and returns the loss in the end and the most bytes of an update.
func (n network) train(ctx context.Context, s Size, p plan) (loss float64, bytes int, err error) {
	names := train.Params(n.step)
	for r := range s.Rounds {
		in := func(name string) bool { return p.trains(name, uint32(r)) }
		var sum []uint32
		var shapes []tensor.Shape
		for o, own := range p.owners {
			if err := ctx.Err(); err != nil {
				return 0, 0, err
			}
			end, err := unit(n.step, in, n.frozen, n.first, own, uint64(r*100+o), steps, r*steps, s.Rounds*steps)
			if err != nil {
				return 0, 0, err
			}
			update, err := n.update(names, end, in, p.products)
			if err != nil {
				return 0, 0, err
			}
			values, err := fixedpoint.Encode(update, clip, 1)
			if err != nil {
				return 0, 0, err
			}
			if bytes = max(bytes, 4*len(values)); sum == nil {
				sum = make([]uint32, len(values))
			}
			for i, v := range values {
				sum[i] += v
			}
			shapes = nil
			for _, t := range update {
				shapes = append(shapes, t.Shape)
			}
		}
		mean, err := fixedpoint.Mean(sum, clip, shapes)
		if err != nil {
			return 0, 0, err
		}
		n = n.moved(names, mean, in, p.products)
	}
	loss, err = n.loss(slices.Concat(p.owners...))
	return loss, bytes, err
}

// update is the vector of an owner whose adapters after its steps are end: the adapters that the round began with less
// these, or, for products, the weights without these adapters less the weights with them.
func (n network) update(names []string, end []*tensor.Tensor, in func(string) bool,
	products bool) (list []*tensor.Tensor, err error) {
	adapters := map[string]*tensor.Tensor{}
	for i, name := range names {
		if adapters[name] = end[i]; in(name) && !products {
			list = append(list, train.Difference(n.first[i], end[i]))
		}
	}
	for i, name := range train.Frozen(n.step) {
		if products && n.adapted(name) {
			merged, err := adapter.Merge(n.config, name, n.frozen[i], adapters)
			if err != nil {
				return nil, err
			}
			list = append(list, train.Difference(n.frozen[i], merged))
		}
	}
	return list, nil
}

// adapted reports whether a weight has an adapter.
func (n network) adapted(name string) bool {
	return slices.ContainsFunc(n.config.Adapted(), func(a architecture.Named) bool { return a.Name == name })
}

// moved is the network after a round, with the mean of its updates subtracted.
func (n network) moved(names []string, mean []*tensor.Tensor, in func(string) bool, products bool) network {
	n.first, n.frozen = slices.Clone(n.first), slices.Clone(n.frozen)
	for i, name := range names {
		if in(name) && !products {
			n.first[i], mean = train.Difference(n.first[i], mean[0]), mean[1:]
		}
	}
	for i, name := range train.Frozen(n.step) {
		if products && n.adapted(name) {
			n.frozen[i], mean = train.Difference(n.frozen[i], mean[0]), mean[1:]
		}
	}
	return n
}

// loss is the mean loss of the network on texts of each owner in turn.
func (n network) loss(of []texts) (mean float64, err error) {
	d, _, err := begun(n.step, nil, n.frozen, n.first)
	if err != nil {
		return 0, err
	}
	const batches = 20
	random := rand.New(rand.NewPCG(77, 77))
	for k := range batches {
		tokens := d.Tokens.I32()
		for i := range batch {
			of[(k*batch+i)%len(of)].write(random, tokens[i*(length+1):][:length+1])
		}
		x, err := d.Gradient(nil)
		if err != nil {
			return 0, err
		}
		mean += float64(x) / batches
	}
	return mean, nil
}

// texts are the languages of an owner, all with the same share.
type texts []chain

// chain is a language: the probabilities of the symbol after each.
type chain [symbols][symbols]float64

// language draws one. Number 0 is that of the base model; a third of the rows of others differ from it.
func language(number uint64) (c chain) {
	row := func(random *rand.Rand) (p [symbols]float64) {
		sum := 0.0
		for i := range p {
			p[i] = math.Pow(random.Float64(), 8)
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	base, own := rand.New(rand.NewPCG(0, 1)), rand.New(rand.NewPCG(number, 1))
	for i := range c {
		c[i] = row(base)
		if other := row(own); number > 0 && own.IntN(3) == 0 {
			c[i] = other
		}
	}
	return c
}

// owners are the texts of a number of owners: each owner has one language of its own.
func owners(n int) (all [][]texts) {
	for i := range n {
		all = append(all, []texts{{language(uint64(1 + i))}})
	}
	return all
}

// write draws a text.
func (t texts) write(random *rand.Rand, into []int32) {
	c, at := &t[random.IntN(len(t))], random.IntN(symbols)
	for i := range into {
		into[i] = int32(at)
		u := random.Float64()
		for at = 0; at < symbols-1 && u >= c[into[i]][at]; at++ {
			u -= c[into[i]][at]
		}
	}
}

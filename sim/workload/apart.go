package workload

import (
	"encoding/json"
	"strings"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/role/bundle"
)

// newApart makes a job of reinforcement learning: units that answer prompts of four letters with up to three, or play
// games about them, and units that learn from these answers.
func newApart(z Size) (*Job, error) {
	const batch, vocab, width, seed = 2, 256, 16, 3
	drawn := model.Rollout{Group: 32, Tokens: 3, Temperature: 1, Apart: int(z.Steps),
		Reward: rollout.Reward{Exact: 1, Prefix: 1}}
	if z.Game {
		drawn.Group, drawn.Stages, drawn.Reads, drawn.Across = 16, 3, 2, z.Across
	}
	length := 5 + drawn.Room()
	answers, err := data.BuildChosen([]source.File{{Format: source.JSONL, Name: "answers",
		Data: []byte(strings.Repeat("{\"a\":\"ask yes\"}\n{\"a\":\"why so\"}\n", 30)),
		Examples: func(object map[string]json.RawMessage) ([]source.Document, error) {
			text := strings.Trim(string(object["a"]), `"`)
			return []source.Document{{Text: text, Learnt: []source.TextRange{{From: 4, To: len(text)}}}}, nil
		}}}, tokenizer.Bytes(), 0, data.Choice{Learnt: true, Pad: length, Group: 1, Answer: 3})
	if err != nil {
		return nil, err
	}
	config, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 1, "n_embd": width, "n_head": 1,
		"n_positions": length, "vocab_size": vocab})
	if err != nil {
		return nil, err
	}
	exchange := train.Exchange{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.Nesterov, Rate: 0.7, Momentum: 0.9}
	if z.Rollout.Shared { // a swarm
		drawn.Others, drawn.Shared = int(z.Units)-1, 2
		exchange = train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1, Policies: z.Units}
	}
	task, err := model.Reinforce(config, model.Batch{Sequences: batch, Length: length, Silent: vocab}, drawn)
	if err != nil {
		return nil, err
	}
	step, err := task.TrainStep(optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1})
	if err != nil {
		return nil, err
	}
	step = step.In(market.DefaultParams().NumericsAt(1))
	weights := config.Init(seed)
	weights["transformer.ln_f.bias"].F32()[0] = 1
	for _, letter := range "yes o" { // those of the answers are likely, so that some are right
		weights["transformer.wte.weight"].F32()[int(letter)*width] = 4
	}
	genesis, err := outer.Genesis(exchange, train.Params(step), weights)
	if err != nil {
		return nil, err
	}
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "sim", Seed: seed, Program: step.Digest(),
		Data:    answers.Manifest(bundle.ShardTokens).Digest(),
		Genesis: genesis.Root(), Rounds: z.Rounds, Steps: z.Steps, Segment: z.Segment, Units: z.Units, Batch: batch,
		Length: uint32(length), Rate: train.Rate{Kind: train.Constant, Peak: 1e-2}, Beta1: 0.9, Beta2: 0.95,
		Exchange: exchange, Rollout: z.Rollout,
	}
	if err := spec.Check(); err != nil {
		return nil, err
	}
	exec, err := spec.Compile(step, 1)
	if err != nil {
		return nil, err
	}
	t := &train.Task{Spec: spec, Step: step, Exec: exec, Corpus: answers}
	if err := t.Divide(); err != nil {
		return nil, err
	}
	return Of("job-"+spec.Digest().Short(), t, genesis), nil
}

// learn adds the checkpoint after the next round to the lineage, of a job whose answers are drawn apart.
func (j *Job) learn() error {
	s, base, each := j.Task.Spec, j.last, func(train.Progress) error { return nil }
	if j.answers == nil {
		j.answers = map[uint32][][]*tensor.Tensor{}
	}
	for i := s.Units; s.Apart().Draw(base.Round) && i < s.Units+s.Apart().Drawing(); i++ {
		on, err := j.Task.Draw(base, i, each)
		if err != nil {
			return err
		}
		j.answers[base.Round] = append(j.answers[base.Round], on)
	}
	var deltas [][]*tensor.Tensor
	for unit := range s.Units {
		var from []*tensor.Tensor
		for _, k := range s.Apart().ReadsAll(unit) {
			from = append(from, j.answers[s.Apart().Policy(base.Round)][k-s.Units]...)
		}
		r, err := j.Task.Run(base, unit, from, nil)
		if err != nil {
			return err
		}
		u, _, err := outer.Commit(s, base.Names, base.Round, unit, r, nil)
		if err != nil {
			return err
		}
		delta, err := outer.Unpack(s, base, base.Round, unit, u.Root(), u.Encode())
		if err != nil {
			return err
		}
		deltas = append(deltas, delta)
	}
	next, err := outer.Consume(s, base, deltas, nil)
	if err != nil {
		return err
	}
	j.last, j.lineage = next, append(j.lineage, next.Root())
	return nil
}

package client_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/terms"
)

// realOrder is an order of work that can be done, and its opening.
func realOrder(n *network, job string, change func(*program.Program)) (market.Order, []byte) {
	n.t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 1, "n_embd": 16, "n_head": 2,
		"n_positions": 8,
		"vocab_size":  32})
	n.must(err)
	step, err := model.TrainStep(c, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}, 2, 8)
	n.must(err)
	change(step)
	m := data.Manifest{Vocab: 32, Width: 2, TrainTokens: 1000, ShardTokens: 1000, Shards: make([]canon.Digest, 1)}
	s := &train.Spec{
		Version: 1, Numerics: step.Numerics, Program: step.Digest(), Data: m.Digest(), Rounds: 1, Steps: 3, Segment: 1,
		Units: 1, Batch: 2, Length: 8,
		Rate: train.Rate{Kind: train.Constant, Peak: 0.1}, Beta1: 0.9, Beta2: 0.95, Genesis: canon.Sum("genesis"),
		Exchange: train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1},
	}
	o := order(job)
	o.Terms.Spec, o.Terms.Rounds, o.Terms.Units, o.Terms.Segments, o.Terms.UnitFlops = s.Digest(), 1, 1, 3, 3*step.Flops()
	return o, referee.Opening(s, step, m)
}

// The chain refuses an order of work whose disputes could not be decided, and one that pays for another number of
// operations than the work has: no member may lose stake without fault.
func TestOrderThatCannotBeDisputedIsRefused(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	n.validator.Stop()
	n.config.Referee = nil // that of every network
	n.open("consumer")
	c := n.clients["consumer"]
	good, opening := realOrder(n, "good", func(*program.Program) {})
	bad, hidden := realOrder(n, "bad", func(p *program.Program) {
		p.Ops = append(slices.Clone(p.Ops),
			program.Operator{Kind: program.Iota, Out: tensor.Make(tensor.Float32, 1<<20), Ints: []int64{0}},
			program.Operator{Kind: program.FirstMax, Out: tensor.Make(tensor.Bool, 1<<20), In: []int32{int32(len(p.Ops))},
				Ints: []int64{0}})
	})
	err := c.Market.Order(n.ctx, bad, hidden)
	if n.refused(err, dispute.ErrWork, "market", 17); !strings.Contains(err.Error(), "FirstMax") {
		t.Errorf("refused with %v", err)
	}
	n.refused(c.Market.Order(n.ctx, good, nil), dispute.ErrWork, "market", 17)
	n.refused(c.Market.Order(n.ctx, good, hidden), dispute.ErrWork, "market", 17)
	for name, change := range map[string]func(*terms.Terms){
		"operations": func(t *terms.Terms) { t.UnitFlops = 1e19 }, "rounds": func(t *terms.Terms) { t.Rounds = 2 },
		"segments": func(t *terms.Terms) { t.Segments = 1 },
		"genesis":  func(t *terms.Terms) { t.Genesis.Root = canon.Sum("another") },
	} {
		other := good
		change(&other.Terms)
		if err := c.Market.Order(n.ctx, other, opening); err == nil {
			t.Errorf("an order of other %s is taken", name)
		} else {
			n.refused(err, market.ErrOrder, "market", 2)
		}
	}
	n.balance("consumer", funds)
	n.must(c.Market.Order(n.ctx, good, opening))
}

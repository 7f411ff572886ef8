package gas

import (
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/run/terms"
)

// An order declares the check of its own work, whatever earlier orders of the account used.
func TestLargerOrderDeclaresItsCheck(t *testing.T) {
	small, large := orderOf(t, 16), orderOf(t, 512)
	if few, many := check(small), check(large); few == 0 || many < 2*few {
		t.Fatalf("the checks take %d and %d", few, many)
	}
	var u Usage
	u.Learn([]sdk.Msg{small}, 50_000, 50_001, true)
	if n := u.Limit([]sdk.Msg{large}); n < check(large)+perMessage {
		t.Errorf("after a small order a large one declares %d, and its check takes %d", n, check(large))
	}
}

// orderOf is an order of a model with a width.
func orderOf(t *testing.T, width int) *marketpb.MsgOrder {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 1, "n_embd": width, "n_head": 2,
		"n_positions": 64, "vocab_size": 64})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(c, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}, 8, 64)
	if err != nil {
		t.Fatal(err)
	}
	m := data.Manifest{Vocab: 64, Width: 2, TrainTokens: 1000, ShardTokens: 1000, Shards: make([]canon.Digest, 1)}
	s := &train.Spec{
		Version: 1, Numerics: step.Numerics, Program: step.Digest(), Data: m.Digest(), Rounds: 1, Steps: 3, Segment: 1,
		Units: 1, Batch: 8, Length: 64,
		Rate: train.Rate{Kind: train.Constant, Peak: 0.1}, Beta1: 0.9, Beta2: 0.95, Genesis: canon.Sum("genesis"),
		Exchange: train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1},
	}
	return &marketpb.MsgOrder{Terms: runpb.FromTerms(terms.Terms{Spec: s.Digest()}), Opening: referee.Opening(s, step, m)}
}

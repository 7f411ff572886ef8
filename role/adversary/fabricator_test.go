package adversary_test

import (
	"context"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/chain/referee/question"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
)

// smallEngine is a party's engine for a tiny job, with its first checkpoint in memory.
func smallEngine(t *testing.T) (*engine.Engine, terms.Checkpoint) {
	return looking(t, terms.ScreenUpdates)
}

// looking is smallEngine with a screen.
func looking(t *testing.T, screen terms.Screen) (*engine.Engine, terms.Checkpoint) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := architecture.Parse(architecture.GPT2,
		map[string]any{"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 8, "vocab_size": 256})
	must(err)
	step, err := model.TrainStep(cfg,
		optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1},
		2, 8)
	must(err)
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 40))
	corpus, err := data.Build([]source.File{{Format: "text", Name: "t", Data: text}}, tokenizer.Bytes(), 0.1)
	must(err)
	manifest := corpus.Manifest(bundle.ShardTokens)
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "test", Program: step.Digest(), Data: manifest.Digest(),
		Rounds: 2, Steps: 50, Segment: 25, Units: 4, Batch: 2, Length: 8,
		Rate: train.Rate{Kind: train.Constant, Peak: 1e-3}, Beta1: 0.9, Beta2: 0.95,
		Exchange: train.Exchange{Codec: codec.Int8, Rule: aggregate.Mean, Outer: outer.SGD, Rate: 1},
	}
	exec, err := cpu.Compile(step, 1)
	must(err)
	genesis, err := outer.Genesis(spec.Exchange, train.Params(step), cfg.Init(1))
	must(err)
	e, err := engine.New(terms.Terms{Job: "job", Screen: screen},
		&train.Task{Spec: spec, Step: step, Exec: exec, Corpus: corpus}, blob.NewMemory(), nil)
	must(err)
	name := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	e.Hold(name, genesis)
	return e, name
}

func TestFabricatedWorkIsRefutedByOneTile(t *testing.T) {
	e, base := smallEngine(t)
	liar := adversary.Fabricator{Honest: e}
	made, err := liar.Train(context.Background(), base, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := e.Check(context.Background(), base, audit.Subject{Verifier: "verifier", Job: "job", Unit: 1}, made.Commit)
	if err != nil || f.Right || f.Differ != 1 {
		t.Fatalf("audit of fabricated work: %+v, %v", f, err)
	}
	r, err := referee.Open(e.Task().Spec.Digest(),
		referee.Opening(e.Task().Spec, e.Task().Step, e.Task().Corpus.Manifest(bundle.ShardTokens)), 0)
	if err != nil {
		t.Fatal(err)
	}
	d := work.AuditTarget{
		RoundState: work.RoundState{Base: base},
		Unit:       work.Unit{Index: 1, Worker: "worker", Commit: made.Commit},
	}
	config, err := r.Config("job", d, "verifier", 10)
	if err != nil {
		t.Fatal(err)
	}
	g, err := dispute.Open(config, f.Differ, 1)
	for height := int64(2); err == nil && g.Stage != dispute.Over; height++ {
		from, next, oracle := "worker", dispute.NextAsserterMove, liar.Oracle
		if g.Turn == dispute.Challenger {
			from, next, oracle = "verifier", dispute.NextChallengerMove, e.Oracle
		}
		var o dispute.Oracle
		var m dispute.Move
		if o, err = oracle(base, g); err == nil {
			m, err = next(g, o)
		}
		if err == nil {
			g, err = g.Apply(height, from, m, r)
		}
	}
	if err != nil {
		t.Fatalf("stage %d: %v", g.Stage, err)
	}
	names := question.Names(e.Task().Spec, e.Task().Step)
	for _, l := range g.Log {
		t.Logf("%s: %s", l.Party, g.Text(l, names))
	}
	v := g.Verdict
	if !v.AsserterLies || v.Leaf != "tile" || v.Reason != dispute.Recomputed ||
		!strings.Contains(names(dispute.Tile, v.Operator), "Dot") {
		t.Fatalf("verdict %+v", *v)
	}
}

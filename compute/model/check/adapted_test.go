package check_test

import (
	"maps"
	"math"
	"testing"

	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/check"
	"github.com/starling-network/starling/compute/model/check/given"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// adaptedBy is a model with an adapter that changes its answers.
func adaptedBy(t *testing.T, c architecture.Config, l architecture.LoRA, seed uint64) generate.Adapter {
	t.Helper()
	a, err := c.Adapt(l)
	if err != nil {
		t.Fatal(err)
	}
	tensors := a.InitAdapters(seed)
	for i, n := range a.Adapters() {
		noise := make([]float32, n.Shape.Elements())
		philox.NormalTo(noise, seed, uint64(i))
		for j := range noise {
			tensors[n.Name].F32()[j] += 0.3 * noise[j]
		}
	}
	return generate.Adapter{Config: a, Tensors: tensors}
}

// Answers of a model and of two adapters of other ranks and layers, written together, have no wrong token by the
// program of the adapter, and its pass has the bits that the tokens were drawn from. Answers that were written without
// the adapter, or with another one, are found, but for those that happen to be the same.
func TestAnswersOfAdapters(t *testing.T) {
	for _, name := range []string{"gpt2", "llama"} {
		c := models(t)[name]
		w := weights(c, 2)
		one := "q_proj"
		if name == "gpt2" {
			one = "c_proj"
		}
		adapters := []generate.Adapter{
			adaptedBy(t, c, architecture.LoRA{Rank: 3, Alpha: 6, Targets: []string{architecture.AllLinear}}, 5),
			adaptedBy(t, c, architecture.LoRA{Rank: 8, Alpha: 4, Targets: []string{one}}, 6),
		}
		b := generate.NewBatch(c, 1)
		if err := b.SetWeights(w, adapters...); err != nil {
			t.Fatal(err)
		}
		all := requests(9)
		for i := range all {
			all[i].Adapter = i % 3
			all[i].Tokens = max(all[i].Tokens, 20)
		}
		answers := servedBy(t, b, 9, all)
		checkers := []*checker{newChecker(t, c, w)}
		for _, a := range adapters {
			own := maps.Clone(w)
			maps.Copy(own, a.Tensors)
			checkers = append(checkers, newChecker(t, a.Config, own))
		}
		missed := 0
		for i, a := range answers {
			length := lengthOf(a)
			for j, x := range checkers {
				switch n := x.wrong(length, a); {
				case j == i%3 && n != given.Rows(length):
					t.Errorf("%s, answer %d of adapter %d: token %d of %d is wrong", name, i, j, n, len(a.Answer))
				case j != i%3 && n == given.Rows(length):
					missed++
				}
			}
		}
		if missed > 2 {
			t.Errorf("%s: %d of 18 answers pass as those of another adapter", name, missed)
		}
		sameBits(t, adapters[0], w, b, answers[1])
	}
}

// sameBits compares the logits of the pass with those of a batch of several adapters, bit for bit.
func sameBits(t *testing.T, of generate.Adapter, w map[string]*tensor.Tensor, b *generate.Batch, a given.Answer) {
	t.Helper()
	own := maps.Clone(w)
	maps.Copy(own, of.Tensors)
	got, s := check.Logits(t, of.Config, own, a, lengthOf(a)), b.Sequence(of.Config.Context(), 1)
	next := a.Prompt
	for i, id := range a.Answer {
		want, err := b.Read(s, next)
		if err != nil {
			t.Fatal(err)
		}
		for j := range want {
			if x := got[i*len(want)+j]; math.Float32bits(x) != math.Float32bits(want[j]) {
				t.Fatalf("logit %d of token %d is %v in a pass and %v when it is drawn", j, i, x, want[j])
			}
		}
		next = []int32{id}
	}
}

// The root of an adapted model is another than that of its base, and of another adapter.
func TestRootsOfAdapters(t *testing.T) {
	c := models(t)["llama"]
	w := weights(c, 2)
	a := adaptedBy(t, c, architecture.LoRA{Rank: 2, Alpha: 3, Targets: []string{architecture.AllLinear}}, 5)
	if _, _, err := check.Weights(a.Config, w); err == nil {
		t.Error("a model without the tensors of its adapter has a root")
	}
	base, roots, err := check.Weights(c, w)
	if err != nil {
		t.Fatal(err)
	}
	known, _, err := check.Adapted(a.Config, roots, a.Tensors)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(w, a.Tensors)
	adapted, more, err := check.Weights(a.Config, w)
	if err != nil || adapted == base || adapted != known || len(more) <= len(roots) {
		t.Errorf("%s, %s and %s, %d and %d roots, %v", base.Short(), adapted.Short(), known.Short(), len(roots), len(more),
			err)
	}
}

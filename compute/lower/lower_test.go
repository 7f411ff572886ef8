package lower

import (
	"testing"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest"
	"github.com/starling-network/starling/compute/tensor"
)

// TestLiveStoresNeverOverlap checks the plan of memory against the lives of the stores, counted here from the steps.
func TestLiveStoresNeverOverlap(t *testing.T) {
	for seed := range uint64(300) {
		p, _ := programtest.Random(t, seed, 10+int(seed)%120)
		pl := Program(p)
		made, last := make([]int, len(pl.Stores)), make([]int, len(pl.Stores))
		for i := range made {
			made[i], last[i] = len(pl.Steps), -1
		}
		for i, st := range pl.Steps {
			for _, s := range st.writes {
				made[s], last[s] = min(made[s], i), max(last[s], i)
			}
			for _, s := range st.reads {
				last[s] = i
			}
		}
		for a, x := range pl.Stores {
			if x.Class != InArena || last[a] < 0 {
				continue
			}
			if x.Offset%tensor.Align != 0 || x.Offset < 0 || x.Offset+x.Bytes > pl.Arena {
				t.Fatalf("seed %d: store %d at %d, %d bytes, is not in the arena of %d", seed, a, x.Offset, x.Bytes, pl.Arena)
			}
			for b, y := range pl.Stores[:a] {
				together := y.Class == InArena && made[a] <= last[b] && made[b] <= last[a]
				if !together || x.Offset >= y.Offset+y.Bytes || y.Offset >= x.Offset+x.Bytes {
					continue
				}
				older, newer := b, a
				if made[a] < made[b] {
					older, newer = a, b
				}
				heirs, _ := pl.heirs(made[newer], pl.dying(made[newer]))
				if last[older] != made[newer] || heirs[newer] != older || x.Offset != y.Offset {
					t.Fatalf("seed %d: stores %d and %d overlap while both live", seed, a, b)
				}
			}
		}
	}
}

// TestOneStore: what is said of one store is what the tables of all stores say.
func TestOneStore(t *testing.T) {
	for seed := range uint64(40) {
		p, _ := programtest.Random(t, seed, 10+int(seed)%120)
		pl := Program(p)
		for i := range pl.Steps {
			st := &pl.Steps[i]
			over := st.overwrites(pl.Stores)
			for _, r := range st.reads {
				for _, w := range st.writes {
					if got, want := st.overwritesOne(pl.Stores, r, w), over(r, w); got != want {
						t.Fatalf("seed %d, step %d: store %d over %d: %v, the table says %v", seed, i, w, r, got, want)
					}
				}
			}
		}
	}
}

// TestAttentionSharesWork demands one step for what has operands in common, and rows that are written where they are
// read, side by side: no copies.
func TestAttentionSharesWork(t *testing.T) {
	p, _ := programtest.Attention(t, 2, 4, 2, 130, 8)
	attention := 0
	for _, s := range Program(p).Steps {
		if s.Group == nil && len(s.writes) > 1 {
			attention++
		}
	}
	if attention != 2 {
		t.Errorf("%d steps with several results, want one forward and one backward", attention)
	}
}

// TestGradientTakesTheMemoryOfTheLogits: they are the largest values of a language model.
func TestGradientTakesTheMemoryOfTheLogits(t *testing.T) {
	b := program.NewBuilder()
	must := programtest.Must(t)
	const rows, classes = 8, 1 << 16
	x := b.Input("x", tensor.Make(tensor.Float32, rows, 4))
	w := b.Input("w", tensor.Make(tensor.Float32, 4, classes))
	targets, d := b.Input("y", tensor.Make(tensor.Int32, rows)), b.Input("d", tensor.Make(tensor.Float32, rows))
	logits := must(b.Dot(x, []int{1}, nil, w, []int{0}, nil))
	b.Output("loss", must(b.Apply(program.CrossEntropy, logits, targets)))
	grad := must(b.Apply(program.CrossEntropyGrad, logits, targets, d))
	b.Output("dx", must(b.Dot(grad, []int{1}, nil, w, []int{1}, nil)))
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if got, one := Program(p).Arena, 4*rows*classes; got != one {
		t.Errorf("the arena has %d bytes, the logits have %d", got, one)
	}
}

package referee

import (
	"testing"
	"time"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// leafSize is the largest tile of a kind in a program: bytes of operands without proofs, and the time to recompute it.
type leafSize struct {
	op    *program.Operator
	bytes int
	took  time.Duration
}

// largest lists the largest tiles, by kind.
func largest(t *testing.T, p *program.Program) map[program.Kind]leafSize {
	t.Helper()
	out := map[program.Kind]leafSize{}
	index := map[program.Kind]int{}
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Kind == program.Input {
			continue
		}
		n := 0
		for _, v := range op.In { // of what is not affordable, all is needed
			n += p.Ops[v].Out.Bytes()
		}
		if affordable(p, i) == nil {
			var err error
			if n, err = tileBytes(p, i, (op.Out.Leaves()-1)/2); err != nil {
				t.Fatal(err)
			}
		}
		if n > out[op.Kind].bytes {
			out[op.Kind], index[op.Kind] = leafSize{op: op, bytes: n}, i
		}
	}
	for k, i := range index {
		if s := out[k]; k.IndexOperand() < 0 && s.bytes <= maxValues && affordable(p, i) == nil {
			s.took = timeTile(t, p, i)
			out[k] = s
		}
	}
	return out
}

// timeTile takes the time of a tile in the middle, on zeros.
func timeTile(t *testing.T, p *program.Program, i int) time.Duration {
	t.Helper()
	op := &p.Ops[i]
	lo, hi := op.Out.LeafRange((op.Out.Leaves() - 1) / 2)
	begin := time.Now()
	in, err := collect(p, i, lo, hi, func(w want) (*tensor.Partial, error) {
		part := tensor.NewPartial(p.Ops[w.value].Out)
		for _, l := range w.leaves {
			from, to := part.Shape.LeafRange(l)
			part.Set(l, make([]byte, (to-from)*part.Shape.DType.Size()))
		}
		return part, nil
	})
	if err == nil {
		_, err = program.EvalRange(op, in, lo, hi)
	}
	if err != nil {
		t.Fatal(err)
	}
	return time.Since(begin)
}

func gpt2(t *testing.T, vocab, width, heads, length, batch int) *program.Program {
	t.Helper()
	// One layer stands for all, which are equal.
	cfg, err := model.Parse(model.GPT2, map[string]any{"n_layer": 1, "n_embd": width, "n_head": heads, "n_positions": length, "vocab_size": vocab})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(cfg, model.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}, batch, length)
	if err != nil {
		t.Fatal(err)
	}
	return step
}

// A tile of most kinds needs a few leaves, whatever the model. Kinds that mix many elements into one need more the larger
// it is: a Dot a panel of each operand, a reduction all that it reduces, AddRows at worst all updates, attention
// rows of a head, a cross-entropy whole rows.
func TestSizeOfTiles(t *testing.T) {
	mixes := map[program.Kind]bool{
		program.Dot: true, program.ReduceSum: true, program.ReduceMax: true, program.ReduceMin: true, program.SumSquares: true, program.AddRows: true,
		program.CausalAttention: true, program.CausalAttentionLSE: true, program.CausalAttentionGradQ: true,
		program.CausalAttentionGradK: true, program.CausalAttentionGradV: true, program.CrossEntropy: true, program.CrossEntropyGrad: true,
	}
	for _, m := range []struct {
		name                               string
		vocab, width, heads, length, batch int
		within                             int // bytes, of every kind
	}{
		{"small", 512, 64, 4, 64, 4, 1 << 20},
		{"quickstart", 256, 128, 4, 128, 4, 3 << 19},
		{"124M, batch 1", 50257, 768, 12, 1024, 1, 0},
		{"124M, batch 8", 50257, 768, 12, 1024, 8, 0},
	} {
		for k, s := range largest(t, gpt2(t, m.vocab, m.width, m.heads, m.length, m.batch)) {
			if s.bytes > 64<<10 {
				t.Logf("%-14s %-10s %10d bytes %8.1f ms  to %v", m.name, k, s.bytes, float64(s.took.Microseconds())/1000, s.op.Out)
			}
			if m.within > 0 && s.bytes > m.within || !mixes[k] && s.bytes > 160<<10 {
				t.Errorf("%s: a tile of %s to %v needs %d bytes", m.name, k, s.op.Out, s.bytes)
			}
		}
	}
}

package referee

import (
	"testing"
	"time"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// leafSize is the largest part of a kind in a program: bytes of operands and of the state before, without proofs, and the
// time to compute it.
type leafSize struct {
	op    *program.Operator
	parts int // of a tile
	bytes int
	took  time.Duration
}

// largest lists the largest parts of tiles in the middle, by kind.
func largest(t *testing.T, p *program.Program) map[program.Kind]leafSize {
	t.Helper()
	out := map[program.Kind]leafSize{}
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Kind == program.Input {
			continue
		}
		if s := timePart(t, p, i); s.bytes > out[op.Kind].bytes {
			out[op.Kind] = s
		}
	}
	return out
}

// timePart takes the time of a part in the middle, on zeros.
func timePart(t *testing.T, p *program.Program, i int) leafSize {
	t.Helper()
	d, err := division(p, i)
	if err != nil {
		t.Fatal(err)
	}
	op := &p.Ops[i]
	leaf, part := (op.Out.Leaves()-1)/2, d.Parts()/2
	state := make([]byte, d.StateBytes(op, operandShapes(p, op), leaf, part))
	s := leafSize{op: op, parts: d.Parts(), bytes: len(state)}
	begin := time.Now()
	in, err := collect(p, i, d, leaf, part, func(w want) (*tensor.Partial, error) {
		known := tensor.NewPartial(p.Ops[w.value].Out)
		for _, l := range w.leaves {
			from, to := known.Shape.LeafRange(l)
			known.Set(l, make([]byte, (to-from)*known.Shape.DType.Size()))
			s.bytes += (to - from) * known.Shape.DType.Size()
		}
		return known, nil
	})
	if err == nil {
		_, err = program.EvalPart(op, in, d, leaf, part, state)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.took = time.Since(begin)
	return s
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

// A part of a tile needs a megabyte or less, whatever the model.
func TestSizeOfParts(t *testing.T) {
	for _, m := range []struct {
		name                               string
		vocab, width, heads, length, batch int
	}{
		{"small", 512, 64, 4, 64, 4}, {"quickstart", 256, 128, 4, 128, 4}, {"124M, batch 1", 50257, 768, 12, 1024, 1}, {"124M, batch 8", 50257, 768, 12, 1024, 8},
	} {
		p := gpt2(t, m.vocab, m.width, m.heads, m.length, m.batch)
		begin := time.Now()
		if err := divisible(p); err != nil {
			t.Error(err)
		}
		t.Logf("%s: %d operators divided in %v", m.name, len(p.Ops), time.Since(begin))
		for k, s := range largest(t, p) {
			if s.bytes > 64<<10 {
				t.Logf("%-14s %-10s %4d parts a tile %10d bytes %8.1f ms  to %v", m.name, k, s.parts, s.bytes, float64(s.took.Microseconds())/1000, s.op.Out)
			}
			if s.bytes > 1<<20 {
				t.Errorf("%s: a part of %s to %v needs %d bytes", m.name, k, s.op.Out, s.bytes)
			}
		}
	}
}

package referee

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/transform"
)

// leafSize is the largest part of a kind in a program: bytes of operands and of the state before, with their proofs,
// and the time to compute it.
type leafSize struct {
	op    *program.Operator
	parts int // of a tile
	bytes int
	took  time.Duration
}

// partBytes is the size of the operands of a part, without those that depend on indices.
func partBytes(p *program.Program, i int, d recompute.Division, leaf, part int) (int, error) {
	op, shapes := &p.Ops[i], division.Shapes(p, &p.Ops[i])
	need, err := recompute.Need(op, shapes, d, leaf, part, nil)
	if err != nil {
		return 0, err
	}
	return division.Bytes(p, i, need, d.StateBytes(op, shapes, leaf, part))
}

// long is given by .ci/run.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"look at every program, and at one operator of each shape, not at some")

// distinct lists an operator of each kind, with its numbers and shapes, and with operands that are alike: inputs, or
// the same value. Others are divided and computed in the same way.
func distinct(p *program.Program) (list []int) {
	seen := map[string]bool{}
	for i := range p.Ops {
		op := &p.Ops[i]
		var alike []int
		for _, v := range op.In {
			at := slices.Index(op.In, v)
			if p.Ops[v].Kind == program.Input {
				at -= len(op.In)
			}
			alike = append(alike, at)
		}
		key := fmt.Sprint(op.Kind, op.Ints, op.Out, division.Shapes(p, op), alike)
		if op.Kind == program.Input {
			key = op.Name // which says how it is shown
		}
		if !seen[key] {
			seen[key], list = true, append(list, i)
		}
	}
	return list
}

// largest lists the largest parts of tiles in the middle, by kind.
func largest(t *testing.T, p *program.Program) map[program.Kind]leafSize {
	t.Helper()
	out := map[program.Kind]leafSize{}
	for _, i := range distinct(p) {
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
	d, err := division.Of(p, i)
	if err != nil {
		t.Fatal(err)
	}
	op := &p.Ops[i]
	leaf, part := (op.Out.Leaves()-1)/2, d.Parts()/2
	state := make([]byte, d.StateBytes(op, division.Shapes(p, op), leaf, part))
	s := leafSize{op: op, parts: d.Parts()}
	if s.bytes, err = partBytes(p, i, d, leaf, part); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	in, err := division.Collect(p, i, d, leaf, part, func(w division.Want) (*tensor.Partial, error) {
		known := tensor.NewPartial(p.Ops[w.Value].Out)
		for _, l := range w.Leaves {
			from, to := known.Shape.LeafRange(l)
			known.Set(l, make([]byte, (to-from)*known.Shape.DType.Size()))
		}
		return known, nil
	})
	if err == nil {
		_, err = recompute.Eval(p.Numerics, op, in, d, leaf, part, state)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.took = time.Since(begin)
	return s
}

// models are training steps as jobs have them. One layer stands for all, which are equal.
func models(t *testing.T) map[string]*program.Program {
	t.Helper()
	out := map[string]*program.Program{}
	add := func(name string, p *program.Program, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(name, err)
		}
		out[name] = p
	}
	adamW := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	gpt2 := func(vocab, width, heads, length int) architecture.Config {
		c, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 1, "n_embd": width, "n_head": heads,
			"n_positions": length, "vocab_size": vocab})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	step, err := model.TrainStep(gpt2(256, 128, 4, 128), adamW, 4, 128)
	add("quickstart", step, err)
	step, err = model.TrainStep(gpt2(256, 384, 6, 256), adamW, 8, 256)
	add("gpt2-10m", step, err)
	large := gpt2(50257, 768, 12, 1024)
	step, err = model.TrainStep(large, adamW, 1, 1024)
	add("gpt2-124m", step, err)
	step, err = model.TrainStep(large, adamW, 8, 1024)
	add("gpt2-124m x8", step, err)
	adapted, err := large.Adapt(architecture.LoRA{Rank: 8, Alpha: 16, Targets: []string{architecture.AllLinear}})
	if err != nil {
		t.Fatal(err)
	}
	step, err = model.TrainStep(adapted, adamW, 1, 1024)
	add("gpt2-124m LoRA", step, err)
	llama, err := architecture.Parse(architecture.Llama, map[string]any{
		"num_hidden_layers": 1, "hidden_size": 384, "num_attention_heads": 6, "num_key_value_heads": 2,
		"intermediate_size": 1024, "max_position_embeddings": 256, "vocab_size": 256,
	})
	if err != nil {
		t.Fatal(err)
	}
	step, err = model.TrainStep(llama, adamW, 8, 256)
	add("llama-10m", step, err)
	large7b, err := architecture.Parse(architecture.Llama, map[string]any{"num_hidden_layers": 1, "hidden_size": 4096,
		"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336,
		"max_position_embeddings": 4096, "vocab_size": 128256})
	if err != nil {
		t.Fatal(err)
	}
	step, err = model.TrainStep(large7b, adamW, 1, 4096)
	add("a layer of llama-7b", step, err)
	task, err := model.LanguageOf(large7b, model.Batch{Sequences: 1, Length: 4096, Form: exact.Form{Bits: 15, Block: 64}})
	if err != nil {
		t.Fatal(err)
	}
	step, err = task.TrainStep(adamW)
	add("a layer of llama-7b in integers", step, err)
	for name, raw := range map[string]map[string]any{
		architecture.Mistral: {"sliding_window": 64},
		architecture.Qwen3:   {"use_sliding_window": true, "sliding_window": 64, "max_window_layers": 0},
		architecture.Gemma2:  {"sliding_window": 64},
		architecture.Gemma3:  {"sliding_window": 64, "sliding_window_pattern": 2},
		architecture.Phi3:    {"num_key_value_heads": 6},
		architecture.Phi:     {"num_key_value_heads": 6},
		architecture.NeoX:    {},
		architecture.OPT:     {"ffn_dim": 1024, "word_embed_proj_dim": 128, "do_layer_norm_before": false},
	} {
		sizes := map[string]any{"num_hidden_layers": 1, "hidden_size": 384, "num_attention_heads": 6,
			"max_position_embeddings": 256, "vocab_size": 256}
		if name != architecture.OPT {
			sizes["intermediate_size"] = 1024
		}
		if name != architecture.OPT && name != architecture.NeoX {
			sizes["num_key_value_heads"], sizes["head_dim"] = 2, 64
		}
		maps.Copy(sizes, raw)
		c, err := architecture.Parse(name, sizes)
		if err != nil {
			t.Fatal(name, err)
		}
		step, err = model.TrainStep(c, adamW, 8, 256)
		add(name, step, err)
	}
	return out
}

// Every operator of every model is disputed in parts that need a megabyte or less, proofs included. The table has the
// largest part of each kind.
func TestSizeOfParts(t *testing.T) {
	all := models(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !*long && !strings.HasPrefix(name, "a layer of llama-7b") {
			continue
		}
		p := all[name]
		begin := time.Now()
		spec := &train.Spec{Exchange: train.Exchange{Codec: codec.Int8, Outer: outer.SGD}}
		waves := &train.Spec{
			Rounds: 8,
			Exchange: train.Exchange{Codec: codec.TopKName(32, 16), Transform: transform.CosineTransform,
				Outer: outer.SGD, Feedback: 0.999, Carry: 8},
		}
		cost, err1 := (&Referee{spec: spec, step: p}).Decidable(evidence.MaxCheck)
		_, err2 := (&Referee{spec: waves, step: p}).Decidable(evidence.MaxCheck)
		if err := errors.Join(admit.Verify(p, limits), err1, err2); err != nil {
			t.Error(name, err)
			continue
		}
		t.Logf("%s: %d operators, checked twice in %.0f ms, once for %d units", name, len(p.Ops),
			time.Since(begin).Seconds()*1000, cost)
		list := largest(t, p)
		kinds := slices.SortedFunc(maps.Keys(list), func(a, b program.Kind) int { return list[b].bytes - list[a].bytes })
		for i, k := range kinds {
			s := list[k]
			if i < 5 {
				t.Logf("%-16s %-20s %4d parts a tile %8d bytes %7.1f ms  to %v", name, k, s.parts, s.bytes,
					float64(s.took.Microseconds())/1000, s.op.Out)
			}
			if s.bytes > 1<<20 {
				t.Errorf("%s: a part of %s to %v needs %d bytes", name, k, s.op.Out, s.bytes)
			}
		}
	}
}

// Any part of any tile fits in a payload, also of tiles that are not looked at for a division.
func TestPartsOfAnyTile(t *testing.T) {
	p := models(t)["gpt2-124m"]
	r := rand.New(rand.NewPCG(1, 1))
	for _, i := range distinct(p) {
		op := &p.Ops[i]
		if op.Kind == program.Input || op.Kind.IndexOperand() >= 0 {
			continue
		}
		d, err := division.Of(p, i)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			leaf, part := r.IntN(op.Out.Leaves()), r.IntN(d.Parts())
			if n, err := partBytes(p, i, d, leaf, part); err != nil || n > 1<<20 {
				t.Errorf("operator %d (%s to %v), tile %d, part %d: %d bytes, %v", i, op.Kind, op.Out, leaf, part, n, err)
			}
		}
	}
}

// The moments of a unit that begins with none are zeros, as large as the model: their root is computed without them.
func TestRootsOfZerosAreThoseOfTheTensors(t *testing.T) {
	for _, n := range []int{1, 1023, 1024, 1025, 16 * 1024, 16*1024 + 1, 17 * 1024, 256*1024 + 5, 300 * 1024} {
		zeros := tensor.New(tensor.Make(tensor.Float32, n))
		if got, want := zeroRoot(zeros.Shape), zeros.Root(); got != want {
			t.Errorf("%d zeros have the root %s, wanted %s", n, got.Short(), want.Short())
		}
	}
	begin := testing.AllocsPerRun(1, func() { zeroRoot(tensor.Make(tensor.Float32, 1<<32)) })
	if begin > 200 {
		t.Errorf("%v allocations for the root of 16 GiB of zeros", begin)
	}
}

package embed

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/modeltest"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/internal/oracle"
)

const length = 6

func parsed(t testing.TB, name string) architecture.Config {
	t.Helper()
	raw := modeltest.GPT2()
	if name != architecture.GPT2 {
		raw = modeltest.Llama()
	}
	c, err := architecture.Parse(name, raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func made(t testing.TB, name string, pad int) Network {
	t.Helper()
	n, err := New(parsed(t, name), length, pad)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// run computes the outputs of a program.
func run(t testing.TB, p *program.Program, err error, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// strong are weights of which every one counts.
func strong(list []architecture.Named) map[string]*tensor.Tensor {
	w := map[string]*tensor.Tensor{}
	for i, named := range list {
		t := tensor.New(named.Shape)
		philox.NormalTo(t.F32(), 9, uint64(i))
		for k := range t.F32() {
			t.F32()[k] *= 0.3
		}
		w[named.Name] = t
	}
	return w
}

func inputs(w map[string]*tensor.Tensor, tokens []int32, rows int) map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(tokens, rows, len(tokens)/rows)}
	for name, x := range w {
		in[train.Param+name] = x
	}
	return in
}

// pair is a row of a batch.
type pair struct {
	anchorID, positiveID int32
	anchor, positive     []uint32
}

var pairs = []pair{{0, 0, []uint32{3, 1, 4, 1, 5, 9}, []uint32{2, 7}}, {1, 1, []uint32{2}, []uint32{7, 1, 8}},
	{2, 0, []uint32{6, 5, 3, 5}, []uint32{2, 7}}, {0, 2, []uint32{3, 1, 4, 1, 5, 9}, []uint32{8, 2, 8, 1}},
	{3, 3, []uint32{1, 0, 1}, []uint32{4, 4}}}

// rows are pairs as tokens, each followed by the first token of the next row.
func rows(n Network, all []pair) (tokens []int32) {
	for _, p := range all {
		tokens = append(tokens, p.anchorID, p.positiveID)
		for _, id := range slices.Concat(n.Row(p.anchor), n.Row(p.positive)) {
			tokens = append(tokens, int32(id))
		}
		tokens = append(tokens, 99)
	}
	return tokens
}

// vector is that of a text, in plain loops.
func vector(n Network, w map[string]*tensor.Tensor, text []uint32) []float64 {
	tokens, mean, square := make([]int32, len(text)), make([]float64, n.Width()), 0.0
	for i, id := range text {
		tokens[i] = int32(id)
	}
	for _, state := range (oracle.Model{Config: n.Language(), Weights: w, Both: true}).Hidden(tokens) {
		for k, x := range state {
			mean[k] += x / float64(len(text))
		}
	}
	for _, x := range mean {
		square += x * x
	}
	for k := range mean {
		mean[k] /= math.Sqrt(square)
	}
	return mean
}

// A vector is the mean of the hidden states of plain loops in float64, whatever the padding and the other texts are.
func TestVectors(t *testing.T) {
	for _, name := range []string{architecture.GPT2, architecture.Llama} {
		for _, pad := range []int{0, 10, 11} { // token 0 is inside a text, too; 11 is none of the model
			n := made(t, name, pad)
			w := strong(n.Tensors())
			var tokens []int32
			for _, p := range pairs {
				for _, id := range n.Row(p.anchor) {
					tokens = append(tokens, int32(id))
				}
			}
			p, err := model.Vectors(n, len(pairs))
			got := run(t, p, err, inputs(w, tokens, len(pairs)))["vectors"].F32()
			for i, p := range pairs {
				want := vector(n, w, p.anchor)
				square := 0.0
				for k, x := range want {
					g := float64(got[i*n.Width()+k])
					if square += g * g; math.Abs(g-x) > 1e-5 {
						t.Errorf("%s, padding %d: text %d has %v at %d, want %v", name, pad, i, g, k, x)
					}
				}
				if math.Abs(square-1) > 1e-5 {
					t.Errorf("%s: vector %d has length %v", name, i, math.Sqrt(square))
				}
			}
			// A shorter row has the same vector.
			short := n.At(len(pairs[3].anchor))
			p, err = model.Vectors(short, 1)
			alone := run(t, p, err, inputs(w, tokens[3*length:3*length+short.Length()], 1))["vectors"].F32()
			for k, x := range alone {
				if math.Abs(float64(x-got[3*n.Width()+k])) > 1e-6 {
					t.Errorf("%s, padding %d: %v alone, %v among others", name, pad, x, got[3*n.Width()+k])
				}
			}
		}
	}
}

// The loss and the measurements are those of vectors in float64: an anchor has as candidates the positives of the
// batch, but for those that are as right as its own.
func TestLoss(t *testing.T) {
	const temperature = 0.2
	for _, name := range []string{architecture.GPT2, architecture.Llama} {
		n := made(t, name, 11)
		w := strong(n.Tensors())
		var loss, first, ten, mrr float64
		for i, p := range pairs {
			anchor := vector(n, w, p.anchor)
			cosines := make([]float64, len(pairs))
			sum, rank := 0.0, 0.0
			for k, other := range pairs {
				for e, x := range vector(n, w, other.positive) {
					cosines[k] += x * anchor[e]
				}
			}
			for k, other := range pairs {
				if k != i && (other.anchorID == p.anchorID || other.positiveID == p.positiveID) {
					continue
				}
				sum += math.Exp(cosines[k] / temperature)
				if cosines[k] >= cosines[i] {
					rank++
				}
			}
			count := float64(len(pairs))
			loss += (math.Log(sum) - cosines[i]/temperature) / count
			mrr += 1 / rank / count
			ten += 1 / count
			if rank == 1 {
				first += 1 / count
			}
		}
		task, err := model.Contrast(n, model.Batch{Sequences: len(pairs), Dropout: 0.5}, temperature)
		if err != nil {
			t.Fatal(err)
		}
		p, err := task.Eval()
		out := run(t, p, err, inputs(w, rows(n, pairs), len(pairs)))
		for output, want := range map[string]float64{"loss": loss, "recall_at_1": first, "recall_at_10": ten, "mrr": mrr} {
			if g := float64(out[output].F32()[0]); math.Abs(g-want) > 2e-5*(1+want) {
				t.Errorf("%s: %s is %v, want %v", name, output, g, want)
			}
		}
		// Vectors that are all the same find nothing.
		for _, x := range w {
			clear(x.F32())
		}
		out = run(t, p, err, inputs(w, rows(n, pairs), len(pairs)))
		if g := out["recall_at_1"].F32()[0]; g != 0 {
			t.Errorf("%s: recall %v of equal vectors", name, g)
		}
	}
}

// Gradients are the differences of the loss, of weights and of adapters.
func TestGradients(t *testing.T) {
	const rate, temperature = 1.0, 0.5
	for _, name := range []string{architecture.GPT2, architecture.Llama} {
		for _, adapted := range []bool{false, true} {
			n := made(t, name, 0)
			w := strong(n.Tensors())
			checked := n.Tensors()
			if adapted {
				c, err := n.Language().Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{architecture.AllLinear}})
				if err != nil {
					t.Fatal(err)
				}
				n, checked = n.On(c), c.Adapters()
				maps.Copy(w, strong(checked))
			}
			task, err := model.Contrast(n, model.Batch{Sequences: len(pairs)}, temperature)
			if err != nil {
				t.Fatal(err)
			}
			in := inputs(w, rows(n, pairs), len(pairs))
			for _, scalar := range []string{"lr", "c1", "c2"} {
				in[scalar] = tensor.FromF32([]float32{rate})
				in[scalar].Shape = tensor.Make(tensor.Float32)
			}
			p, err := task.TrainStep(optimizer.SGD{})
			stepped := run(t, p, err, in)
			eval, err := task.Eval()
			if err != nil {
				t.Fatal(err)
			}
			exec, err := cpu.Compile(eval, 1)
			if err != nil {
				t.Fatal(err)
			}
			loss := func() float64 {
				out, err := exec.Run(inputs(w, rows(n, pairs), len(pairs)))
				if err != nil {
					t.Fatal(err)
				}
				return float64(out["loss"].F32()[0])
			}
			if was := stepped["loss"].F32()[0]; float64(was) != loss() {
				t.Errorf("%s: loss %v of the step, %v of the evaluation", name, was, loss())
			}
			for _, named := range checked {
				x, after := w[named.Name].F32(), stepped[train.Param+named.Name].F32()
				for _, i := range []int{0, len(x) / 2, len(x) - 1} {
					const h = 1e-2
					was := x[i]
					x[i] = was + h
					up := loss()
					x[i] = was - h
					down := loss()
					x[i] = was
					want, got := (up-down)/(2*h), float64(was-after[i])/rate
					if math.Abs(got-want) > 3e-3*(1+math.Abs(want)) {
						t.Errorf("%s, %s, element %d: gradient %v, want %v", name, named.Name, i, got, want)
					}
				}
			}
		}
	}
}

// Steps bring the vectors of pairs together, in every precision.
func TestLearns(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1}
	distinct := []pair{pairs[0], pairs[1], pairs[4]}
	for _, half := range []bool{false, true} {
		n := made(t, architecture.Llama, 11)
		task, err := model.Contrast(n, model.Batch{Sequences: len(distinct), Half: half}, 0.1)
		if err != nil {
			t.Fatal(err)
		}
		p, err := task.TrainStep(o)
		if err != nil {
			t.Fatal(err)
		}
		x, err := cpu.Compile(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		in := inputs(n.Begin(nil, 3), rows(n, distinct), len(distinct))
		for name, shape := range p.InputShapes() {
			if in[name] == nil {
				in[name] = tensor.New(shape)
			}
		}
		in["lr"].F32()[0], in["c1"].F32()[0], in["c2"].F32()[0] = 0.02, 1, 1
		var first, last float32
		for step := range 60 {
			out, err := x.Run(in)
			if err != nil {
				t.Fatal(err)
			}
			if last = out["loss"].F32()[0]; step == 0 {
				first = last
			}
			for name, v := range out {
				if in[name] != nil {
					in[name] = v
				}
			}
		}
		if last > first/4 {
			t.Errorf("the loss went from %v to %v", first, last)
		}
	}
}

// Batches that cannot be compared are refused.
func TestBatches(t *testing.T) {
	n := made(t, architecture.GPT2, 11)
	for _, c := range []struct {
		b           model.Batch
		temperature float64
	}{{model.Batch{Sequences: 1}, 1}, {model.Batch{Sequences: 4, Micro: 2}, 1}, {model.Batch{Sequences: 4}, 0},
		{model.Batch{Sequences: 4}, math.NaN()}, {model.Batch{Sequences: 4, Silent: 3}, 1},
		{model.Batch{Sequences: 4, Dropout: 1}, 1}, {model.Batch{Sequences: 1 << 16}, 1}} {
		if _, err := model.Contrast(n, c.b, c.temperature); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	if _, err := model.Contrast(n, model.Batch{Sequences: 4, Micro: 4}, 1); err != nil {
		t.Error(err)
	}
	if _, err := model.Vectors(n, 0); err == nil {
		t.Error("no texts are taken")
	}
}

// config.json is that of an encoder of transformers, and is read again. A language model is none.
func TestFiles(t *testing.T) {
	for name, want := range map[string]string{architecture.GPT2: "GPT2Model", architecture.Llama: "LlamaModel",
		architecture.Qwen3: "Qwen3Model"} {
		n := made(t, name, 3)
		text := string(n.JSON())
		for _, want := range []string{`"` + want + `"`, `"is_causal": false`, `"pad_token_id": 3`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %s:\n%s", name, want, text)
			}
		}
		again, err := Read([]byte(text), length)
		if err != nil || string(again.JSON()) != text || again.Length() != length || again.Example() != 2+2*length ||
			again.Parameters() != n.Parameters() || again.Pad() != 3 {
			t.Errorf("%s\n%v", again.JSON(), err)
		}
		if whole, err := Read([]byte(text), 0); err != nil || whole.Length() != n.Language().Context() {
			t.Errorf("%d tokens, %v", whole.Length(), err)
		}
		var config map[string]any
		if err := json.Unmarshal([]byte(text), &config); err != nil {
			t.Fatal(err)
		}
		if _, _, err := architecture.Import(name, config); err == nil || !strings.Contains(err.Error(), "is_causal") {
			t.Errorf("%s is read as a language model: %v", name, err)
		}
		if files := n.Files(); len(files) != 3 || !strings.Contains(string(files["1_Pooling/config.json"]),
			`"pooling_mode_mean_tokens": true`) || !strings.Contains(string(files["sentence_bert_config.json"]),
			`"max_seq_length": 6`) || !strings.Contains(string(files["modules.json"]), "models.Normalize") {
			t.Errorf("%s", files)
		}
	}
	whole := string(made(t, architecture.GPT2, 3).JSON())
	for change, want := range map[[2]string]string{
		{`"is_causal": false`, `"is_causal": true`}:   "is_causal",
		{`"is_causal": false`, `"is_causal": null`}:   "is_causal",
		{`"pad_token_id": 3`, `"pad_token_id": 12`}:   "pad_token_id",
		{`"pad_token_id": 3`, `"pad_token_id": -1`}:   "pad_token_id",
		{`"n_positions": 8`, `"n_positions": 5`}:      "5 positions",
		{`"model_type": "gpt2"`, `"model_type": "x"`}: "x",
		{`}`, ``}: "JSON",
	} {
		if _, err := Read([]byte(strings.Replace(whole, change[0], change[1], 1)), length); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", change, err)
		}
	}
	windowed := maps.Clone(modeltest.Llama())
	windowed["sliding_window"] = 4
	c, err := architecture.Parse(architecture.Mistral, windowed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(c, 6, 1); err == nil || !strings.Contains(err.Error(), "sliding_window") {
		t.Errorf("%v", err)
	}
	if _, err := New(c, 4, 1); err != nil {
		t.Error(err)
	}
}

// An adapter has the names that PEFT gives it in the model without an output layer.
func TestAdapter(t *testing.T) {
	for name, want := range map[string]string{architecture.GPT2: "h.0.attn.c_attn",
		architecture.Llama: "layers.0.self_attn.q_proj"} {
		n := made(t, name, 3)
		c, err := n.Language().Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{architecture.AllLinear}})
		if err != nil {
			t.Fatal(err)
		}
		n = n.On(c)
		trained := n.Begin(nil, 7)
		list := n.Saved(trained)
		if first := "base_model.model." + want + ".lora_A.weight"; list[0].Name != first || trained[first] == nil ||
			len(list) != len(c.Adapters()) {
			t.Errorf("%s", list[0].Name)
		}
		text, err := n.AdapterJSON()
		if err != nil || !strings.Contains(string(text), `"`+want+`"`) ||
			!strings.Contains(string(text), "FEATURE_EXTRACTION") {
			t.Errorf("%s, %v", text, err)
		}
		if _, err := made(t, name, 3).AdapterJSON(); err == nil {
			t.Error("a model without an adapter has one")
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(made(f, architecture.GPT2, 3).JSON())
	f.Add(made(f, architecture.Llama, 11).JSON())
	f.Fuzz(func(t *testing.T, raw []byte) {
		if n, err := Read(raw, 4); err == nil {
			if again, err := Read(n.JSON(), 4); err != nil || string(again.JSON()) != string(n.JSON()) {
				t.Fatalf("%s: %v", n.JSON(), err)
			}
		}
	})
}

package model

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/internal/oracle"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

const (
	testBatch  = 2
	testLength = 5
)

type state = map[string]*tensor.Tensor

func mustCompile(t testing.TB, p *program.Program, err error) *cpu.Exec {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	e, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func mustRun(t testing.TB, e *cpu.Exec, in state) state {
	t.Helper()
	out, err := e.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// someTokens returns a batch of ids that depends on the seed alone.
func someTokens(c architecture.Config, batch, length int, seed uint64) *tensor.Tensor {
	random := philox.New(seed, 0)
	ids := make([]int32, batch*length)
	for i := range ids {
		ids[i] = int32(random.Uint64n(uint64(c.VocabSize())))
	}
	return tensor.FromI32(ids, batch, length)
}

// strongWeights are far from the initial values, so that every tensor matters to the loss.
func strongWeights(list []architecture.Named) state {
	w := architecture.Init(list, 1)
	for i, n := range list {
		noise := make([]float32, n.Shape.Elements())
		philox.NormalTo(noise, 2, uint64(i))
		for j := range noise {
			w[n.Name].F32()[j] += 0.3 * noise[j]
		}
	}
	return w
}

// inputs returns the inputs of Eval or Logits.
func inputs(w state, tokens *tensor.Tensor) state {
	in := state{"tokens": tokens}
	for name, x := range w {
		in["p/"+name] = x
	}
	return in
}

// stepInputs returns the inputs of the first TrainStep.
func stepInputs(w state, tokens *tensor.Tensor, o optimizer.AdamW, lr float64) state {
	in := inputs(w, tokens)
	for name, x := range w {
		in["m/"+name], in["v/"+name] = tensor.New(x.Shape), tensor.New(x.Shape)
	}
	setStep(in, o, lr, 1)
	return in
}

func setStep(in state, o optimizer.AdamW, lr float64, step int) {
	in["lr"] = tensor.Scalar(float32(lr))
	in["c1"] = tensor.Scalar(float32(1 / (1 - math.Pow(o.Beta1, float64(step)))))
	in["c2"] = tensor.Scalar(float32(1 / (1 - math.Pow(o.Beta2, float64(step)))))
}

func scalar(x *tensor.Tensor) float64 { return float64(x.F32()[0]) }

func TestLogitsMatchReference(t *testing.T) {
	for name, c := range tiny(t) {
		w, tokens := strongWeights(c.Tensors()), someTokens(c, testBatch, testLength, 3)
		p, err := Logits(c, testBatch, testLength)
		got := mustRun(t, mustCompile(t, p, err), inputs(w, tokens))["logits"]
		if want := tensor.Make(tensor.Float32, testBatch, testLength, c.VocabSize()); !got.Shape.Equal(want) {
			t.Fatalf("%s: logits are %v, want %v", name, got.Shape, want)
		}
		for b := range testBatch {
			for i, row := range (reference{c, w}).logits(tokens.I32()[b*testLength:][:testLength]) {
				for j, want := range row {
					x := got.F32()[(b*testLength+i)*c.VocabSize()+j]
					checkNear(t, fmt.Sprintf("%s: logit %d of token %d of sequence %d", name, j, i, b), float64(x), want, 2e-4)
				}
			}
		}
	}
}

func TestLossMatchesLogits(t *testing.T) {
	for name, c := range tiny(t) {
		w, tokens := strongWeights(c.Tensors()), someTokens(c, testBatch, testLength+1, 4)
		p, err := Eval(c, testBatch, testLength)
		loss := mustRun(t, mustCompile(t, p, err), inputs(w, tokens))["loss"]
		checkNear(t, name+" loss", scalar(loss), reference{c, w}.loss(tokens.I32(), testBatch), 1e-4)

		p, err = Logits(c, testBatch, testLength+1)
		logits := mustRun(t, mustCompile(t, p, err), inputs(w, tokens))["logits"].F32()
		sum := 0.0
		for b := range testBatch {
			for i := range testLength {
				at := b*(testLength+1) + i
				row := make(oracle.Vector, c.VocabSize())
				for j := range row {
					row[j] = float64(logits[at*len(row)+j])
				}
				sum += crossEntropyOf(row, tokens.I32()[at+1])
			}
		}
		checkNear(t, name+" loss from logits", scalar(loss), sum/(testBatch*testLength), 1e-5)
	}
}

// TestCausality changes the last token: no logit before it may change by a single bit.
func TestCausality(t *testing.T) {
	for name, c := range tiny(t) {
		w, tokens := strongWeights(c.Tensors()), someTokens(c, 1, testLength, 5)
		p, err := Logits(c, 1, testLength)
		e := mustCompile(t, p, err)
		before := mustRun(t, e, inputs(w, tokens))["logits"].F32()
		last := &tokens.I32()[testLength-1]
		*last = (*last + 1) % int32(c.VocabSize())
		after := mustRun(t, e, inputs(w, tokens))["logits"].F32()
		for i, x := range before {
			same, past := math.Float32bits(x) == math.Float32bits(after[i]), i < (testLength-1)*c.VocabSize()
			if past && !same {
				t.Fatalf("%s: logit %d of token %d changed with a later token", name, i%c.VocabSize(), i/c.VocabSize())
			}
			if !past && same {
				t.Errorf("%s: logit %d of the changed token did not change", name, i%c.VocabSize())
			}
		}
	}
}

func TestInitialLoss(t *testing.T) {
	for name, c := range tiny(t) {
		p, err := Eval(c, testBatch, testLength)
		out := mustRun(t, mustCompile(t, p, err), inputs(c.Init(9), someTokens(c, testBatch, testLength+1, 9)))
		checkNear(t, name+" initial loss", scalar(out["loss"]), math.Log(float64(c.VocabSize())), 0.02)
	}
}

func TestGradients(t *testing.T) {
	for name, c := range tiny(t) {
		task, err := Language(c, testBatch, testLength)
		if err != nil {
			t.Fatal(err)
		}
		checkGradients(t, name, task, strongWeights(c.Tensors()), state{"tokens": someTokens(c, testBatch, testLength+1, 6)},
			1e-2)
	}
}

// TestUpdate computes one step of AdamW in float64 from the gradients, and compares.
func TestUpdate(t *testing.T) {
	const lr = 0.01
	for name, c := range tiny(t) {
		w, tokens := strongWeights(c.Tensors()), someTokens(c, testBatch, testLength+1, 7)
		plain := optimizer.AdamW{Eps: 1e-8}
		p, err := TrainStep(c, plain, testBatch, testLength)
		grads := mustRun(t, mustCompile(t, p, err), stepInputs(w, tokens, plain, 0))

		o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 0.5}
		p, err = TrainStep(c, o, testBatch, testLength)
		in := stepInputs(w, tokens, o, lr)
		setStep(in, o, lr, 3)
		for i, n := range c.Tensors() {
			philox.NormalTo(in["m/"+n.Name].F32(), 10, uint64(i))
			philox.NormalTo(in["v/"+n.Name].F32(), 11, uint64(i))
			for j, x := range in["v/"+n.Name].F32() {
				in["v/"+n.Name].F32()[j] = x * x
			}
		}
		out := mustRun(t, mustCompile(t, p, err), in)
		norm := scalar(grads["grad_norm"])
		if scalar(out["grad_norm"]) != norm || norm < o.MaxGradNorm {
			t.Fatalf("%s: gradient norm %g, without clipping %g: both must be the same and above %g", name,
				scalar(out["grad_norm"]), norm, o.MaxGradNorm)
		}
		for _, n := range c.Tensors() {
			decay := 0.0
			if len(n.Shape.Dims) >= 2 {
				decay = o.WeightDecay
			}
			for i := range n.Shape.Elements() {
				at := func(values state, prefix string) float64 { return float64(values[prefix+n.Name].F32()[i]) }
				g := at(grads, "m/") * o.MaxGradNorm / (norm + 1e-6)
				m := o.Beta1*at(in, "m/") + (1-o.Beta1)*g
				v := o.Beta2*at(in, "v/") + (1-o.Beta2)*g*g
				q := at(in, "p/")
				q -= lr * (m*scalar(in["c1"])/(math.Sqrt(v*scalar(in["c2"]))+o.Eps) + decay*q)
				what := fmt.Sprintf("%s: %s[%d]", name, n.Name, i)
				checkNear(t, what+" m", at(out, "m/"), m, 1e-6)
				checkNear(t, what+" v", at(out, "v/"), v, 1e-6*(1+v))
				checkNear(t, what, at(out, "p/"), q, 1e-5)
			}
		}
	}
}

// TestOverfit trains on one batch until it is all but known by heart. The loss of each step is Eval's, bit for bit.
func TestOverfit(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.01, MaxGradNorm: 1}
	for name, c := range tiny(t) {
		tokens := someTokens(c, testBatch, testLength+1, 8)
		p, err := TrainStep(c, o, testBatch, testLength)
		train := mustCompile(t, p, err)
		p, err = Eval(c, testBatch, testLength)
		eval := mustCompile(t, p, err)
		in := stepInputs(c.Init(8), tokens, o, 0)
		var first, last float64
		for step := 1; step <= 60; step++ {
			setStep(in, o, 0.02, step)
			out := mustRun(t, train, in)
			evalIn := state{"tokens": tokens}
			for _, n := range c.Tensors() {
				evalIn["p/"+n.Name] = in["p/"+n.Name]
			}
			last = scalar(out["loss"])
			if loss := mustRun(t, eval, evalIn)["loss"]; loss.Root() != out["loss"].Root() {
				t.Fatalf("%s: step %d has loss %v, Eval %v", name, step, last, scalar(loss))
			}
			if step == 1 {
				first = last
			}
			for _, n := range c.Tensors() {
				for _, prefix := range []string{"p/", "m/", "v/"} {
					in[prefix+n.Name] = out[prefix+n.Name]
				}
			}
		}
		if !(last < 0.2*first) {
			t.Errorf("%s: the loss of a batch seen 60 times went from %g to %g, want below a fifth", name, first, last)
		}
	}
}

// TestInterface checks the names, order and shapes of inputs and outputs.
func TestInterface(t *testing.T) {
	c := tiny(t)["llama"]
	step, err := TrainStep(c, optimizer.AdamW{Eps: 1e-8}, testBatch, testLength)
	if err != nil {
		t.Fatal(err)
	}
	scalarShape := tensor.Make(tensor.Float32)
	tokens := func(length int) architecture.Named {
		return architecture.Named{Name: "tokens", Shape: tensor.Make(tensor.Int32, testBatch, length)}
	}
	prefixed := func(prefixes ...string) (list []architecture.Named) {
		for _, prefix := range prefixes {
			for _, n := range c.Tensors() {
				list = append(list, architecture.Named{Name: prefix + n.Name, Shape: n.Shape})
			}
		}
		return list
	}
	all := prefixed("p/", "m/", "v/")
	in := []architecture.Named{tokens(testLength + 1), {Name: "lr", Shape: scalarShape}, {Name: "c1", Shape: scalarShape},
		{Name: "c2", Shape: scalarShape}}
	checkInterface(t, step, append(in, all...), append(all, architecture.Named{Name: "grad_norm", Shape: scalarShape},
		architecture.Named{Name: "loss", Shape: scalarShape}))

	eval, err := Eval(c, testBatch, testLength)
	if err != nil {
		t.Fatal(err)
	}
	checkInterface(t, eval, append([]architecture.Named{tokens(testLength + 1)}, prefixed("p/")...),
		[]architecture.Named{{Name: "loss", Shape: scalarShape}})
	logits, err := Logits(c, testBatch, testLength)
	if err != nil {
		t.Fatal(err)
	}
	checkInterface(t, logits, append([]architecture.Named{tokens(testLength)}, prefixed("p/")...),
		[]architecture.Named{{Name: "logits", Shape: tensor.Make(tensor.Float32, testBatch, testLength, 11)}})
}

func checkInterface(t *testing.T, p *program.Program, in, out []architecture.Named) {
	t.Helper()
	var gotIn, gotOut []architecture.Named
	for _, i := range p.Inputs() {
		gotIn = append(gotIn, architecture.Named{Name: i.Name, Shape: i.Shape})
	}
	for _, o := range p.Outputs {
		gotOut = append(gotOut, architecture.Named{Name: o.Name, Shape: p.Ops[o.Value].Out})
	}
	for _, pair := range [][2][]architecture.Named{{gotIn, in}, {gotOut, out}} {
		if got, want := strings.Join(describe(pair[0]), "\n"), strings.Join(describe(pair[1]), "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestStepErrors(t *testing.T) {
	c := tiny(t)["gpt2"]
	good := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	for _, err := range []error{
		second(TrainStep(c, good, 0, testLength)), second(TrainStep(c, good, testBatch, 0)),
		second(TrainStep(c, good, testBatch, c.Context()+1)), second(Eval(c, testBatch, c.Context()+1)),
		second(Logits(c, -1, testLength)), second(TrainStep(c, optimizer.AdamW{}, testBatch, testLength)),
		second(TrainStep(c, optimizer.AdamW{Beta1: 1, Eps: 1e-8}, testBatch, testLength)),
		second(TrainStep(c, optimizer.AdamW{Beta2: math.NaN(), Eps: 1e-8}, testBatch, testLength)),
		second(TrainStep(c, optimizer.AdamW{Eps: 1e-8, WeightDecay: -1}, testBatch, testLength)),
	} {
		if !errors.Is(err, ErrStep) {
			t.Errorf("got %v, want ErrStep", err)
		}
	}
	if _, err := TrainStep(c, good, 1, c.Context()); err != nil {
		t.Errorf("the longest sequence: %v", err)
	}
}

func second(_ *program.Program, err error) error { return err }

// TestPrograms pins the digest of each program: it is the same for two builds, and in every process. A changed digest
// is a changed program, which jobs under way do not survive; rewrite the file only if that is meant.
func TestPrograms(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	build := func() string {
		var text strings.Builder
		models := tiny(t)
		for _, name := range []string{"gpt2", "llama", "llama-tied"} {
			c := models[name]
			for _, p := range []struct {
				name string
				make func() (*program.Program, error)
			}{
				{"train", func() (*program.Program, error) { return TrainStep(c, o, testBatch, testLength) }},
				{"eval", func() (*program.Program, error) { return Eval(c, testBatch, testLength) }},
				{"logits", func() (*program.Program, error) { return Logits(c, testBatch, testLength) }},
			} {
				built, err := p.make()
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&text, "%s %s %d operators %s\n", name, p.name, len(built.Ops), built.Digest())
			}
		}
		return text.String()
	}
	got := build()
	if again := build(); again != got {
		t.Errorf("two builds differ:\n%s%s", got, again)
	}
	if want := golden(t, filepath.Join("testdata", "programs.golden"), got); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// BenchmarkTrainStep measures how long it takes to author the step of published and of laptop sizes.
func BenchmarkTrainStep(b *testing.B) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	small := map[string]any{"n_layer": 4, "n_embd": 128, "n_head": 4, "vocab_size": 256, "n_positions": 256}
	smallLlama := map[string]any{"num_hidden_layers": 4, "hidden_size": 128, "num_attention_heads": 4,
		"num_key_value_heads": 2,
		"intermediate_size":   344, "vocab_size": 256, "max_position_embeddings": 256}
	for _, bm := range []struct {
		name          string
		c             architecture.Config
		batch, length int
	}{
		{"gpt2-4x128", mustParse(b, architecture.GPT2, small), 8, 256},
		{"llama-4x128", mustParse(b, architecture.Llama, smallLlama), 8, 256},
		{"gpt2-124m", mustParse(b, architecture.GPT2, nil), 4, 1024},
	} {
		b.Run(bm.name, func(b *testing.B) {
			for b.Loop() {
				p, err := TrainStep(bm.c, o, bm.batch, bm.length)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(p.Ops)), "operators")
				b.ReportMetric(float64(len(p.Encode())), "bytes")
			}
		})
	}
}

// TestProximal holds the first moment with a proximal term, at beta1 of 0 the gradient, against that without.
func TestProximal(t *testing.T) {
	for name, c := range tiny(t) {
		w, tokens := strongWeights(c.Tensors()), someTokens(c, testBatch, testLength+1, 12)
		begin := architecture.Init(c.Tensors(), 13)
		moments := func(o optimizer.AdamW) state {
			p, err := TrainStep(c, o, testBatch, testLength)
			in := stepInputs(w, tokens, o, 0.01)
			for n, x := range begin {
				if o.Proximal > 0 {
					in["b/"+n] = x
				}
			}
			return mustRun(t, mustCompile(t, p, err), in)
		}
		plain, pulled := moments(optimizer.AdamW{Eps: 1e-8}), moments(optimizer.AdamW{Eps: 1e-8, Proximal: 0.25})
		for _, n := range c.Tensors() {
			for i, g := range plain["m/"+n.Name].F32() {
				away := w[n.Name].F32()[i] - begin[n.Name].F32()[i]
				if want, got := g+float32(0.25*away), pulled["m/"+n.Name].F32()[i]; got != want {
					t.Fatalf("%s: gradient %d of %s is %v, want %v", name, i, n.Name, got, want)
				}
			}
		}
	}
}

// TestMicroBatches holds a step in parts against the whole: the same but for the order of sums, in less memory. Silent
// tokens are not predicted, however the batch is cut.
func TestMicroBatches(t *testing.T) {
	const sequences, length = 4, 8
	for name, c := range map[string]architecture.Config{"gpt2": tiny(t)["gpt2"], "llama-tied": tiny(t)["llama-tied"]} {
		if c.Context() < length {
			t.Fatal(c.Context())
		}
		w, tokens := strongWeights(c.Tensors()), someTokens(c, sequences, length+1, 21)
		silent := tokens.Clone()
		for i := range silent.I32() {
			if i%3 != 1 {
				silent.I32()[i] += int32(c.VocabSize())
			}
		}
		o := optimizer.AdamW{Eps: 1e-8}
		for _, b := range []Batch{{}, {Silent: c.VocabSize()}} {
			b.Sequences, b.Length = sequences, length
			batch := tokens
			if b.Silent > 0 {
				batch = silent
			}
			var whole state
			var peak int64
			for _, b.Micro = range []int{0, 2, 1} {
				task, err := LanguageOf(c, b)
				if err != nil {
					t.Fatal(err)
				}
				p, err := task.TrainStep(o)
				e := mustCompile(t, p, err)
				out := mustRun(t, e, stepInputs(w, batch, o, 0))
				if b.Micro == 0 {
					whole, peak = out, e.PeakBytes()
					checkNear(t, name, scalar(out["loss"]), saidLoss(c, w, tokens.I32(), batch.I32(), sequences), 1e-4)
					continue
				}
				if b.Micro == 1 && e.PeakBytes() >= peak {
					t.Errorf("%s: %d bytes in parts, %d at once", name, e.PeakBytes(), peak)
				}
				for n, x := range whole {
					for i, want := range x.F32() {
						checkNear(t, fmt.Sprintf("%s: %s[%d] in parts of %d", name, n, i, b.Micro), float64(out[n].F32()[i]),
							float64(want), 2e-5)
					}
				}
			}
		}
	}
	if _, err := LanguageOf(tiny(t)["gpt2"], Batch{Sequences: 4, Length: 4, Micro: 3}); !errors.Is(err, ErrStep) {
		t.Error(err)
	}
}

// saidLoss is the mean cross-entropy of the tokens that are not silent in said.
func saidLoss(c architecture.Config, w state, tokens, said []int32, sequences int) (mean float64) {
	n, count := len(tokens)/sequences, 0
	for s := range sequences {
		row := tokens[s*n : (s+1)*n]
		for i, logits := range (reference{c, w}).logits(row[:n-1]) {
			if said[s*n+i+1] < int32(c.VocabSize()) {
				mean += crossEntropyOf(logits, row[i+1])
				count++
			}
		}
	}
	return mean / float64(count)
}

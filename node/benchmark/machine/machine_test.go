package machine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/benchmark"
)

var small = Preset{"small", architecture.GPT2, map[string]any{
	"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 8, "vocab_size": 32,
}, 2, 8}

func TestMatmulMeasuresEveryProduct(t *testing.T) {
	products := []Product{
		{Name: "plain", Batch: 1, M: 300, K: 200, N: 100},
		{Name: "batch", Batch: 5, M: 60, K: 70, N: 80},
		{Name: "a", Batch: 2, M: 90, K: 150, N: 70, TransA: true},
		{Name: "b", Batch: 2, M: 90, K: 150, N: 70, TransB: true},
	}
	r, err := Matmul(t.Context(), products, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range products {
		if !(r.GFLOPS[p.Name] > 0) || r.CPU[p.Name] < 0 {
			t.Errorf("%s: %v GFLOP/s, %v a processor second", p.Name, r.GFLOPS[p.Name], r.CPU[p.Name])
		}
	}
	if len(r.GFLOPS) != len(products) || r.Threads != 2 || r.Kernels == "" {
		t.Errorf("the report is %+v", r)
	}
}

// TestGemmMeansItsProduct checks one element of each form of operand against its definition.
func TestGemmMeansItsProduct(t *testing.T) {
	for _, p := range []Product{
		{Batch: 1, M: 7, K: 5, N: 6}, {Batch: 1, M: 7, K: 5, N: 6, TransA: true}, {Batch: 1, M: 7, K: 5, N: 6, TransB: true},
	} {
		g := p.gemm()
		g.Run(1)
		const i, j = 3, 4
		sum := 0.0
		for k := range p.K {
			a, b := i*p.K+k, k*p.N+j
			if p.TransA {
				a = k*p.M + i
			}
			if p.TransB {
				b = j*p.K + k
			}
			sum += float64(g.A[a]) * float64(g.B[b])
		}
		if got := float64(g.C[i*p.N+j]); math.Abs(got-sum) > 1e-5 {
			t.Errorf("%+v: element is %g, want %g", p, got, sum)
		}
	}
}

func TestProductNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range append(append([]Product{}, Products...), Transposed...) {
		if seen[p.Name] {
			t.Errorf("two products are called %s", p.Name)
		}
		seen[p.Name] = true
	}
}

func TestTrainMeasures(t *testing.T) {
	r, err := Train(t.Context(), small, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	const parameters = 32*16 + 8*16 + 2*2*16 + 16*48 + 48 + 16*16 + 16 + 16*64 + 64 + 64*16 + 16 + 2*16
	if r.Preset != "small" || r.Parameters != parameters || r.Threads != 2 || !(r.TokensPerSecond > 0) ||
		r.CPUSeconds < 0 || r.PeakMiB < 0 {
		t.Errorf("the report is %+v, want %d parameters", r, parameters)
	}
}

func TestAuditMeasures(t *testing.T) {
	byteModel := small
	byteModel.Config = map[string]any{"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 8, "vocab_size": 256}
	r, err := Audit(t.Context(), byteModel, 2, 5, 2)
	if err != nil {
		t.Fatal(err)
	}
	if r.Steps != 5 || r.Threads != 2 || !(r.TrainSeconds > 0 && r.AuditSeconds > 0) || len(r.Bars) > 1 {
		t.Errorf("the report is %+v", r)
	}
	if _, err := Audit(t.Context(), byteModel, 1, 0, 1); !errors.Is(err, benchmark.ErrOption) {
		t.Errorf("a unit of no steps: %v", err)
	}
}

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "measure the training in integers, as .ci/run does")

// Integers are compared with float32, and have bars where the processor has instructions for them.
func TestIntegers(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	r, err := Integers(t.Context(), 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, bits := range []string{"8", "15"} {
		if r.Products[bits] <= 0 || r.Step[bits] <= 0 {
			t.Errorf("%s bits: %+v", bits, r)
		}
	}
	if _, err := Integers(t.Context(), 2, 0); !errors.Is(err, benchmark.ErrOption) {
		t.Errorf("no measurement: %v", err)
	}
	if (len(r.Bars) == 3) != r.VNNI {
		t.Errorf("VNNI: %t, %d bars", r.VNNI, len(r.Bars))
	}
}

// The versions of the numerics are compared on a small model: each function, and a step.
func TestNumerics(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	r, err := Numerics(t.Context(), small, 1, 1)
	if err != nil || r.Step <= 0 || len(r.Functions) != 12 || len(r.Bars) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := Numerics(t.Context(), small, 1, 0); !errors.Is(err, benchmark.ErrOption) {
		t.Errorf("no measurement: %v", err)
	}
}

func TestPresetsAreModelsOfTheirNames(t *testing.T) {
	want := map[string]float64{"gpt2-10m": 10e6, "llama-10m": 10e6, "gpt2-124m": 124e6}
	for name, size := range want {
		p, err := PresetNamed(name)
		if err != nil {
			t.Fatal(err)
		}
		c, err := architecture.Parse(p.Architecture, p.Config)
		if err != nil {
			t.Fatal(err)
		}
		if off := math.Abs(float64(c.Parameters())/size - 1); off > 0.1 || c.Context() != p.Length {
			t.Errorf("%s has %d parameters and a context of %d", name, c.Parameters(), c.Context())
		}
	}
	if _, err := PresetNamed("gpt5"); !errors.Is(err, benchmark.ErrOption) || !strings.Contains(err.Error(), "gpt2-10m") {
		t.Errorf("an unknown preset gives %v", err)
	}
}

func TestCancelledMeasurementsStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := trial(t)
	_, err1 := Matmul(ctx, Products, 1)
	_, err2 := Train(ctx, small, 1, 1)
	_, err3 := Losses(ctx, o)
	for _, err := range []error{err1, err2, err3} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

func parseSmall(t *testing.T) architecture.Config {
	t.Helper()
	c, err := architecture.Parse(small.Architecture, small.Config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// trial writes a small model and batches of three steps: one batch, three times.
func trial(t *testing.T) LossesOptions {
	t.Helper()
	c := parseSmall(t)
	var names []string
	for _, n := range c.Tensors() {
		names = append(names, n.Name)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.json"), c.JSON())
	saveWeights(t, dir, names, c.Init(1))
	var tokens []byte
	for range 3 {
		for i := range small.Batch * (small.Length + 1) {
			tokens = binary.LittleEndian.AppendUint32(tokens, uint32(i*7%32))
		}
	}
	write(t, filepath.Join(dir, "batches"), tokens)
	return LossesOptions{
		Model: dir, Batches: filepath.Join(dir, "batches"), Steps: 3, Batch: small.Batch, Threads: 1, Rate: 1e-2, Decay: 0.1,
		Clip: 1,
	}
}

func saveWeights(t *testing.T, dir string, names []string, weights map[string]*tensor.Tensor) {
	t.Helper()
	var out bytes.Buffer
	if err := safetensors.EncodeAs(&out, names, weights, nil, nil); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "model.safetensors"), out.Bytes())
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGenerateMeasures(t *testing.T) {
	o := GenerateOptions{Preset: Preset{"small", architecture.Llama, map[string]any{
		"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24,
		"max_position_embeddings": 16, "vocab_size": 256,
	}, 1, 16}, Threads: 2, Prompt: 3, Tokens: 5, Repeat: 1, Batches: []int{3},
		GGUF: filepath.Join(t.TempDir(), "small.gguf")}
	r, err := Generate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if !(r.TokensPerSecond > 0 && r.PromptTokensPerSecond > 0) || r.Parameters == 0 || r.Tokens != 5 ||
		len(r.Batches) != 1 || !(r.Batches[0].TokensPerSecond > 0) {
		t.Errorf("the report is %+v", r)
	}
	if raw, err := os.ReadFile(o.GGUF); err != nil || !bytes.HasPrefix(raw, []byte("GGUF")) {
		t.Errorf("the file begins with %q: %v", raw[:min(4, len(raw))], err)
	}
	o.Tokens = 14
	if _, err := Generate(t.Context(), o); !errors.Is(err, benchmark.ErrOption) {
		t.Errorf("more tokens than the context: %v", err)
	}
	o.Tokens, o.Preset = 5, small
	if _, err := Generate(t.Context(), o); !errors.Is(err, benchmark.ErrFile) {
		t.Errorf("a GPT-2 as GGUF: %v", err)
	}
}

func TestLossesFallOnOneBatch(t *testing.T) {
	r, err := Losses(t.Context(), trial(t))
	if err != nil {
		t.Fatal(err)
	}
	l := r.Losses
	if len(l) != 3 || math.Abs(float64(l[0])-math.Log(32)) > 0.1 || !(l[1] < l[0] && l[2] < l[1]) {
		t.Errorf("losses are %v, want three that fall from about ln 32", l)
	}
}

func TestLossesStayWithoutLearning(t *testing.T) {
	o := trial(t)
	o.Rate = 0
	r, err := Losses(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Losses[0] != r.Losses[1] || r.Losses[0] != r.Losses[2] {
		t.Errorf("losses are %v, want three equal ones", r.Losses)
	}
}

// TestLossesReadBareNames drops the prefix that GPT-2 folders may lack, and adds a tensor that is no weight.
func TestLossesReadBareNames(t *testing.T) {
	o := trial(t)
	want, err := Losses(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(o.Model, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Open(raw)
	if err != nil {
		t.Fatal(err)
	}
	names, bare := []string{"h.0.attn.bias"}, map[string]*tensor.Tensor{"h.0.attn.bias": tensor.FromF32([]float32{1}, 1)}
	for _, name := range file.Names() {
		w, err := file.Tensor(name)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.TrimPrefix(name, "transformer."))
		bare[names[len(names)-1]] = w
	}
	saveWeights(t, o.Model, names, bare)
	got, err := Losses(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Losses {
		if got.Losses[i] != want.Losses[i] {
			t.Errorf("step %d: loss %v, with prefixed names %v", i, got.Losses[i], want.Losses[i])
		}
	}
}

func TestLossesRefuse(t *testing.T) {
	for what, test := range map[string]struct {
		spoil func(o *LossesOptions)
		is    error
		says  string
	}{
		"no model": {func(o *LossesOptions) { o.Model = filepath.Join(o.Model, "no") }, benchmark.ErrFile,
			"config.json"},
		"no batches":      {func(o *LossesOptions) { o.Batches += "no" }, benchmark.ErrFile, "batchesno"},
		"too few batches": {func(o *LossesOptions) { o.Steps = 4 }, benchmark.ErrFile, "fewer steps"},
		"no steps":        {func(o *LossesOptions) { o.Steps = 0 }, benchmark.ErrOption, "steps is 0"},
		"no batch":        {func(o *LossesOptions) { o.Batch = -1 }, benchmark.ErrOption, "batch is -1"},
		"no threads":      {func(o *LossesOptions) { o.Threads = 0 }, benchmark.ErrOption, "threads is 0"},
		"bad decay":       {func(o *LossesOptions) { o.Decay = -1 }, model.ErrStep, "weight decay"},
		"not a config": {func(o *LossesOptions) { write(t, filepath.Join(o.Model, "config.json"), []byte("{")) },
			benchmark.ErrFile, "config.json"},
		"another model": {func(o *LossesOptions) {
			write(t, filepath.Join(o.Model, "config.json"), []byte(`{"model_type":"bert"}`))
		}, benchmark.ErrFile, "config.json"},
		"other sizes": {func(o *LossesOptions) {
			c, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 1, "n_embd": 8, "n_head": 2,
				"n_positions": 8,
				"vocab_size":  32})
			if err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(o.Model, "config.json"), c.JSON())
		}, benchmark.ErrFile, "another shape"},
		"cut weights": {func(o *LossesOptions) { write(t, filepath.Join(o.Model, "model.safetensors"), make([]byte, 20)) },
			benchmark.ErrFile, "model.safetensors"},
		"no weights": {func(o *LossesOptions) { saveWeights(t, o.Model, nil, nil) }, benchmark.ErrFile, "missing"},
		"weight that is no number": {func(o *LossesOptions) {
			w, names := parseSmall(t).Init(1), []string(nil)
			for _, n := range parseSmall(t).Tensors() {
				names = append(names, n.Name)
			}
			w["transformer.wpe.weight"].F32()[3] = float32(math.NaN())
			saveWeights(t, o.Model, names, w)
		}, benchmark.ErrFile, "transformer.wpe.weight"},
		"token outside the vocabulary": {func(o *LossesOptions) {
			write(t, o.Batches, bytes.Repeat([]byte{32, 0, 0, 0}, 3*small.Batch*(small.Length+1)))
		}, benchmark.ErrFile, "token 32 at byte 0"},
	} {
		t.Run(what, func(t *testing.T) {
			o := trial(t)
			test.spoil(&o)
			_, err := Losses(t.Context(), o)
			if !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %v and %q", err, test.is, test.says)
			}
		})
	}
}

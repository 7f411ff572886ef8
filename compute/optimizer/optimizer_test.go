package optimizer_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/internal/torchtest"
)

const (
	steps = 80
	clip  = 0.3
)

// network lists the trained tensors of tanh(x w' + b) v', of which the loss is the mean cross-entropy.
func network() []optimizer.Tensor {
	return []optimizer.Tensor{
		{Name: "w", Shape: tensor.Make(tensor.Float32, 8, 16)}, {Name: "b", Shape: tensor.Make(tensor.Float32, 8)},
		{Name: "v", Shape: tensor.Make(tensor.Float32, 4, 8)},
	}
}

// step is the program of a step of the network.
func step(t *testing.T, o optimizer.Optimizer) *program.Program {
	t.Helper()
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		float := func(name string, dims ...int) *graph.Node {
			return graph.Parameter(g, name, shapes.Make(dtypes.Float32, dims...))
		}
		x, y := float("x", 32, 16), graph.Parameter(g, "y", shapes.Make(dtypes.Int32, 32))
		nodes := []*graph.Node{float("lr"), float("c1"), float("c2")}
		var params []*graph.Node
		for _, p := range network() {
			params = append(params, float("p/"+p.Name, p.Shape.Dims...))
		}
		hidden := graph.DotGeneral(x, []int{1}, nil, params[0], []int{1}, nil)
		hidden = graph.Tanh(graph.Add(hidden, graph.BroadcastPrefix(params[1], 32)))
		logits := graph.DotGeneral(hidden, []int{1}, nil, params[2], []int{1}, nil)
		loss := graph.MulScalar(graph.ReduceAllSum(record.CrossEntropy(logits, y)), 1.0/32)
		return append(append(append(nodes, params...), graph.Gradient(loss, params...)...), loss)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := optimizer.Append(b, o, network(), values[3:6], values[6:9], values[0], values[1], values[2]); err != nil {
		t.Fatal(err)
	}
	b.Output("loss", values[9])
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return p.Simplify()
}

// problem is the data and the first weights.
func problem() map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{}
	for i, s := range []struct {
		name string
		dims []int
		std  float32
	}{{"x", []int{32, 16}, 1}, {"p/w", []int{8, 16}, 0.3}, {"p/b", []int{8}, 0.1}, {"p/v", []int{4, 8}, 0.3}} {
		t := tensor.New(tensor.Make(tensor.Float32, s.dims...))
		philox.NormalTo(t.F32(), 7, uint64(i))
		for k := range t.F32() {
			t.F32()[k] *= s.std
		}
		in[s.name] = t
	}
	random, y := philox.New(7, 9), make([]int32, 32)
	for i := range y {
		y[i] = int32(random.Uint64n(4))
	}
	in["y"] = tensor.FromI32(y, 32)
	return in
}

// losses trains the network with the program.
func losses(t *testing.T, o optimizer.Optimizer, lr, beta2 float64) (list []float64) {
	t.Helper()
	p := step(t, o)
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	in := problem()
	for _, i := range p.Inputs() {
		if in[i.Name] == nil {
			in[i.Name] = tensor.New(i.Shape)
		}
	}
	for k := range steps {
		in["lr"], in["c1"] = tensor.Scalar(float32(lr)), tensor.Scalar(1)
		in["c2"] = tensor.Scalar(float32(1 / (1 - math.Pow(beta2, float64(k+1)))))
		out, err := x.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, float64(out["loss"].F32()[0]))
		for name, v := range out {
			if in[name] != nil {
				in[name] = v
			}
		}
	}
	return list
}

// example is an optimizer, and the arguments of the script for it.
type example struct {
	o    optimizer.Optimizer
	lr   float64
	like map[string]any
}

// curves are the losses that the script prints.
func curves(t *testing.T, python string, cases []example) (all [][]float64) {
	t.Helper()
	var jobs []map[string]any
	for _, c := range cases {
		jobs = append(jobs, c.like)
	}
	text, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	inputs.Of(t, "testdata")
	cmd := exec.Command(python, "-I", "testdata/train.py")
	cmd.Stdin = bytes.NewReader(text)
	said, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(said, &all)
	}
	if err != nil || len(all) != len(cases) {
		t.Fatal(len(all), err)
	}
	return all
}

// TestCurvesOfPyTorch holds the losses of training against those of a script on the same data.
func TestCurvesOfPyTorch(t *testing.T) {
	python := torchtest.Python(t)
	all := optimizer.Common{WeightDecay: 0.05, MaxGradNorm: clip}
	cases := []example{
		{optimizer.SGD{Common: all}, 0.3, map[string]any{"optimizer": "sgd", "momentum": 0.0}},
		{optimizer.SGD{Common: all, Momentum: 0.9}, 0.1, map[string]any{"optimizer": "sgd", "momentum": 0.9}},
		{optimizer.SGD{Common: all, Momentum: 0.8, Nesterov: true}, 0.1,
			map[string]any{"optimizer": "sgd", "momentum": 0.8, "nesterov": true}},
		{optimizer.Lion{Common: all, Beta1: 0.9, Beta2: 0.99}, 0.003,
			map[string]any{"optimizer": "lion", "betas": []float64{0.9, 0.99}}},
		{optimizer.Adafactor{Common: all, Beta2: 0.99, Threshold: 1}, 0.02,
			map[string]any{"optimizer": "adafactor", "betas": []float64{0, 0.99}}},
		{optimizer.Adafactor{Common: all, Beta1: 0.9, Beta2: 0.99, Threshold: 1}, 0.02,
			map[string]any{"optimizer": "adafactor", "betas": []float64{0.9, 0.99}}},
	}
	in := problem()
	for _, c := range cases {
		maps.Copy(c.like, map[string]any{"x": in["x"].F32(), "y": in["y"].I32(), "w": in["p/w"].F32(),
			"b": in["p/b"].F32(), "v": in["p/v"].F32(), "lr": c.lr, "clip": clip, "decay": all.WeightDecay, "steps": steps})
		if c.like["nesterov"] == nil {
			c.like["nesterov"] = false
		}
	}
	for k, want := range curves(t, python, cases) {
		c, worst := cases[k], 0.0
		got := losses(t, c.o, c.lr, 0.99)
		for i := range want {
			worst = max(worst, math.Abs(got[i]-want[i]))
		}
		t.Logf("%#v: loss %.4f to %.4f, at most %.2g apart", c.o, got[0], got[steps-1], worst)
		if !(worst <= 1e-4) || !(got[steps-1] < got[0]-0.3) {
			t.Errorf("%#v: %v\nwant %v", c.o, got, want)
		}
	}
}

// TestHalf keeps what is remembered in 16 bits: the curve stays near, the first step is that of float32, and what is
// remembered is what float32 rounds to.
func TestHalf(t *testing.T) {
	for _, pair := range [][2]optimizer.Optimizer{
		{optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8},
			optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Storage: optimizer.Half}},
		{optimizer.Lion{Beta1: 0.9, Beta2: 0.95}, optimizer.Lion{Beta1: 0.9, Beta2: 0.95,
			Common: optimizer.Common{Storage: optimizer.Half}}},
		{optimizer.SGD{Momentum: 0.9}, optimizer.SGD{Momentum: 0.9, Common: optimizer.Common{Storage: optimizer.Half}}},
	} {
		lr := map[bool]float64{true: 0.1, false: 0.01}[pair[0] == optimizer.Optimizer(optimizer.SGD{Momentum: 0.9})]
		whole, half := losses(t, pair[0], lr, 0.95), losses(t, pair[1], lr, 0.95)
		last := len(whole) - 1
		if half[1] != whole[1] || math.Abs(half[last]-whole[last]) > 0.05 || half[last] == whole[last] {
			t.Errorf("%T: %v to %v, in float32 %v to %v", pair[0], half[1], half[last], whole[1], whole[last])
		}
		for _, i := range step(t, pair[1]).Inputs() {
			if strings.HasPrefix(i.Name, "m/") && i.Shape.DType != tensor.BFloat16 {
				t.Errorf("%T remembers %s", pair[1], i.Shape)
			}
		}
	}
}

// TestBlocks keeps moments of matrices in 8 bits: the curve stays near, the first step is that of float32, and a second
// moment far below the largest of its block does not become zero.
func TestBlocks(t *testing.T) {
	common := optimizer.Common{Storage: optimizer.Blocks}
	for _, c := range []struct {
		whole, blocks optimizer.Optimizer
		lr            float64
		short         string // what is kept in codes
	}{
		{optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8},
			optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Storage: optimizer.Blocks}, 0.01, "m/w v/w"},
		{optimizer.Lion{Beta1: 0.9, Beta2: 0.95}, optimizer.Lion{Beta1: 0.9, Beta2: 0.95, Common: common}, 0.01, "m/w"},
		{optimizer.SGD{Momentum: 0.9}, optimizer.SGD{Momentum: 0.9, Common: common}, 0.1, "m/w"},
		{optimizer.Adafactor{Beta1: 0.9, Beta2: 0.95, Threshold: 1},
			optimizer.Adafactor{Beta1: 0.9, Beta2: 0.95, Threshold: 1, Common: common}, 0.02, "m/w"},
	} {
		whole, blocks := losses(t, c.whole, c.lr, 0.95), losses(t, c.blocks, c.lr, 0.95)
		last := len(whole) - 1
		if blocks[1] != whole[1] || math.Abs(blocks[last]-whole[last]) > 0.05 || blocks[last] == whole[last] {
			t.Errorf("%T: %v to %v, in float32 %v to %v", c.blocks, blocks[1], blocks[last], whole[1], whole[last])
		}
		var short []string
		for _, i := range step(t, c.blocks).Inputs() {
			if i.Shape.DType == tensor.Int8 {
				short = append(short, i.Name)
			}
		}
		if got := strings.Join(short, " "); got != c.short {
			t.Errorf("%T has codes of %q, want %q", c.blocks, got, c.short)
		}
	}
}

// TestSmallestInBlock: a second moment far below the largest of its block is kept as the least that its scale gives.
func TestSmallestInBlock(t *testing.T) {
	b := program.NewBuilder()
	w := optimizer.Tensor{Name: "w", Shape: tensor.Make(tensor.Float32, 1, optimizer.BlockSize)}
	p, g, one := b.Input("p/w", w.Shape), b.Input("g", w.Shape), b.Input("one", tensor.Make(tensor.Float32))
	o := optimizer.AdamW{Eps: 1e-8, Storage: optimizer.Blocks}
	if err := optimizer.Append(b, o, []optimizer.Tensor{w}, []program.Value{p}, []program.Value{g}, one, one,
		one); err != nil {
		t.Fatal(err)
	}
	made, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(made, 1)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{"one": tensor.Scalar(1)}
	for _, i := range made.Inputs() {
		if in[i.Name] == nil {
			in[i.Name] = tensor.New(i.Shape)
		}
	}
	gradient := in["g"].F32()
	gradient[0], gradient[1], gradient[2] = 1, 0.25, 1e-12
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := tensor.As[int8](out["v/w"].Bytes())[:4]; got[0] != 127 || got[1] != 64 || got[2] != 1 || got[3] != 1 {
		t.Errorf("codes %v", got)
	}
	if got := tensor.As[int8](out["m/w"].Bytes())[:4]; got[0] != 127 || got[1] != 64 || got[2] != 0 || got[3] != 0 {
		t.Errorf("codes of the first moment %v", got)
	}
}

// TestMemory: an optimizer remembers no more than it says.
func TestMemory(t *testing.T) {
	for _, c := range []struct {
		o    optimizer.Optimizer
		want string
	}{
		{optimizer.AdamW{Eps: 1e-8}, "m/w m/b m/v v/w v/b v/v"}, {optimizer.SGD{}, ""},
		{optimizer.SGD{Momentum: 0.9}, "m/w m/b m/v"}, {optimizer.Lion{}, "m/w m/b m/v"},
		{optimizer.Adafactor{Threshold: 1}, "v/b r/w r/v s/w s/v"},
		{optimizer.Adafactor{Beta1: 0.9, Threshold: 1}, "m/w m/b m/v v/b r/w r/v s/w s/v"},
	} {
		var got []string
		for _, i := range step(t, c.o).Inputs() {
			if strings.Contains("m/v/r/s/", i.Name[:1]+"/") && strings.Contains(i.Name, "/") {
				got = append(got, i.Name)
			}
		}
		if has := strings.Join(got, " "); has != c.want {
			t.Errorf("%#v remembers %q, want %q", c.o, has, c.want)
		}
	}
}

func TestInvalidConstants(t *testing.T) {
	for _, o := range []optimizer.Optimizer{
		optimizer.SGD{Momentum: 1}, optimizer.AdamW{Eps: 1e-8, Storage: "int4"},
		optimizer.SGD{Common: optimizer.Common{WeightDecay: -1}},
		optimizer.Lion{Beta1: 1}, optimizer.Lion{Beta2: math.NaN()}, optimizer.Adafactor{},
		optimizer.Adafactor{Threshold: 1, Beta2: 1},
		optimizer.Adafactor{Threshold: 1, Common: optimizer.Common{MaxGradNorm: math.Inf(1)}},
	} {
		if err := o.Check(); !errors.Is(err, optimizer.ErrInvalid) {
			t.Errorf("%#v: %v", o, err)
		}
	}
}

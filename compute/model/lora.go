package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/tensor"
)

// ErrAdapter is wrapped by errors about adapters that a model cannot have, or that are not those of a model.
var ErrAdapter = errors.New("model: invalid adapter")

// AllLinear as the only target stands for every linear layer but the output layer.
const AllLinear = "all-linear"

// Names of the parts of an adapter, as PEFT saves them.
const (
	adapterPrefix = "base_model.model."
	downSuffix    = ".lora_A.weight" // [rank, in]
	upSuffix      = ".lora_B.weight" // [out, rank]
)

// LoRA trains, instead of the weights W of linear layers, a difference (Alpha/Rank) B A of low rank (Hu et al. 2022,
// section 4.1): a layer gives W x + (Alpha/Rank) B (A x).
type LoRA struct {
	Rank    int
	Alpha   float64
	Targets []string // last parts of the names of layers, such as "c_attn", "q_proj" or "mlp.up_proj"; or AllLinear
	Dropout float64  // the share of x that A does not see in training
	Bits    int      // 8 or 4: W is in blocks of such codes, as package blocks has them, but for the output layer
}

func (l LoRA) scale() float64 { return float64(l.Alpha / float64(l.Rank)) }

// Adapt returns the model with adapters on the target layers. Tasks of it train the adapters and freeze all else.
func (c Config) Adapt(l LoRA) (Config, error) {
	if l.Rank < 1 || l.Rank > maxWidth || !(l.Alpha > 0 && l.Alpha <= 1e6) {
		return Config{}, fmt.Errorf("%w: rank %d and alpha %g; rank must be in 1..%d, alpha above 0 and at most 1e6",
			ErrAdapter, l.Rank, l.Alpha, maxWidth)
	}
	if !(l.Dropout >= 0 && l.Dropout < 1) {
		return Config{}, fmt.Errorf("%w: dropout %g; it must be at least 0 and below 1", ErrAdapter, l.Dropout)
	}
	if len(l.Targets) == 0 {
		return Config{}, fmt.Errorf("%w: no target layers; name some, or %q", ErrAdapter, AllLinear)
	}
	for _, target := range l.Targets {
		if !slices.ContainsFunc(c.linears(), func(n Named) bool { return targets(n, target) }) {
			return Config{}, fmt.Errorf("%w: no linear layer of this %s is named %q; use %q or the name of one, such as %q",
				ErrAdapter, c.architecture, target, AllLinear, module(c.linears()[0]))
		}
	}
	l.Targets = slices.Clone(l.Targets)
	c.lora = &l
	return c, nil
}

// linears lists the weights of linear layers.
func (c Config) linears() []Named {
	return slices.DeleteFunc(c.Tensors(), func(n Named) bool { return n.Shape.Rank() != 2 || n.embedding })
}

// module is the name of the layer that has the weight n.
func module(n Named) string { return strings.TrimSuffix(n.Name, ".weight") }

func targets(n Named, target string) bool {
	name := module(n)
	return name == target || strings.HasSuffix(name, "."+target) || target == AllLinear && name != "lm_head" &&
		name != "embed_out"
}

// adapted lists the weights that have adapters, in canonical order.
func (c Config) adapted() []Named {
	if c.lora == nil {
		return nil
	}
	return slices.DeleteFunc(c.linears(), func(n Named) bool {
		return !slices.ContainsFunc(c.lora.Targets, func(target string) bool { return targets(n, target) })
	})
}

// conv1D reports whether the weight n is [in, out], as GPT-2's are but for its output layer.
func (c Config) conv1D(n Named) bool { return c.architecture == GPT2 && n.Name != c.OutputName() }

// inOut are the sizes of what a linear layer maps from and to. GPT-2 has [in, out], others [out, in].
func (c Config) inOut(n Named) (in, out int) {
	if c.conv1D(n) {
		return n.Shape.Dims[0], n.Shape.Dims[1]
	}
	return n.Shape.Dims[1], n.Shape.Dims[0]
}

// Adapters lists the tensors of the adapters in canonical order, with the names and layouts of PEFT: for each adapted
// layer A [rank, in], then B [out, rank].
func (c Config) Adapters() (list []Named) {
	for _, n := range c.adapted() {
		in, out := c.inOut(n)
		name := adapterPrefix + module(n)
		// The variance of PEFT's uniform initial values, which is that of Kaiming with a = sqrt(5).
		std := math.Sqrt(1 / float64(3*in))
		list = append(list, normal(std, name+downSuffix, c.lora.Rank, in), zeros(name+upSuffix, out, c.lora.Rank))
	}
	return list
}

// InitAdapters returns initial adapters: A normal with variance 1/(3 in), B zero, so that the model is unchanged. They
// draw from the streams of the seed after those of Init.
func (c Config) InitAdapters(seed uint64) map[string]*tensor.Tensor {
	return initFrom(c.Adapters(), seed, uint64(len(c.Tensors())))
}

// AdapterJSON returns an adapter_config.json that PEFT loads.
func (c Config) AdapterJSON() ([]byte, error) {
	if c.lora == nil {
		return nil, fmt.Errorf("%w: the model has none; use Adapt", ErrAdapter)
	}
	var modules []string // in full: the last parts alone may name other layers too
	for _, n := range c.adapted() {
		modules = append(modules, module(n))
	}
	text, err := json.MarshalIndent(map[string]any{
		"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": c.lora.Rank, "lora_alpha": c.lora.Alpha,
		"lora_dropout":   c.lora.Dropout,
		"target_modules": modules, "bias": "none", "fan_in_fan_out": c.architecture == GPT2, "inference_mode": true,
		"base_model_name_or_path": nil,
	}, "", "  ")
	return append(text, '\n'), err
}

// Scale is the factor of what the adapters of the model add, Alpha/Rank; 0 if it has none.
func (c Config) Scale() float64 {
	if c.lora == nil {
		return 0
	}
	return c.lora.scale()
}

// Cover returns the model with adapters for every layer that one of the given models has them for, of the largest of
// their ranks, so that the adapters of each fit by Widen. The models are c with adapters; with none of them it is c.
func (c Config) Cover(adapted []Config) (Config, error) {
	var l LoRA
	for _, a := range adapted {
		for _, n := range a.adapted() {
			l.Targets = append(l.Targets, module(n))
		}
		if a.lora != nil {
			l.Rank = max(l.Rank, a.lora.Rank)
		}
	}
	if l.Rank == 0 {
		return c, nil
	}
	l.Alpha = float64(l.Rank)
	slices.Sort(l.Targets)
	l.Targets = slices.Compact(l.Targets)
	return c.Adapt(l)
}

// Widen returns the adapters of the model narrow as adapters of c that add the same when they are scaled by
// narrow.Scale: ranks are filled up with zeros, and layers without an adapter get zeros. c is what Cover makes of
// narrow and others. The error wraps ErrAdapter.
func (c Config) Widen(narrow Config, adapters map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	if err := check(narrow.Adapters(), adapters); err != nil {
		return nil, err
	}
	wide := make(map[string]*tensor.Tensor)
	for _, n := range c.Adapters() {
		t := tensor.New(n.Shape)
		wide[n.Name] = t
		if from := adapters[n.Name]; from != nil { // A is longer by rows of zeros, B wider by columns
			row := from.Shape.Dims[1]
			for i := range from.Shape.Dims[0] {
				copy(t.F32()[i*n.Shape.Dims[1]:], from.F32()[i*row:(i+1)*row])
			}
		}
	}
	return wide, nil
}

// check makes sure that the tensors of the list are there.
func check(list []Named, tensors map[string]*tensor.Tensor) error {
	for _, n := range list {
		if t := tensors[n.Name]; t == nil || !t.Shape.Equal(n.Shape) {
			return fmt.Errorf("%w: tensor %s is missing or not %s", ErrAdapter, n.Name, n.Shape)
		}
	}
	return nil
}

// Merge returns the tensors of the model with W + (Alpha/Rank) B A in place of each adapted W: what a model without
// adapters needs to give the same, but for rounding. B A is a product as matmul.Gemm specifies; then the product with
// Alpha/Rank and the sum are each rounded. Tensors without an adapter are those of base, not copies.
func (c Config) Merge(base, adapters map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	if err := errors.Join(check(c.Tensors(), base), check(c.Adapters(), adapters)); err != nil {
		return nil, err
	}
	merged := maps.Clone(base)
	for _, n := range c.adapted() {
		name := adapterPrefix + module(n)
		merged[n.Name] = c.merge(n, base[n.Name], adapters[name+downSuffix].F32(), adapters[name+upSuffix].F32())
	}
	return merged, nil
}

func (c Config) merge(n Named, base *tensor.Tensor, a, b []float32) *tensor.Tensor {
	in, out := c.inOut(n)
	rank := c.lora.Rank
	difference := make([]float32, in*out)
	g := matmul.Gemm{M: out, N: in, K: rank, A: b, ARow: rank, ACol: 1, B: a, BRow: in, BCol: 1, C: difference, CRow: in}
	if c.conv1D(n) { // the transpose, from the transposes
		g = matmul.Gemm{M: in, N: out, K: rank, A: a, ARow: 1, ACol: in, B: b, BRow: 1, BCol: rank, C: difference, CRow: out}
	}
	g.Run(1)
	sum, scale := base.Clone(), float32(c.lora.scale())
	for i, d := range difference {
		sum.F32()[i] += float32(d * scale)
	}
	return sum
}

// adapt adds to y, the outputs lo to hi of the layer with the weight name on x [n, in], what its adapter adds, if any.
func (w weights) adapt(y, x *graph.Node, name string, lo, hi int) *graph.Node {
	prefix := adapterPrefix + strings.TrimSuffix(w.prefix+name, ".weight")
	if len(w.each) > 0 {
		return w.adaptEach(y, x, prefix, lo, hi)
	}
	a, ok := w.nodes[prefix+downSuffix]
	if !ok {
		return y
	}
	b := graph.Slice(w.nodes[prefix+upSuffix], graph.AxisRange(lo, hi))
	return graph.Add(y, linear(graph.MulScalar(linear(w.dice.Drop(x, w.dropout), a), w.scale), b))
}

// adaptEach is adapt with the adapters of the sequence that a row of x belongs to: there are as many rows of each.
func (w weights) adaptEach(y, x *graph.Node, prefix string, lo, hi int) *graph.Node {
	if w.each[0].nodes[prefix+downSuffix] == nil {
		return y
	}
	rows, added := dims(x)[0]/len(w.each), make([]*graph.Node, len(w.each))
	for i, o := range w.each {
		inner := linear(graph.Slice(x, graph.AxisRange(i*rows, (i+1)*rows)), o.nodes[prefix+downSuffix])
		inner = graph.Mul(inner, graph.BroadcastToDims(o.scale, dims(inner)...))
		added[i] = linear(inner, graph.Slice(o.nodes[prefix+upSuffix], graph.AxisRange(lo, hi)))
	}
	if len(added) == 1 {
		return graph.Add(y, added[0])
	}
	return graph.Add(y, graph.Concatenate(added, 0))
}

// linear is the layer with the weight name [out, in], and its adapter, on x [n, in].
func (w weights) linear(name string, x *graph.Node) *graph.Node {
	x, weight := w.rounded(x), w.rounded(w.at(name))
	return w.rounded(w.adapt(linear(x, weight), x, name, 0, dims(weight)[0]))
}

// conv1D is the layer with the weight name [in, out], a bias and an adapter, on x [n, in].
func (w weights) conv1D(name string, x *graph.Node) *graph.Node {
	x, weight := w.rounded(x), w.rounded(w.at(name+".weight"))
	return w.rounded(w.adapt(conv1D(x, weight, w.at(name+".bias")), x, name, 0, dims(weight)[1]))
}

package architecture

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/tensor"
)

// ErrAdapter is wrapped by errors about adapters that a model cannot have, or that are not those of a model.
var ErrAdapter = errors.New("model: invalid adapter")

// AllLinear as the only target stands for every linear layer but the output layer.
const AllLinear = "all-linear"

// Names of the parts of an adapter, as PEFT saves them.
const (
	AdapterPrefix = "base_model.model."
	DownSuffix    = ".lora_A.weight" // [rank, in]
	UpSuffix      = ".lora_B.weight" // [out, rank]
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
		if !slices.ContainsFunc(linears(c), func(n Named) bool { return targets(n, target) }) {
			return Config{}, fmt.Errorf("%w: no linear layer of this %s is named %q; use %q or the name of one, such as %q",
				ErrAdapter, c.architecture, target, AllLinear, Module(linears(c)[0]))
		}
	}
	l.Targets = slices.Clone(l.Targets)
	c.lora = &l
	return c, nil
}

// LoRA returns the adapters of the model, and whether it has any. The slice of targets is not to be changed.
func (c Config) LoRA() (l LoRA, ok bool) {
	if c.lora == nil {
		return LoRA{}, false
	}
	return *c.lora, true
}

// linears lists the weights of linear layers.
func linears(c Config) []Named {
	return slices.DeleteFunc(c.Tensors(), func(n Named) bool { return n.Shape.Rank() != 2 || n.embedding })
}

// Module is the name of the layer that has the weight n.
func Module(n Named) string { return strings.TrimSuffix(n.Name, ".weight") }

func targets(n Named, target string) bool {
	name := Module(n)
	return name == target || strings.HasSuffix(name, "."+target) || target == AllLinear && name != "lm_head" &&
		name != "embed_out"
}

// Adapted lists the weights that have adapters, in canonical order.
func (c Config) Adapted() []Named {
	if c.lora == nil {
		return nil
	}
	return slices.DeleteFunc(linears(c), func(n Named) bool {
		return !slices.ContainsFunc(c.lora.Targets, func(target string) bool { return targets(n, target) })
	})
}

// IsConv1D reports whether the weight n is [in, out], as GPT-2's are but for its output layer.
func IsConv1D(c Config, n Named) bool { return c.architecture == GPT2 && n.Name != c.OutputName() }

// InOut are the input and output sizes of a linear layer. GPT-2 has [in, out], others [out, in].
func InOut(c Config, n Named) (in, out int) {
	if IsConv1D(c, n) {
		return n.Shape.Dims[0], n.Shape.Dims[1]
	}
	return n.Shape.Dims[1], n.Shape.Dims[0]
}

// Adapters lists the tensors of the adapters in canonical order, with the names and layouts of PEFT: for each adapted
// layer A [rank, in], then B [out, rank].
func (c Config) Adapters() (list []Named) {
	for _, n := range c.Adapted() {
		in, out := InOut(c, n)
		name := AdapterPrefix + Module(n)
		// The variance of PEFT's uniform initial values, which is that of Kaiming with a = sqrt(5).
		std := math.Sqrt(1 / float64(3*in))
		list = append(list, Normal(std, name+DownSuffix, c.lora.Rank, in), Zeros(name+UpSuffix, out, c.lora.Rank))
	}
	return list
}

// InitAdapters returns initial adapters: A normal with variance 1/(3 in), B zero, so that the model is unchanged. They
// draw from the streams of the seed after those of Init.
func (c Config) InitAdapters(seed uint64) map[string]*tensor.Tensor {
	return InitFrom(c.Adapters(), seed, uint64(len(c.Tensors())))
}

// AdapterJSON returns an adapter_config.json that PEFT loads.
func (c Config) AdapterJSON() ([]byte, error) {
	if c.lora == nil {
		return nil, fmt.Errorf("%w: the model has none; use Adapt", ErrAdapter)
	}
	var modules []string // in full: the last parts alone may name other layers too
	for _, n := range c.Adapted() {
		modules = append(modules, Module(n))
	}
	text, err := json.MarshalIndent(map[string]any{
		"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": c.lora.Rank, "lora_alpha": c.lora.Alpha,
		"lora_dropout":   c.lora.Dropout,
		"target_modules": modules, "bias": "none", "fan_in_fan_out": c.architecture == GPT2, "inference_mode": true,
		"base_model_name_or_path": nil,
	}, "", "  ")
	return append(text, '\n'), err
}

// Scale is the factor of the outputs of the adapters, Alpha/Rank; 0 if it has none.
func (c Config) Scale() float64 {
	if c.lora == nil {
		return 0
	}
	return c.lora.scale()
}

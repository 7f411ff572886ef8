package machine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/benchmark"
)

// Preset is a model and the batch that it is trained on.
type Preset struct {
	Name          string
	Architecture  string
	Config        map[string]any // as in config.json
	Batch, Length int            // sequences, tokens of each
}

// Presets are the models that Train knows.
var Presets = []Preset{
	{"gpt2-10m", architecture.GPT2, map[string]any{
		"n_layer": 6, "n_embd": 384, "n_head": 6, "n_positions": 256, "vocab_size": 256,
	}, 8, 256},
	{"llama-10m", architecture.Llama, map[string]any{
		"num_hidden_layers": 6, "hidden_size": 384, "num_attention_heads": 6, "num_key_value_heads": 2,
		"intermediate_size": 1024, "max_position_embeddings": 256, "vocab_size": 256,
	}, 8, 256},
	{"gpt2-124m", architecture.GPT2, map[string]any{
		"n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 512, "vocab_size": 50257,
	}, 1, 512},
	{"llama-125m", architecture.Llama, map[string]any{
		"num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "num_key_value_heads": 4,
		"intermediate_size": 2048, "max_position_embeddings": 512, "vocab_size": 32000,
	}, 1, 512},
}

// PresetNamed returns one of Presets, or an error that wraps ErrOption.
func PresetNamed(name string) (Preset, error) {
	var known []string
	for _, p := range Presets {
		if p.Name == name {
			return p, nil
		}
		known = append(known, p.Name)
	}
	return Preset{}, fmt.Errorf("%w: no preset %q: use one of %q", benchmark.ErrOption, name, known)
}

// TrainReport is the speed of training.
type TrainReport struct {
	Preset          string  `json:"preset"`
	TokensPerSecond float64 `json:"tokens_per_second"` // of the median step
	CPUSeconds      float64 `json:"cpu_seconds"`       // processor time of the cheapest step, all threads; 0 if unknown
	PeakMiB         int     `json:"peak_mib"`          // resident memory of this process, at most, so far; 0 if unknown
	Parameters      int     `json:"parameters"`
	Threads         int     `json:"threads"`
	// 1e9 operations of the program a second, as jobs pay them, of the median step
	GFLOPS       float64 `json:"gflops"`
	BuildSeconds float64 `json:"build_seconds"` // recording, verifying and planning the program of a step
	RootSeconds  float64 `json:"root_seconds"`  // processor time of the root of the whole state
	RootShare    float64 `json:"root_share"`    // of a work unit of 20 steps, for one root; 0 if unknown
}

// Train measures steps of training, after one that is not counted: forward, backward and AdamW on random tokens. On a
// machine that has other work too, the processor time says more than the tokens a second.
func Train(ctx context.Context, p Preset, threads, steps int) (*TrainReport, error) {
	for name, n := range map[string]int{"threads": threads, "steps": steps} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	c, err := architecture.Parse(p.Architecture, p.Config)
	if err != nil {
		return nil, err
	}
	weights, begin := c.Init(0), time.Now()
	t, err := NewTrainer(Recipe{
		Config: c, Optimizer: AdamW(0.1, 0), Rate: 3e-4, Batch: p.Batch, Length: p.Length, Threads: threads,
	}, weights)
	if err != nil {
		return nil, err
	}
	build := time.Since(begin)
	random := philox.New(0, 0)
	var wall, cpu []time.Duration
	for range steps + 1 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i := range t.Tokens() {
			t.Tokens()[i] = int32(random.Uint64n(uint64(c.VocabSize())))
		}
		used, _ := benchmark.Usage()
		begin = time.Now()
		if _, err := t.Step(); err != nil {
			return nil, err
		}
		wall = append(wall, time.Since(begin))
		after, _ := benchmark.Usage()
		cpu = append(cpu, after-used)
	}
	wall, cpu = wall[1:], cpu[1:]
	slices.Sort(wall)
	_, peak := benchmark.Usage()
	step, root := slices.Min(cpu).Seconds(), t.rootTime().Seconds()
	share := 0.0
	if step > 0 {
		share = root / (20 * step)
	}
	return &TrainReport{
		Preset: p.Name, TokensPerSecond: benchmark.Rounded(float64(p.Batch*p.Length)/wall[len(wall)/2].Seconds(), 1),
		CPUSeconds: benchmark.Rounded(step, 3), PeakMiB: peak, Parameters: c.Parameters(), Threads: threads,
		GFLOPS:       benchmark.Rounded(t.flops/wall[len(wall)/2].Seconds()/1e9, 2),
		BuildSeconds: benchmark.Rounded(build.Seconds(), 4), RootSeconds: benchmark.Rounded(root, 4),
		RootShare: benchmark.Rounded(share, 4),
	}, nil
}

// rootTime is the processor time of the root of the state, the least of three.
func (t *Trainer) rootTime() time.Duration {
	var state []*tensor.Tensor
	for _, n := range t.names {
		state = append(state, t.In[n])
	}
	var times []time.Duration
	for range 3 {
		before, _ := benchmark.Usage()
		train.StateRoot(t.done, train.Roots(state))
		after, _ := benchmark.Usage()
		times = append(times, after-before)
	}
	return slices.Min(times)
}

// AdamW is the optimizer of all measurements: that of PyTorch, which decays all tensors.
func AdamW(decay, clip float64) optimizer.AdamW {
	return optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: decay, DecayAll: true, MaxGradNorm: clip}
}

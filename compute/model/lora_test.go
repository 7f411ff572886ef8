package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/model/adapter"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
)

// adaptedModels are the tiny models with adapters on some layers, and on all.
func adaptedModels(t testing.TB) map[string]architecture.Config {
	all := map[string]architecture.Config{}
	for name, c := range tiny(t) {
		some := []string{"c_attn", "mlp.c_proj"}
		every := []string{architecture.AllLinear}
		if c.Architecture() == architecture.Llama {
			some = []string{"q_proj", "v_proj", "down_proj"}
			if !c.Tied {
				every = append(every, "lm_head")
			}
		}
		for suffix, targets := range map[string][]string{"": some, "-all": every} {
			adapted, err := c.Adapt(architecture.LoRA{Rank: 2, Alpha: 3, Targets: targets})
			if err != nil {
				t.Fatal(err)
			}
			all[name+"-lora"+suffix] = adapted
		}
	}
	return all
}

// both joins the tensors of a model with those of its adapters.
func both(base, adapters state) state {
	all := maps.Clone(base)
	maps.Copy(all, adapters)
	return all
}

func TestAdapterNames(t *testing.T) {
	c := adaptedModels(t)["gpt2-lora"]
	h := "base_model.model.transformer.h.1."
	want := []string{h + "attn.c_attn.lora_A.weight [2 12]", h + "attn.c_attn.lora_B.weight [36 2]",
		h + "mlp.c_proj.lora_A.weight [2 20]", h + "mlp.c_proj.lora_B.weight [12 2]"}
	if got := describe(c.Adapters())[4:]; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	models := adaptedModels(t)
	for name, n := range map[string]int{"gpt2-lora-all": 2 * 2 * 4, "llama-lora-all": 2 * (2*7 + 1),
		"llama-tied-lora-all": 2 * 2 * 7} {
		if got := len(models[name].Adapters()); got != n {
			t.Errorf("%s: %d tensors of adapters, want %d", name, got, n)
		}
	}
	var config map[string]any
	text, err := c.AdapterJSON()
	if err != nil || json.Unmarshal(text, &config) != nil || config["peft_type"] != "LORA" || config["r"] != 2.0 ||
		config["fan_in_fan_out"] != true {
		t.Errorf("adapter_config.json is %s, %v", text, err)
	}
}

// TestAdaptersStartAtNothing: B is zero, so the loss is that of the base.
func TestAdaptersStartAtNothing(t *testing.T) {
	for name, c := range adaptedModels(t) {
		base, tokens := strongWeights(c.Tensors()), someTokens(c, testBatch, testLength+1, 3)
		p, err := Eval(c, testBatch, testLength)
		adapted := mustRun(t, mustCompile(t, p, err), inputs(both(base, c.InitAdapters(4)), tokens))["loss"]
		checkNear(t, name+" loss", scalar(adapted), reference{c, base}.loss(tokens.I32(), testBatch), 1e-4)
	}
}

// TestMerge compares the model with adapters with the plain model on merged tensors, computed by the reference.
func TestMerge(t *testing.T) {
	for name, c := range adaptedModels(t) {
		base, adapters, tokens := strongWeights(c.Tensors()), strongWeights(c.Adapters()),
			someTokens(c, testBatch, testLength+1, 3)
		p, err := Eval(c, testBatch, testLength)
		adapted := scalar(mustRun(t, mustCompile(t, p, err), inputs(both(base, adapters), tokens))["loss"])
		merged := state{}
		for n, x := range base {
			if merged[n], err = adapter.Merge(c, n, x, adapters); err != nil {
				t.Fatal(err)
			}
		}
		plain := reference{c, base}.loss(tokens.I32(), testBatch)
		if d := adapted - plain; d < 1e-3 && d > -1e-3 {
			t.Errorf("%s: the adapters change the loss by %g only", name, d)
		}
		checkNear(t, name+" loss", adapted, reference{c, merged}.loss(tokens.I32(), testBatch), 2e-4)
		changed := 0
		for _, n := range c.Tensors() {
			if merged[n.Name] != base[n.Name] {
				changed++
			}
		}
		if changed != len(c.Adapters())/2 {
			t.Errorf("%s: merging changed %d tensors, want %d", name, changed, len(c.Adapters())/2)
		}
	}
}

func TestAdapterGradients(t *testing.T) {
	for name, c := range adaptedModels(t) {
		task, err := Language(c, testBatch, testLength)
		mustTask(t, task, err)
		w := both(strongWeights(c.Tensors()), strongWeights(c.Adapters()))
		checkGradients(t, name, task, w, state{"tokens": someTokens(c, testBatch, testLength+1, 6)}, 1e-2)
	}
}

// TestAdapterStep checks the inputs and outputs, and that training moves the loss of a batch.
func TestAdapterStep(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1}
	for name, c := range adaptedModels(t) {
		p, err := TrainStep(c, o, testBatch, testLength)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range p.Inputs() {
			if moment := strings.HasPrefix(i.Name, "m/") || strings.HasPrefix(i.Name, "v/"); moment &&
				!strings.Contains(i.Name, ".lora_") {
				t.Errorf("%s: the frozen tensor %s has a moment", name, i.Name)
			}
		}
		if got, want := len(p.Outputs), 3*len(c.Adapters())+2; got != want {
			t.Errorf("%s: %d outputs, want %d", name, got, want)
		}
		task, err := Language(c, testBatch, testLength)
		mustTask(t, task, err)
		w := both(strongWeights(c.Tensors()), c.InitAdapters(1))
		in := taskInputs(task, w, state{"tokens": someTokens(c, testBatch, testLength+1, 8)}, o, 0)
		e := mustCompile(t, p, nil)
		var first, last float64
		for step := 1; step <= 60; step++ {
			setStep(in, o, 0.03, step)
			out := mustRun(t, e, in)
			if last = scalar(out["loss"]); step == 1 {
				first = last
			}
			carry(task, in, out)
		}
		if !(last < 0.5*first) {
			t.Errorf("%s: the loss of a batch seen 60 times went from %g to %g", name, first, last)
		}
	}
}

func TestAdapterErrors(t *testing.T) {
	c := tiny(t)["llama-tied"]
	for _, l := range []architecture.LoRA{
		{Rank: 0, Alpha: 1, Targets: []string{architecture.AllLinear}}, {Rank: 1, Targets: []string{architecture.AllLinear}},
		{Rank: 1, Alpha: 1},
		{Rank: 1, Alpha: 1, Targets: []string{"c_attn"}}, {Rank: 1, Alpha: 1, Targets: []string{"q_proj", "embed_tokens"}},
		{Rank: 1, Alpha: 1, Targets: []string{"lm_head"}}, {Rank: 1, Alpha: 1, Targets: []string{"proj"}},
		{Rank: 1, Alpha: 1, Targets: []string{""}},
	} {
		if _, err := c.Adapt(l); !errors.Is(err, architecture.ErrAdapter) {
			t.Errorf("%+v: got %v, want ErrAdapter", l, err)
		}
	}
	if _, err := c.AdapterJSON(); !errors.Is(err, architecture.ErrAdapter) {
		t.Errorf("configuration of no adapters: %v", err)
	}
	c = adaptedModels(t)["llama-lora"]
	base, adapters := c.Init(1), c.InitAdapters(1)
	name, weight := c.Adapters()[0].Name, "model.layers.0.self_attn.q_proj.weight"
	for i, bad := range []state{{}, both(adapters, state{name: tensor.New(tensor.Make(tensor.Float32, 3))})} {
		_, err := adapter.Merge(c, weight, base[weight], bad)
		if !errors.Is(err, architecture.ErrAdapter) || !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("case %d: got %v, want ErrAdapter naming the tensor", i, err)
		}
	}
}

package folder

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"testing"
	"testing/fstest"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
)

// adapterFolder writes an adapter of c as a job does.
func adapterFolder(t testing.TB, c architecture.Config, tensors map[string]*tensor.Tensor) fstest.MapFS {
	t.Helper()
	config, err := c.AdapterJSON()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range c.Adapters() {
		if tensors[n.Name] != nil {
			names = append(names, n.Name)
		}
	}
	if extra := "extra"; tensors[extra] != nil {
		names = append(names, extra)
	}
	var b bytes.Buffer
	if err := safetensors.EncodeAs(&b, names, tensors, nil, nil); err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{adapterConfigFile: {Data: config}, adapterFile: {Data: b.Bytes()}}
}

func adapted(t testing.TB, modelType string) (base, c architecture.Config) {
	t.Helper()
	base = sample(t, modelType).Config
	c, err := base.Adapt(architecture.LoRA{Rank: 3, Alpha: 5, Targets: []string{architecture.AllLinear}})
	if err != nil {
		t.Fatal(err)
	}
	return base, c
}

func TestAdapterRoundTrip(t *testing.T) {
	for modelType := range configs {
		base, c := adapted(t, modelType)
		tensors := c.InitAdapters(1)
		got, err := ReadAdapter(adapterFolder(t, c, tensors), base)
		if err != nil {
			t.Fatal(err)
		}
		if got.Config.Scale() != c.Scale() || len(got.Tensors) != len(tensors) {
			t.Errorf("%s: scale %v and %d tensors, want %v and %d", modelType, got.Config.Scale(), len(got.Tensors),
				c.Scale(), len(tensors))
		}
		for name, want := range tensors {
			if !bytes.Equal(got.Tensors[name].Bytes(), want.Bytes()) {
				t.Errorf("%s: %s differs", modelType, name)
			}
		}
	}
}

func TestReadAdapterRefuses(t *testing.T) {
	base, c := adapted(t, architecture.Llama)
	first := c.Adapters()[0].Name
	tensors := func(change func(all map[string]*tensor.Tensor)) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			all := c.InitAdapters(1)
			change(all)
			maps.Copy(files, adapterFolder(t, c, all))
		}
	}
	config := func(key string, value any) func(fstest.MapFS) {
		return func(files fstest.MapFS) {
			var keys map[string]any
			if err := json.Unmarshal(files[adapterConfigFile].Data, &keys); err != nil {
				t.Fatal(err)
			}
			keys[key] = value
			text, err := json.Marshal(keys)
			if err != nil {
				t.Fatal(err)
			}
			files[adapterConfigFile] = &fstest.MapFile{Data: text}
		}
	}
	for name, bad := range map[string]struct {
		change func(files fstest.MapFS)
		want   error
	}{
		"missing": {tensors(func(all map[string]*tensor.Tensor) { delete(all, first) }), ErrMissing},
		"unknown": {tensors(func(all map[string]*tensor.Tensor) { all["extra"] = all[first] }), ErrUnknown},
		"shape": {tensors(func(all map[string]*tensor.Tensor) {
			all[first] = tensor.New(tensor.Make(tensor.Float32, 2,
				8))
		}), ErrShape},
		"NaN": {tensors(func(all map[string]*tensor.Tensor) { all[first].F32()[1] = float32(math.NaN()) }),
			ErrNotFinite},
		"kind":      {config("peft_type", "IA3"), ErrAdapterKind},
		"rslora":    {config("use_rslora", true), ErrAdapterKind},
		"bias":      {config("bias", "all"), ErrAdapterKind},
		"pattern":   {config("rank_pattern", map[string]int{"q_proj": 4}), ErrAdapterKind},
		"rank":      {config("r", 0), architecture.ErrAdapter},
		"targets":   {config("target_modules", []string{"query"}), architecture.ErrAdapter},
		"a pattern": {config("target_modules", ".*q_proj"), ErrJSON},
		"no JSON":   {func(files fstest.MapFS) { files[adapterConfigFile] = &fstest.MapFile{Data: []byte("[")} }, ErrJSON},
		"too large": {func(files fstest.MapFS) {
			files[adapterConfigFile] = &fstest.MapFile{Data: make([]byte,
				maxConfig+1)}
		}, ErrTooLarge},
	} {
		files := adapterFolder(t, c, c.InitAdapters(1))
		bad.change(files)
		var e *Error
		if _, err := ReadAdapter(files, base); !errors.Is(err, bad.want) || !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzReadAdapter must not panic, and what it reads must be of the model.
func FuzzReadAdapter(f *testing.F) {
	base, c := adapted(f, architecture.GPT2)
	files := adapterFolder(f, c, c.InitAdapters(1))
	f.Add(files[adapterConfigFile].Data, files[adapterFile].Data)
	f.Add([]byte(`{"peft_type":"LORA","r":1,"lora_alpha":1,"target_modules":"all-linear"}`), []byte{})
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		a, err := ReadAdapter(fstest.MapFS{adapterConfigFile: {Data: config}, adapterFile: {Data: weights}}, base)
		if err != nil {
			return
		}
		for _, n := range a.Config.Adapters() {
			if x := a.Tensors[n.Name]; x == nil || !x.Shape.Equal(n.Shape) {
				t.Errorf("%s is missing", n.Name)
			}
		}
	})
}

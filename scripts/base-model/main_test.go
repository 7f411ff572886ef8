package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
)

const small = `{"model_type": "llama", "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
	"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32, "vocab_size": 300}`

// TestFolder reads what is written, in one file and in several: the weights are the same.
func TestFolder(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(config, []byte(small), 0o644); err != nil {
		t.Fatal(err)
	}
	made := map[int64]*folder.Model{}
	for _, shardBytes := range []int64{1 << 10, 1 << 20} {
		out := filepath.Join(t.TempDir(), "base")
		if err := run(out, config, 7, shardBytes); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(out, "*.safetensors"))
		if err != nil || len(files) == 1 != (shardBytes == 1<<20) {
			t.Errorf("%d files of tensors, %v", len(files), err)
		}
		if made[shardBytes], err = folder.Read(os.DirFS(out)); err != nil {
			t.Fatal(err)
		}
	}
	cut, whole := made[1<<10].Tensors, made[1<<20].Tensors
	for name, x := range whole {
		if x.Root() != cut[name].Root() {
			t.Errorf("%s depends on how the model is cut into files", name)
		}
	}
	const a, b = "model.layers.0.mlp.up_proj.weight", "model.layers.1.mlp.up_proj.weight"
	if whole[a].Root() == whole[b].Root() {
		t.Error("two layers have the same weights")
	}
}

// TestTinyLlama: the default shapes are those of a model of 1.1 B parameters.
func TestTinyLlama(t *testing.T) {
	out := t.TempDir()
	if err := os.WriteFile(filepath.Join(out, "config.json"), []byte(tinyLlama), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := folder.ReadConfig(os.DirFS(out))
	if err != nil || c.Parameters() != 1_100_048_384 || c.Architecture() != architecture.Llama {
		t.Errorf("%d parameters, %v", c.Parameters(), err)
	}
}

func TestRefuses(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(bad, []byte(`{"model_type": "none"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][2]string{"no folder": {"", ""}, "no file": {"out", bad + "x"},
		"no model": {"out", bad}} {
		if err := run(flags[0], flags[1], 1, 1<<20); err == nil {
			t.Errorf("%s: made", name)
		}
	}
}

package money

import (
	"os"
	"path/filepath"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/prepare/hubfile"
)

const positions = 512 // tokens that the models read

// describe is a model whose tokens are bytes.
func describe(width, layers int) (architecture.Config, error) {
	return architecture.Parse(architecture.Llama, map[string]any{"vocab_size": 256, "max_position_embeddings": positions,
		"hidden_size": width, "intermediate_size": 3 * width, "num_hidden_layers": layers,
		"num_attention_heads": max(1, width/64)})
}

// writeModel writes a model with random weights to a folder that loaders of the Hugging Face Hub read.
func writeModel(c architecture.Config, dir string) error {
	return writeFiles(dir, hubfile.Text("config.json", c.JSON()), hubfile.Text("tokenizer.json", tokenizer.Bytes().JSON()),
		weights("model.safetensors", c.Tensors(), c.Init(1)))
}

// writeAdapter writes an adapter of the model with random weights of a seed.
func writeAdapter(c architecture.Config, seed uint64, dir string) error {
	a, err := c.Adapt(architecture.LoRA{Rank: 8, Alpha: 16, Targets: []string{architecture.AllLinear}})
	if err != nil {
		return err
	}
	tensors := a.InitAdapters(seed)
	for i, n := range a.Adapters() {
		x := tensors[n.Name].F32()
		philox.NormalTo(x, seed, uint64(i))
		for k := range x {
			x[k] /= 64
		}
	}
	config, err := a.AdapterJSON()
	if err != nil {
		return err
	}
	return writeFiles(dir, hubfile.Text("adapter_config.json", config),
		weights("adapter_model.safetensors", a.Adapters(), tensors))
}

func weights(file string, list []architecture.Named, tensors map[string]*tensor.Tensor) hubfile.File {
	return hubfile.Weights(file, list, func(name string) (*tensor.Tensor, error) { return tensors[name], nil })
}

func writeFiles(dir string, files ...hubfile.File) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, f := range files {
		to, err := os.Create(filepath.Join(dir, f.Name))
		if err != nil {
			return err
		}
		if err := f.Write(to); err != nil {
			_ = to.Close() // the first error says more
			return err
		}
		if err := to.Close(); err != nil {
			return err
		}
	}
	return nil
}

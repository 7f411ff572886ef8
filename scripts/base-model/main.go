// Command base-model makes a folder of a model in Hugging Face form, with weights drawn from a seed: config.json, its
// tensors in safetensors files with their index, and a byte-level tokenizer.json. The default shapes are those of
// TinyLlama 1.1B. Tensors are drawn and written one by one, so that memory holds one of them at a time. The same flags
// give the same bytes on every machine.
//
//	go run ./scripts/base-model --out /tmp/base
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
)

// tinyLlama is the config.json of TinyLlama 1.1B.
const tinyLlama = `{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22,
	"num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048, "vocab_size": 32000,
	"rms_norm_eps": 1e-05, "rope_theta": 10000.0, "tie_word_embeddings": false, "initializer_range": 0.02}`

func main() {
	out := flag.String("out", "", "folder to make")
	config := flag.String("config", "", "config.json of the shapes; those of TinyLlama 1.1B if not given")
	seed := flag.Uint64("seed", 1, "seed of the weights")
	shard := flag.Int64("shard-mib", 2048, "MiB of tensors in a file, at most; a larger tensor has a file of its own")
	flag.Parse()
	if err := run(*out, *config, *seed, *shard<<20); err != nil {
		fmt.Fprintln(os.Stderr, "base-model:", err)
		os.Exit(1)
	}
}

func run(out, config string, seed uint64, shardBytes int64) error {
	if out == "" {
		return errors.New("--out names the folder to make")
	}
	text := []byte(tinyLlama)
	if config != "" {
		var err error
		if text, err = os.ReadFile(config); err != nil {
			return err
		}
	}
	keys := map[string]any{}
	if err := json.Unmarshal(text, &keys); err != nil {
		return fmt.Errorf("config.json: %w", err)
	}
	modelType, _ := keys["model_type"].(string)
	c, _, err := architecture.Import(modelType, keys)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return write(out, c, seed, shardBytes)
}

// write writes all files of the folder.
func write(out string, c architecture.Config, seed uint64, shardBytes int64) error {
	shards := cut(c.Tensors(), shardBytes)
	index, first, total := map[string]string{}, 0, int64(0)
	for i, list := range shards {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(shards))
		if err := writeShard(filepath.Join(out, name), list, seed, first); err != nil {
			return err
		}
		for _, t := range list {
			index[t.Name] = name
			total += int64(t.Shape.Bytes())
		}
		first += len(list)
	}
	text, err := json.MarshalIndent(map[string]any{
		"metadata":   map[string]any{"total_size": total},
		"weight_map": index,
	}, "", "  ")
	if err != nil {
		return err
	}
	for name, text := range map[string][]byte{"config.json": c.JSON(), "tokenizer.json": tokenizer.Bytes().JSON(),
		"model.safetensors.index.json": append(text, '\n')} {
		if err := os.WriteFile(filepath.Join(out, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// cut cuts tensors into files: a file ends before the tensor that does not fit.
func cut(list []architecture.Named, shardBytes int64) (shards [][]architecture.Named) {
	size := int64(0)
	for _, t := range list {
		n := int64(t.Shape.Bytes())
		if len(shards) == 0 || size+n > shardBytes {
			shards, size = append(shards, nil), 0
		}
		last := len(shards) - 1
		shards[last], size = append(shards[last], t), size+n
	}
	return shards
}

// writeShard writes one file of tensors, of which the first has the given number in the model: tensor i draws from the
// seed plus i.
func writeShard(path string, list []architecture.Named, seed uint64, first int) (err error) {
	names, shapes := make([]string, len(list)), make([]tensor.Shape, len(list))
	for i, t := range list {
		names[i], shapes[i] = t.Name, t.Shape
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	err = safetensors.EncodeEach(w, names, shapes, map[string]string{"format": "pt"},
		func(i int) (*tensor.Tensor, error) {
			return architecture.Init(list[i:i+1], seed+uint64(first+i))[list[i].Name], nil
		})
	return errors.Join(err, w.Flush())
}

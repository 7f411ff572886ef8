package node

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/starling-network/starling/compute/model/gguf"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Files of an exported model: a folder that Hugging Face tools load.
const (
	fileModel            = "model.safetensors"
	fileGGUF             = "model.gguf" // of output.formats: gguf, for llama.cpp
	fileConfig           = "config.json"
	fileTokenizer        = "tokenizer.json"
	fileTokenizerConfig  = "tokenizer_config.json"
	fileGenerationConfig = "generation_config.json"
)

func (b *Blueprint) wantsGGUF() bool { return slices.Contains(b.Job.Output.Formats, "gguf") }

// exportModel returns the files of the model of a checkpoint, by name.
func exportModel(b *Blueprint, c *train.Checkpoint) (map[string][]byte, error) {
	tensors := map[string]*tensor.Tensor{}
	for i, n := range c.Names {
		tensors[n] = c.Params[i]
	}
	var weights bytes.Buffer
	if err := safetensors.Encode(&weights, c.Names, tensors, map[string]string{"format": "pt"}); err != nil {
		return nil, err
	}
	tokenizerConfig, err := json.MarshalIndent(map[string]any{
		"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": b.Model.Context(), "clean_up_tokenization_spaces": false,
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		fileModel: weights.Bytes(), fileConfig: b.Model.JSON(), fileTokenizer: b.Tokenizer.JSON(),
		fileTokenizerConfig:  append(tokenizerConfig, '\n'),
		fileGenerationConfig: []byte("{\n  \"do_sample\": true\n}\n"),
	}
	if b.wantsGGUF() {
		var out bytes.Buffer
		m := gguf.Model{Name: b.Job.Name, Config: b.Model, Tensors: tensors, Tokenizer: b.Tokenizer}
		if err := gguf.Encode(&out, m, gguf.F32); err != nil {
			return nil, err
		}
		files[fileGGUF] = out.Bytes()
	}
	return files, nil
}

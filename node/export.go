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
	fileAdapter          = "adapter/adapter_model.safetensors" // of a job that trains one: a folder that PEFT loads
	fileAdapterConfig    = "adapter/adapter_config.json"
)

func (b *Blueprint) wantsGGUF() bool { return slices.Contains(b.Job.Output.Formats, "gguf") }

// exportModel returns the files of the model of a checkpoint, by name.
func exportModel(b *Blueprint, c *train.Checkpoint) (map[string][]byte, error) {
	tensors, err := b.weights(c)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, n := range b.Model.Tensors() {
		names = append(names, n.Name)
	}
	weights, err := encodeWeights(names, tensors)
	if err != nil {
		return nil, err
	}
	tokenizerConfig, err := json.MarshalIndent(map[string]any{
		"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": b.Model.Context(), "clean_up_tokenization_spaces": false,
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{
		fileModel: weights, fileConfig: b.Model.JSON(), fileTokenizer: b.Tokenizer.JSON(),
		fileTokenizerConfig:  append(tokenizerConfig, '\n'),
		fileGenerationConfig: []byte("{\n  \"do_sample\": true\n}\n"),
	}
	if b.adapted() {
		if files[fileAdapter], err = encodeWeights(c.Names, trainedWeights(c)); err != nil {
			return nil, err
		}
		if files[fileAdapterConfig], err = b.trained.AdapterJSON(); err != nil {
			return nil, err
		}
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

func encodeWeights(names []string, tensors map[string]*tensor.Tensor) ([]byte, error) {
	var out bytes.Buffer
	err := safetensors.Encode(&out, names, tensors, map[string]string{"format": "pt"})
	return out.Bytes(), err
}

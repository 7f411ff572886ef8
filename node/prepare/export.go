package prepare

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/starling-network/starling/compute/model/gguf"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Files of an exported model: a folder that Hugging Face tools load.
const (
	FileModel            = "model.safetensors"
	fileGGUF             = "model.gguf" // of output.formats: gguf, for llama.cpp
	FileConfig           = "config.json"
	FileTokenizer        = "tokenizer.json"
	fileTokenizerConfig  = "tokenizer_config.json"
	fileGenerationConfig = "generation_config.json"
	fileSpecialTokens    = "special_tokens_map.json"           // of a base model with a chat template
	fileTemplate         = "chat_template.jinja"               // likewise, and of a model that was tuned on conversations
	FileAdapter          = "adapter/adapter_model.safetensors" // of a job that trains one: a folder that PEFT loads
	FileAdapterConfig    = "adapter/adapter_config.json"
)

func (b *CompiledJob) wantsGGUF() bool { return slices.Contains(b.Job.Output.Formats, "gguf") }

// ExportModel returns the files of the model of a checkpoint, by name, with the texts that go with it.
func ExportModel(b *CompiledJob, c *train.Checkpoint, t texts) (map[string][]byte, error) {
	tensors, err := b.Weights(c)
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
	files := map[string][]byte{FileModel: weights, FileTokenizer: b.Tokenizer.JSON()}
	maps.Copy(files, t.files)
	if b.adapted() {
		if files[FileAdapter], err = encodeWeights(c.Names, trainedWeights(c)); err != nil {
			return nil, err
		}
		if files[FileAdapterConfig], err = b.adapterJSON(t.base); err != nil {
			return nil, err
		}
	}
	if b.wantsGGUF() {
		var out bytes.Buffer
		m := gguf.Model{Name: b.Job.Name, Config: b.Model, Tensors: tensors, Tokenizer: b.Tokenizer, Template: t.template}
		if err := gguf.Encode(&out, m, gguf.F32); err != nil {
			return nil, err
		}
		files[fileGGUF] = out.Bytes()
	}
	return files, nil
}

// adapterJSON is the config of the adapter. Loaders that find the base by its adapter read there which it is: what the
// job names.
func (b *CompiledJob) adapterJSON(base string) ([]byte, error) {
	text, err := b.Trained.AdapterJSON()
	if err != nil || base == "" {
		return text, err
	}
	config := object{}
	if err := json.Unmarshal(text, &config); err != nil {
		return nil, err
	}
	name, err := json.Marshal(base)
	config["base_model_name_or_path"] = name
	return config.bytes(), err
}

func encodeWeights(names []string, tensors map[string]*tensor.Tensor) ([]byte, error) {
	var out bytes.Buffer
	err := safetensors.Encode(&out, names, tensors, map[string]string{"format": "pt"})
	return out.Bytes(), err
}

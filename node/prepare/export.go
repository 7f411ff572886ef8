package prepare

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/model/architecture"
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

func wantsGGUF(j *job.Job) bool { return slices.Contains(j.Output.Formats, "gguf") }

// File is a file of an exported model, which writes itself.
type File struct {
	Name  string
	Write func(w io.Writer) error
}

// ExportModel returns the files of the model of a checkpoint, in the order of their names, with the texts that go with
// it. The weights are made and written one by one.
func ExportModel(b *CompiledJob, c *train.Checkpoint, t texts) ([]File, error) {
	files := []File{weightsFile(FileModel, b.Model.Tensors(), merged(b, c))}
	if b.Tokenizer != nil {
		files = append(files, textFile(FileTokenizer, b.Tokenizer.JSON()))
	}
	for name, text := range t.files {
		files = append(files, textFile(name, text))
	}
	if b.adapted() {
		adapter, list, config := trainedWeights(c), b.Trained.Adapters(), b.Trained.AdapterJSON
		if n, ok := b.encoder(); ok {
			list, config = n.Saved(adapter), n.AdapterJSON
		}
		files = append(files, weightsFile(FileAdapter, list,
			func(name string) (*tensor.Tensor, error) { return adapter[name], nil }))
		text, err := adapterJSON(config, t.base)
		if err != nil {
			return nil, err
		}
		files = append(files, textFile(FileAdapterConfig, text))
	}
	if wantsGGUF(b.Job) {
		files = append(files, File{fileGGUF, func(w io.Writer) error {
			tensors, err := b.Weights(c)
			if err != nil {
				return err
			}
			return gguf.Encode(w, gguf.Model{Name: b.Job.Name, Config: *b.Language, Tensors: tensors, Tokenizer: b.Tokenizer,
				Template: t.template}, gguf.F32)
		}})
	}
	slices.SortFunc(files, func(a, b File) int { return cmp.Compare(a.Name, b.Name) })
	return files, nil
}

func textFile(name string, text []byte) File {
	return File{name, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}}
}

// weightsFile is a file of safetensors.
func weightsFile(file string, list []architecture.Named, weight func(name string) (*tensor.Tensor, error)) File {
	return File{file, func(w io.Writer) error {
		names, shapes := make([]string, len(list)), make([]tensor.Shape, len(list))
		for i, n := range list {
			names[i], shapes[i] = n.Name, n.Shape
		}
		return safetensors.EncodeEach(w, names, shapes, map[string]string{"format": "pt"},
			func(i int) (*tensor.Tensor, error) { return weight(names[i]) })
	}}
}

// adapterJSON is the config of the adapter. Loaders that find the base by its adapter read there which it is: what the
// job names.
func adapterJSON(adapter func() ([]byte, error), base string) ([]byte, error) {
	text, err := adapter()
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

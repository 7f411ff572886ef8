package prepare

import (
	"cmp"
	"io"
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/model/gguf"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/prepare/hubfile"
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

// ExportModel returns the files of the model of a checkpoint, in the order of their names, with the texts that go with
// it. The weights are made and written one by one. Of a swarm it is the model with a number; what was trained of each
// has a file, too.
func ExportModel(b *CompiledJob, all *train.Checkpoint, number int, t texts) ([]hubfile.File, error) {
	c := train.Model(b.Spec, all, number)
	files := []hubfile.File{hubfile.Weights(FileModel, b.Model.Tensors(), merged(b, c))}
	if b.Tokenizer != nil {
		files = append(files, hubfile.Text(FileTokenizer, b.Tokenizer.JSON()))
	}
	for name, text := range t.files {
		files = append(files, hubfile.Text(name, text))
	}
	if b.adapted() {
		adapter, list, config := trainedWeights(c), b.Trained.Adapters(), b.Trained.AdapterJSON
		if n, ok := b.encoder(); ok {
			list, config = n.Saved(adapter), n.AdapterJSON
		}
		files = append(files, hubfile.Weights(FileAdapter, list,
			func(name string) (*tensor.Tensor, error) { return adapter[name], nil }))
		text, err := hubfile.AdapterJSON(config, t.base)
		if err != nil {
			return nil, err
		}
		files = append(files, hubfile.Text(FileAdapterConfig, text))
	}
	if wantsGGUF(b.Job) {
		files = append(files, hubfile.File{Name: fileGGUF, Write: func(w io.Writer) error {
			tensors, err := b.Weights(c)
			if err != nil {
				return err
			}
			return gguf.Encode(w, gguf.Model{Name: b.Job.Name, Config: *b.Language, Tensors: tensors, Tokenizer: b.Tokenizer,
				Template: t.template}, gguf.F32)
		}})
	}
	list := b.Model.Tensors()
	if b.adapted() {
		list = b.Trained.Adapters()
	}
	files = append(files, hubfile.Models(int(b.Spec.Exchange.Policies), list,
		func(k int) map[string]*tensor.Tensor { return trainedWeights(train.Model(b.Spec, all, k)) })...)
	slices.SortFunc(files, func(a, b hubfile.File) int { return cmp.Compare(a.Name, b.Name) })
	return files, nil
}

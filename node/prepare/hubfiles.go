package prepare

import (
	"encoding/json"
	"maps"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/node/encoder"
	"github.com/starling-network/starling/node/prepare/cut"
	"github.com/starling-network/starling/node/prepare/hubfile"
	"github.com/starling-network/starling/node/serve"
)

// texts are the files of an exported model besides its weights, by name, and what they say about conversations.
type texts struct {
	files    map[string][]byte
	template string // in Jinja; "": none
	base     string // of the adapter, as the job names it; "": it names none
}

// Leaves are the texts that go with a model: the tokens that end, begin and fill up its texts, how it is to be asked,
// and how it wants conversations. They are those of the base model of the job, or else what the training used.
func (b *CompiledJob) Leaves() (t texts, err error) {
	dir := ""
	if b.Job.Model.BaseModel != "" {
		dir = b.Job.BaseModelPath()
	}
	if b.Language == nil {
		t = texts{files: map[string][]byte{FileConfig: b.Model.JSON()}, base: b.Job.Model.BaseModel}
		if n, ok := b.encoder(); ok {
			t.files[fileTokenizerConfig], err = encoder.TokenizerConfig(n, b.Job.SequenceLen, b.Tokenizer, dir)
		}
		if n, ok := b.Model.(embed.Network); ok {
			maps.Copy(t.files, n.Files())
		}
		return t, err
	}
	if t, err = conversations(b.Job, dir); err != nil {
		return t, err
	}
	t.base = b.Job.Model.BaseModel
	read := map[string]hubfile.Object{}
	for _, name := range []string{FileConfig, fileTokenizerConfig, fileGenerationConfig, fileSpecialTokens} {
		if read[name], err = hubfile.Read(dir, name); err != nil {
			return t, err
		}
	}
	config, generation, tokens := hubfile.Object{}, read[fileGenerationConfig], read[fileTokenizerConfig]
	if err := json.Unmarshal(b.Model.JSON(), &config); err != nil {
		return t, err
	}
	for _, key := range []string{"bos_token_id", "eos_token_id", "pad_token_id"} {
		if id := read[FileConfig][key]; len(id) > 0 && string(id) != "null" {
			config[key] = id // a list stays whole
		}
	}
	for name, value := range map[string]string{"tokenizer_class": `"PreTrainedTokenizerFast"`,
		"clean_up_tokenization_spaces": "false"} {
		tokens.Set(name, json.RawMessage(value))
	}
	tokens.Set("model_max_length", hubfile.Number(b.Language.Context()))
	for _, key := range []string{"bos_token", "eos_token", "pad_token", "unk_token"} {
		tokens.Set(key, read[fileSpecialTokens][key])
	}
	if end, ok := b.Tokenizer.EndOfText(); ok && dir == "" { // what divided the documents
		text, _ := json.Marshal(tokenizer.EndOfText)
		config.Set("eos_token_id", hubfile.Number(int(end)))
		tokens.Set("eos_token", text)
		tokens.Set("pad_token", text)
		generation.Set("pad_token_id", hubfile.Number(int(end)))
	}
	for _, key := range []string{"bos_token_id", "eos_token_id", "pad_token_id"} {
		generation.Set(key, config[key])
	}
	if len(read[fileGenerationConfig]) == 0 || dir == "" {
		generation.Set("do_sample", json.RawMessage("true"))
	}
	if t.template != "" {
		text, err := json.Marshal(t.template)
		if err != nil {
			return t, err
		}
		tokens.Set("chat_template", text)
	}
	maps.Copy(t.files, b.judges.Files())
	maps.Copy(t.files, cut.Files(b.Job, b.Spec))
	t.files[FileConfig], t.files[fileTokenizerConfig], t.files[fileGenerationConfig] = config.Bytes(), tokens.Bytes(),
		generation.Bytes()
	return t, nil
}

// conversations are the files that say how a model wants conversations.
func conversations(j *job.Job, dir string) (t texts, err error) {
	if dir != "" {
		if t.files, err = serve.ChatFiles(dir); err != nil {
			return t, err
		}
	}
	if len(t.files) == 0 {
		t.files = map[string][]byte{}
		if j.Chats() || j.Labels[serve.LabelTemplate] == serve.Plain {
			t.files[fileTemplate] = []byte(serve.PlainTemplate)
		}
	}
	t.template = string(t.files[fileTemplate])
	return t, nil
}

// Before are the texts as older versions left them, for runs that are verified later.
func (b *CompiledJob) Before() (texts, error) {
	if b.Language == nil {
		return b.Leaves()
	}
	tokens, err := json.MarshalIndent(map[string]any{
		"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": b.Language.Context(),
		"clean_up_tokenization_spaces": false,
	}, "", "  ")
	return texts{files: map[string][]byte{
		FileConfig: b.Model.JSON(), fileTokenizerConfig: append(tokens, '\n'),
		fileGenerationConfig: []byte("{\n  \"do_sample\": true\n}\n"),
	}}, err
}

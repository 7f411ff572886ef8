package classes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/node/dataset"
)

// reader is the network of a job that classifies texts. The error is a *problem.ErrorList.
func reader(j *job.Job, t *dataset.Texts, base *folder.Model) (n textclass.Network, err error) {
	m := j.Model
	var c architecture.Config
	if base != nil {
		if c = base.Config; m.Architecture != "" && m.Architecture != c.Architecture() {
			return n, keyProblem(j, "model.architecture", "the base model is another",
				fmt.Errorf("it is %s, the job says %s", c.Architecture(), m.Architecture), "remove architecture")
		}
	} else {
		raw := map[string]any{"vocab_size": t.Tokenizer.VocabSize()}
		maps.Copy(raw, m.Config)
		if c, err = architecture.Parse(m.Architecture, raw); err != nil {
			return n, keyProblem(j, "model.config", "the model cannot be built", err,
				"use the keys of a Hugging Face config.json of this architecture")
		}
	}
	if v := t.Tokenizer.VocabSize(); c.VocabSize() < v {
		return n, keyProblem(j, "model.config.vocab_size", "the model's vocabulary is too small",
			fmt.Errorf("the tokenizer has %d ids, the model %d", v, c.VocabSize()), "leave vocab_size out, or raise it")
	}
	if j.SequenceLen > c.Context() {
		return n, keyProblem(j, "sequence_len", "the texts are longer than the model's context",
			fmt.Errorf("%d tokens against %d", j.SequenceLen, c.Context()),
			"lower sequence_len or raise the context in model.config")
	}
	if n, err = textclass.New(c, t.Labels, j.SequenceLen, t.Pad); err != nil {
		return n, keyProblem(j, "model", "the model cannot be built", err, "use another model")
	}
	return n, nil
}

// TokenizerFile says how transformers encodes texts for a model.
const TokenizerFile = "tokenizer_config.json"

// TokenizerConfig is the tokenizer_config.json of a classifier: that in the folder of its base model, or a new one if
// that is "", with the length of texts, at whose end they are cut off and filled up, and the token that fills them up.
func TokenizerConfig(n textclass.Network, tok *tokenizer.Tokenizer, base string) ([]byte, error) {
	config := map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": false}
	if base != "" {
		raw, err := os.ReadFile(filepath.Join(base, TokenizerFile))
		if err == nil {
			err = json.Unmarshal(raw, &config)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		delete(config, "chat_template")
	}
	config["model_max_length"], config["padding_side"], config["truncation_side"] = n.Example(), "right", "right"
	tokens := tok.Vocabulary().Tokens
	switch pad := n.Pad(); {
	case pad < len(tokens) && tokens[pad].Text != "":
		config["pad_token"] = tokens[pad].Text
	case pad == len(tokens) && pad < n.Language().VocabSize():
		config["pad_token"] = "[PAD]" // it gets the first number that is free
	default:
		delete(config, "pad_token") // transformers then classifies one text at a time
	}
	text, err := json.MarshalIndent(config, "", "  ")
	return append(text, '\n'), err
}

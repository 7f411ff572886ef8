package examples

import (
	"fmt"
	"maps"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/node/dataset"
)

// textsOf is a job with a network that classifies or scores texts. The error is a *problem.ErrorList.
func textsOf(j *job.Job, base *folder.Model, t *dataset.Texts) (*Job, error) {
	c, err := language(j, t.Tokenizer, base)
	if err != nil {
		return nil, err
	}
	n, err := textclass.New(c, t.Labels, j.SequenceLen, t.Pad)
	if err != nil {
		return nil, j.Refuse("model", problem.BadValue, "the model cannot be built", err, "use another model")
	}
	return &Job{Network: n, Corpus: t.Corpus, Example: rowOf(j, n), Tokenizer: t.Tokenizer}, nil
}

// pairsOf reads the data of a job that gives vectors to texts. The error is a *problem.ErrorList.
func pairsOf(j *job.Job, base *folder.Model) (*Job, error) {
	p, err := dataset.PairsOf(j)
	if err != nil {
		return nil, err
	}
	c, err := language(j, p.Tokenizer, base)
	if err != nil {
		return nil, err
	}
	n, err := embed.New(c, p.Length, p.Pad)
	if err != nil {
		return nil, j.Refuse("model", problem.BadValue, "the model cannot be built", err,
			"use another model, or a smaller sequence_len")
	}
	return &Job{Network: n, Corpus: p.Corpus, Example: n.Example(), Tokenizer: p.Tokenizer}, nil
}

// language is the language model of a job, from scratch if base is nil. The error is a *problem.ErrorList.
func language(j *job.Job, tok *tokenizer.Tokenizer, base *folder.Model) (c architecture.Config, err error) {
	m := j.Model
	if base != nil {
		if c = base.Config; m.Architecture != "" && m.Architecture != c.Architecture() {
			return c, j.Refuse("model.architecture", problem.BadValue, "the base model is another",
				fmt.Errorf("it is %s, the job says %s", c.Architecture(), m.Architecture), "remove architecture")
		}
	} else {
		raw := map[string]any{"vocab_size": tok.VocabSize()}
		maps.Copy(raw, m.Config)
		if c, err = architecture.Parse(m.Architecture, raw); err != nil {
			return c, j.Refuse("model.config", problem.BadValue, "the model cannot be built", err,
				"use the keys of a Hugging Face config.json of this architecture")
		}
	}
	if v := tok.VocabSize(); c.VocabSize() < v {
		return c, j.Refuse("model.config.vocab_size", problem.BadValue, "the model's vocabulary is too small",
			fmt.Errorf("the tokenizer has %d ids, the model %d", v, c.VocabSize()), "leave vocab_size out, or raise it")
	}
	if j.SequenceLen > c.Context() {
		return c, j.Refuse("sequence_len", problem.BadValue, "the texts are longer than the model's context",
			fmt.Errorf("%d tokens against %d", j.SequenceLen, c.Context()),
			"lower sequence_len or raise the context in model.config")
	}
	return c, nil
}

// Package judge reads the reward models that a job of reinforcement learning names as rewards: from their folders, or
// from the tensors that its run has shipped. It scores nothing; the program of the job does.
package judge

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/encoder"
	"github.com/starling-network/starling/node/memory"
)

// Models are the reward models of a job, in the order of its rules.
type Models struct {
	Networks []textclass.Network       // for texts of sequence_len tokens
	Weights  []float64                 // of their scores
	Tensors  map[string]*tensor.Tensor // by the names of the frozen tensors of model.Reinforce
}

// ErrModel is wrapped by the reasons why a folder holds no reward model for a job.
var ErrModel = errors.New("not a reward model for this job")

// File is where the output folder of a run has the config.json of reward model i.
func File(i int) string { return model.JudgePrefix(i) + "config.json" }

// rules are those of a job that name a reward model, by their places.
func rules(j *job.Job) (at []int) {
	for i, r := range j.Reward.Rules {
		if j.Task == spec.TaskGRPO && r.Kind == spec.RewardModel {
			at = append(at, i)
		}
	}
	return at
}

// Read reads the reward models of a job whose texts have the tokens of a tokenizer. The error is a *problem.ErrorList.
func Read(j *job.Job, tok *tokenizer.Tokenizer) (m Models, err error) {
	for k, i := range rules(j) {
		n, tensors, err := read(j, i, tok)
		if err != nil {
			return m, j.Refuse(fmt.Sprintf("reward.rules.%d.model", i), problem.BadValue, "the reward model cannot be used", err,
				"name the output folder of a job with task: reward, with the tokenizer of this model (model.base_model or "+
					"model.tokenizer)")
		}
		m.add(j, i, n)
		for name, t := range tensors {
			m.Tensors[model.JudgePrefix(k)+name] = t
		}
	}
	return m, nil
}

func (m *Models) add(j *job.Job, rule int, n textclass.Network) {
	if m.Tensors == nil {
		m.Tensors = map[string]*tensor.Tensor{}
	}
	m.Networks, m.Weights = append(m.Networks, n), append(m.Weights, j.Reward.Rules[rule].Weight)
}

// read reads the reward model of a rule, with its tensors by its own names.
func read(j *job.Job, rule int, tok *tokenizer.Tokenizer) (n textclass.Network,
	own map[string]*tensor.Tensor, err error) {
	path := j.RewardModelPath(rule)
	for _, before := range rules(j) {
		if before < rule && j.RewardModelPath(before) == path {
			return n, nil, fmt.Errorf("%w: it is named twice: name it once, with the sum of the weights", ErrModel)
		}
	}
	f, err := encoder.Open(memory.OpenFolder(path))
	if err != nil {
		return n, nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	if f.Length > 0 && j.SequenceLen > f.Length {
		return n, nil, fmt.Errorf("%w: it was trained on texts of at most %d tokens, and sequence_len is %d", ErrModel,
			f.Length, j.SequenceLen)
	}
	if n, err = parse(f.Config, j.SequenceLen); err != nil {
		return n, nil, err
	}
	if err := sameTokens(tok, f.Tokenizer); err != nil {
		return n, nil, err
	}
	tensors, err := f.Weights(n)
	if err != nil {
		return n, nil, fmt.Errorf("%w: %w", ErrModel, err)
	}
	own = map[string]*tensor.Tensor{}
	for _, t := range n.Tensors() {
		own[t.Name] = tensors[train.Param+t.Name]
	}
	return n, own, nil
}

// parse reads the config.json of a reward model for texts of a number of tokens.
func parse(config []byte, length int) (textclass.Network, error) {
	n, err := textclass.Read(config, 0)
	if err == nil {
		if most := n.Example(); length > most {
			return n, fmt.Errorf("%w: it has %d positions, and sequence_len is %d", ErrModel, most, length)
		}
		n, err = textclass.Read(config, length)
	}
	if err != nil {
		return n, fmt.Errorf("%w: config.json: %w", ErrModel, err)
	}
	if k := len(n.Labels()); k != 1 {
		return n, fmt.Errorf("%w: it has %d classes, and a reward model has one", ErrModel, k)
	}
	return n, nil
}

// probe is a text that tokenizers with other rules for letters, accents, spaces and digits encode to other tokens.
const probe = "Ab  CD\t\u00c9\u00e4e\u0301 \ufb01 12345\n\n it's  a b. "

// sameTokens reports why a number of tok does not stand for the same token in the reward model's tokenizer, or a text
// is other tokens there. That tokenizer may have more tokens, such as one for padding.
func sameTokens(tok, of *tokenizer.Tokenizer) error {
	a, b := tok.Vocabulary(), of.Vocabulary()
	own, others := a.Tokens, b.Tokens
	a.Tokens, b.Tokens = nil, nil
	if len(own) > len(others) {
		return fmt.Errorf("%w: its tokenizer has %d tokens, and that of the model that answers %d", ErrModel, len(others),
			len(own))
	}
	for id, t := range own {
		if others[id].Text != t.Text {
			return fmt.Errorf("%w: its tokenizer has %.40q as token %d, and that of the model that answers %.40q", ErrModel,
				others[id].Text, id, t.Text)
		}
	}
	if !reflect.DeepEqual(a, b) || !slices.Equal(tok.EncodeText(probe), of.EncodeText(probe)) {
		return fmt.Errorf("%w: its tokenizer cuts text by other rules than that of the model that answers", ErrModel)
	}
	return nil
}

// Shipped are the reward models of a job whose run has shipped the frozen tensors. config reads the file of its output
// folder with a name.
func Shipped(j *job.Job, frozen map[string]*tensor.Tensor, config func(name string) ([]byte, error)) (m Models,
	err error) {
	for k, i := range rules(j) {
		text, err := config(File(k))
		if err != nil {
			return m, err
		}
		n, err := parse(text, j.SequenceLen)
		if err != nil {
			return m, err
		}
		m.add(j, i, n)
	}
	for name, t := range frozen {
		if model.IsJudge(name) && m.Tensors != nil {
			m.Tensors[name] = t
		}
	}
	return m, nil
}

// Judges are the networks, as model.Reinforce takes them.
func (m Models) Judges() (list []model.Judge) {
	for _, n := range m.Networks {
		list = append(list, n)
	}
	return list
}

// Files are the texts of the output folder of the job's run that Shipped reads, by name.
func (m Models) Files() map[string][]byte {
	files := map[string][]byte{}
	for i, n := range m.Networks {
		files[File(i)] = n.JSON()
	}
	return files
}

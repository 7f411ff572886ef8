// Package rules makes the rule that rewards drawn answers from the keys of a job and its tokenizer, and tries it on
// the first examples. Package compute/grade applies it.
package rules

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/model/rollout"
)

// Tries is on how many examples a reward is tried.
const Tries = 8

// maker makes the rule of a job.
type maker struct {
	*job.Job
	tokenizer *tokenizer.Tokenizer
	rows      [][]int32 // first examples
}

// Make makes the rule that rewards the answers of a job with rules, as grade.Decode reads it, and tries it on rows, the
// first Tries examples at most. rule is nil where reward models alone reward answers. ends are the tokens that end an
// answer. The error is a *problem.ErrorList.
func Make(j *job.Job, t *tokenizer.Tokenizer, rows [][]int32) (rule []byte, ends []int, err error) {
	m := maker{j, t, rows}
	r := grade.Rule{Fields: j.Datasets[0].RewardFields != nil}
	if r.Ends, err = m.ends(); err != nil {
		return nil, nil, err
	}
	for i, one := range j.Reward.Rules {
		if one.Kind == spec.RewardModel {
			continue
		}
		source, err := j.RewardSource(i)
		if err != nil {
			return nil, nil, err
		}
		r.Terms = append(r.Terms, one.Term(source))
	}
	for _, id := range r.Ends {
		ends = append(ends, int(id))
	}
	if len(r.Terms) == 0 {
		return nil, ends, nil
	}
	r.Pieces, r.Lengths = grade.Vocabulary(pieces(t))
	return r.Encode(), ends, m.check(r)
}

// First are the tokens of the first examples of a corpus, each of length tokens.
func First(corpus *data.Corpus, length int) (rows [][]int32) {
	for i := range min(Tries, corpus.Train.Len()/length) {
		row := make([]int32, length)
		corpus.Train.CopyTo(row, i*length)
		rows = append(rows, row)
	}
	return rows
}

// Rewards are how the answers of a job are rewarded: by the rule that Make returns, and by reward models with
// the weights judged.
func Rewards(j *job.Job, rule []byte, ends []int, judged []float64) rollout.Reward {
	r := rollout.Reward{Exact: j.Reward.Exact, Prefix: j.Reward.Prefix, Rule: rule, Ends: ends, Judged: judged}
	for _, one := range j.Reward.Rules {
		if one.Kind != spec.RewardModel && len(judged) > 0 {
			r.Ruled += one.Weight
		}
	}
	return r
}

// check refuses a rule that cannot be computed, or fails for all examples.
func (m maker) check(r grade.Rule) error {
	g, err := grade.New(r)
	var wrong *grade.TermError
	if errors.As(err, &wrong) {
		return m.Refuse(fmt.Sprintf("reward.rules.%d", m.rule(wrong.Term)), problem.BadValue,
			"a rule of the reward cannot be computed", wrong.Err, "correct it; docs/job-file.md says what each kind takes")
	}
	if err == nil {
		_, err = g.Cost(m.Rollout.MaxTokens)
	}
	if err != nil {
		return m.Refuse("reward", problem.TooLarge, "the reward cannot be computed", err,
			"lower step_limit or rollout.max_tokens, or shorten a pattern")
	}
	return m.try(g)
}

// rule is the place in the job of the rule that a term computes.
func (m maker) rule(term int) int {
	for i, r := range m.Reward.Rules {
		if r.Kind != spec.RewardModel {
			if term == 0 {
				return i
			}
			term--
		}
	}
	return term
}

// ends finds the tokens that end an answer: that of the end of a document, special tokens in the answers of the first
// examples, with which the template of a chat ends a turn, and rollout.stop.
func (m maker) ends() (ends []uint32, err error) {
	if id, ok := m.tokenizer.EndOfText(); ok {
		ends = append(ends, id)
	}
	if stop := m.Rollout.Stop; stop != "" { // it belongs to the answer
		ids := m.tokenizer.Encode(stop)
		if len(ids) != 1 {
			return nil, m.Refuse("rollout.stop", problem.BadValue, "an answer cannot end with rollout.stop",
				fmt.Errorf("%q is %d tokens of this tokenizer, and an answer ends with one", stop, len(ids)),
				"use a text that is one token, such as a full stop or a line feed")
		}
		ends = append(ends, ids[0])
	}
	special := m.tokenizer.Vocabulary().Tokens
	for _, row := range m.rows {
		for _, id := range row {
			if int(id) < len(special) && special[id].Special && !slices.Contains(ends, uint32(id)) {
				ends = append(ends, uint32(id))
			}
		}
	}
	return ends, nil
}

// pieces are the bytes of each token. Special tokens, such as those around a message, have none.
func pieces(t *tokenizer.Tokenizer) []string {
	out := make([]string, t.VocabSize())
	for id, token := range t.Vocabulary().Tokens {
		if !token.Special {
			out[id] = t.Decode([]uint32{uint32(id)})
		}
	}
	return out
}

// try refuses a reward whose function fails for the first examples, whichever of the texts that belong to their
// prompts is the answer: it would reward nothing.
func (m maker) try(g *grade.Grader) error {
	var first error
	for _, row := range m.rows {
		for _, answer := range m.likely(row) {
			err := g.Try(row, answer)
			if err == nil {
				return nil
			}
			if first == nil {
				first = err
			}
		}
	}
	if first == nil {
		return nil
	}
	return m.Refuse("reward", problem.BadValue,
		"the function of the reward fails for every example that it was tried on", first,
		"correct it; it was tried with the completion as the answer, or with each of the fields")
}

// likely are what a function of an author can read as answers to the prompt of an example: what belongs to it, or the
// fields of that, and a number.
func (m maker) likely(row []int32) (answers [][]int32) {
	var belongs []uint32
	for _, id := range row {
		if int(id) < m.tokenizer.VocabSize() {
			belongs = append(belongs, uint32(id))
		}
	}
	texts := []string{m.tokenizer.Decode(belongs), "1"}
	var fields map[string]any
	if json.Unmarshal([]byte(texts[0]), &fields) == nil {
		for _, v := range fields {
			texts = append(texts, fmt.Sprint(v))
		}
	}
	slices.Sort(texts)
	for _, t := range texts {
		var answer []int32
		for _, id := range m.tokenizer.Encode(t) {
			answer = append(answer, int32(id))
		}
		answers = append(answers, answer)
	}
	return answers
}

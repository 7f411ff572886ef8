package prepare

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/grade"
)

// ruled makes the rule that rewards answers ready, if the job has one, and tries it on examples. The error is a
// *problem.ErrorList.
func (b *compilation) ruled() error {
	j := b.Job
	if j.Task != spec.TaskGRPO || !j.Reward.Ruled() {
		return nil
	}
	rule := grade.Rule{Fields: j.Datasets[0].RewardFields != nil}
	if err := b.answerEnds(&rule); err != nil {
		return err
	}
	for i, r := range j.Reward.Rules {
		source, err := j.RewardSource(i)
		if err != nil {
			at := fmt.Sprintf("reward.rules.%d.file", i)
			return j.Refuse(at, problem.FileNotFound, at+" cannot be read", err, "correct the path")
		}
		rule.Terms = append(rule.Terms, r.Term(source))
	}
	rule.Pieces, rule.Lengths = grade.Vocabulary(pieces(b.Tokenizer))
	g, err := grade.New(rule)
	var wrong *grade.TermError
	if errors.As(err, &wrong) {
		return j.Refuse(fmt.Sprintf("reward.rules.%d", wrong.Term), problem.BadValue,
			"a rule of the reward cannot be computed", wrong.Err, "correct it; docs/job-file.md says what each kind takes")
	}
	if err == nil {
		_, err = g.Cost(j.Rollout.MaxTokens)
	}
	if err != nil {
		return j.Refuse("reward", problem.TooLarge, "the reward cannot be computed", err,
			"lower step_limit or rollout.max_tokens, or shorten a pattern")
	}
	b.rule = rule.Encode()
	return b.tried(g)
}

// Rule is the bytes of the rule that rewards the answers of the job, as grade.Decode reads them; nil: there is none.
func (b *CompiledJob) Rule() []byte { return b.rule }

// answerEnds finds the tokens that end an answer: that of the end of a document, special tokens in the answers of the
// first examples, with which the template of a chat ends a turn, and rollout.stop.
func (b *compilation) answerEnds(rule *grade.Rule) error {
	j := b.Job
	if id, ok := b.Tokenizer.EndOfText(); ok {
		rule.Ends = append(rule.Ends, id)
	}
	if stop := j.Rollout.Stop; stop != "" { // it belongs to the answer
		ids := b.Tokenizer.Encode(stop)
		if len(ids) != 1 {
			return j.Refuse("rollout.stop", problem.BadValue, "an answer cannot end with rollout.stop",
				fmt.Errorf("%q is %d tokens of this tokenizer, and an answer ends with one", stop, len(ids)),
				"use a text that is one token, such as a full stop or a line feed")
		}
		rule.Ends = append(rule.Ends, ids[0])
	}
	special := b.Tokenizer.Vocabulary().Tokens
	for _, row := range b.firstRows() {
		for _, id := range row {
			if int(id) < len(special) && special[id].Special && !slices.Contains(rule.Ends, uint32(id)) {
				rule.Ends = append(rule.Ends, uint32(id))
			}
		}
	}
	b.ends = nil
	for _, id := range rule.Ends {
		b.ends = append(b.ends, int(id))
	}
	return nil
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

// tries is on how many examples a reward is tried.
const tries = 8

// firstRows are the tokens of the first examples.
func (b *compilation) firstRows() (rows [][]int32) {
	for i := range min(tries, b.Corpus.Train.Len()/b.Example) {
		row := make([]int32, b.Example)
		for k := range row {
			row[k] = int32(b.Corpus.Train.At(i*b.Example + k))
		}
		rows = append(rows, row)
	}
	return rows
}

// tried refuses a reward whose function fails for the first examples, whichever of the texts that belong to their
// prompts is the answer: it would reward nothing.
func (b *compilation) tried(g *grade.Grader) error {
	var first error
	for _, row := range b.firstRows() {
		for _, answer := range b.likely(row) {
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
	return b.Job.Refuse("reward", problem.BadValue,
		"the function of the reward fails for every example that it was tried on", first,
		"correct it; it was tried with the completion as the answer, or with each of the fields")
}

// likely are what a function of an author can read as answers to the prompt of an example: what belongs to it, or the
// fields of that, and a number.
func (b *compilation) likely(row []int32) (answers [][]int32) {
	var belongs []uint32
	for _, id := range row {
		if int(id) < b.Tokenizer.VocabSize() {
			belongs = append(belongs, uint32(id))
		}
	}
	texts := []string{b.Tokenizer.Decode(belongs), "1"}
	var fields map[string]any
	if json.Unmarshal([]byte(texts[0]), &fields) == nil {
		for _, v := range fields {
			texts = append(texts, fmt.Sprint(v))
		}
	}
	slices.Sort(texts)
	for _, t := range texts {
		var answer []int32
		for _, id := range b.Tokenizer.Encode(t) {
			answer = append(answer, int32(id))
		}
		answers = append(answers, answer)
	}
	return answers
}

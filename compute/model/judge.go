package model

import (
	"fmt"
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/rollout"
)

// Judge is a reward model: a classifier of texts with one class, whose score rewards a text.
type Judge interface {
	Classifier
	Language() architecture.Config // the language model under its linear layer
	Pad() int                      // the token that fills up texts
}

// JudgePrefix begins the names of the frozen tensors of reward model i of a task.
func JudgePrefix(i int) string { return fmt.Sprintf("reward/%d/", i) }

// IsJudge reports whether a tensor belongs to a reward model.
func IsJudge(name string) bool { return strings.HasPrefix(name, "reward/") }

// checkJudges refuses reward models that cannot score the answers to a batch.
func checkJudges(judges []Judge, b Batch, r Rollout) error {
	if len(judges) != len(r.Reward.Judged) {
		return fmt.Errorf("%w: %d reward models with %d weights", ErrStep, len(judges), len(r.Reward.Judged))
	}
	for i, j := range judges {
		if _, adapted := j.Language().LoRA(); adapted || j.Example() != b.Length || len(j.Frozen()) > 0 {
			return fmt.Errorf("%w: reward model %d with an adapter, or for texts of %d tokens, not %d", ErrStep, i,
				j.Example(), b.Length)
		}
	}
	return nil
}

// judgeTensors are the tensors of reward models, by their names in a task.
func judgeTensors(judges []Judge) (frozen []architecture.Named) {
	for i, j := range judges {
		for _, n := range j.Tensors() {
			n.Name = JudgePrefix(i) + n.Name
			frozen = append(frozen, n)
		}
	}
	return frozen
}

// judgeOf are the weights of reward model i: all in float32, and nothing of it is dropped.
func judgeOf(w weights, i int) weights {
	nodes := map[string]*graph.Node{}
	for name, node := range w.Nodes {
		if of, ok := strings.CutPrefix(name, JudgePrefix(i)); ok {
			nodes[of] = node
		}
	}
	return weights{Nodes: nodes}
}

// scored are the scores that each reward model gives to answers [n*group, tokens] with their prompts: [n*group].
func (p policy) scored(w weights, prompts rollout.Prompts, answers *graph.Node) (scores []*graph.Node) {
	for i, j := range p.judges {
		texts := prompts.Texts(answers, p.r.Reward.Counted(prompts, answers), j.Pad())
		if most := j.Language().VocabSize(); p.c.VocabSize() > most { // a token that no tokenizer makes
			texts = graph.MinScalar(texts, max(most-1, j.Pad()))
		}
		scores = append(scores, flat(j.Scores(Parameters{judgeOf(w, i)}, texts)))
	}
	return scores
}

// Package answers draws answers as the training of a job does: those of the first step of a round, with their rewards,
// from the checkpoint that the round begins with. It is for people: the training draws them by itself.
package answers

import (
	"fmt"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/prepare"
)

// Groups are those of the first step of a unit.
type Groups []Group

// Group is a prompt with its answers.
type Group struct {
	Prompt  string
	Texts   []string // up to their ends
	Rewards []float64
}

// Equal is the share of groups in which all answers have the same reward: the training learns nothing from them.
func (a Groups) Equal() float64 {
	n := 0
	for _, g := range a {
		same := true
		for _, r := range g.Rewards {
			same = same && r == g.Rewards[0]
		}
		if same {
			n++
		}
	}
	return float64(n) / float64(max(1, len(a)))
}

// Names of the outputs of the program.
const (
	answersName = "answers"
	rewardName  = "reward"
)

// programOf is the part of a step that draws and rewards answers; nil if no rule rewards them.
func programOf(step *program.Program) *program.Program {
	for i := range step.Ops {
		if op := &step.Ops[i]; op.Kind == program.Grade {
			p := &program.Program{Numerics: step.Numerics, Ops: step.Ops, Outputs: []program.Output{
				{Name: answersName, Value: op.In[1]}, {Name: rewardName, Value: int32(i)}}}
			return p.Only(answersName, rewardName)
		}
	}
	return nil
}

// Of draws the answers that the first unit of a round draws in its first step, if it begins with a checkpoint, on a
// number of threads. There are none if no rule rewards the answers of the job.
func Of(b *prepare.CompiledJob, ckpt *train.Checkpoint, round uint32, threads int) (Groups, error) {
	p := programOf(b.Step)
	if p == nil {
		return nil, nil
	}
	x, err := cpu.Compile(p, threads)
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	spec, unit := b.Spec, uint32(0)
	if b.Spec.Rollout != nil { // another draws them
		unit = b.Spec.Apart().Drawn(0, 0)
		spec = b.Spec.Of(unit)
	}
	rows := make([]int32, int(b.Spec.Batch)*(int(b.Spec.Length)+1))
	if err := b.Corpus.Batch(rows, spec.Address(round, unit, 0), int(b.Spec.Length)); err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	defer ckpt.Rest()
	all := b.EvalInputs(ckpt)
	all["tokens"] = tensor.FromI32(rows, int(b.Spec.Batch), int(b.Spec.Length)+1)
	all["dice"] = spec.Dice(round, unit, 0)
	in := map[string]*tensor.Tensor{}
	for name := range p.InputShapes() {
		in[name] = all[name]
	}
	out, err := x.Run(in)
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	return read(b, rows, out[answersName], out[rewardName])
}

// read takes the tokens of answers to texts.
func read(b *prepare.CompiledJob, rows []int32, answers, rewards *tensor.Tensor) (a Groups, err error) {
	rule, err := grade.Decode(b.Rule())
	if err != nil {
		return a, fmt.Errorf("answers: %w", err)
	}
	n, each, width := int(b.Spec.Batch), answers.Shape.Dims[1], int(b.Spec.Length)+1
	group := answers.Shape.Dims[0] / n
	for i := range n {
		g := Group{Prompt: promptOf(b.Tokenizer, rows[i*width:][:width-1])}
		for k := i * group; k < (i+1)*group; k++ {
			g.Texts = append(g.Texts, rule.Answer(answers.I32()[k*each:(k+1)*each]))
			g.Rewards = append(g.Rewards, float64(rewards.F32()[k]))
		}
		a = append(a, g)
	}
	return a, nil
}

// promptOf is the text before the tokens that are not silent.
func promptOf(t *tokenizer.Tokenizer, row []int32) string {
	var ids []uint32
	for _, id := range row {
		if int(id) < t.VocabSize() {
			break
		}
		ids = append(ids, uint32(int(id)-t.VocabSize()))
	}
	return t.Decode(ids)
}

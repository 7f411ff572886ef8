// Package answers draws answers as the training of a job does: those of the first step of a round, with their rewards,
// from the checkpoint that the round begins with. It is for people: the training draws them by itself.
package answers

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/prepare"
)

// Groups are those of the first step of a unit.
type Groups []Group

// Group is a prompt with its answers, or texts of another stage of a game.
type Group struct {
	Prompt  string
	Stage   int      // of the game
	Texts   []string // up to their ends
	Rewards []float64
	Lengths []int // tokens of the answers that count

	divergence float64 // from the reference model, of all these tokens
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

// Drawn reports whether a measurement is one of drawn answers, of those that Measured returns.
func Drawn(name string) bool {
	return slices.Contains([]string{"equal_groups", "drawn_reward", "answer_length", "kl", "staleness",
		resolveReward}, name)
}

// resolveReward is the mean reward of the drawn final answers of a game. It is also that of the critiques.
const resolveReward = "drawn_resolve_reward"

// Stages are the groups of each stage of a game: all of them, where there is none.
func (a Groups) Stages() (list []Groups) {
	for _, g := range a {
		for len(list) <= g.Stage {
			list = append(list, nil)
		}
		list[g.Stage] = append(list[g.Stage], g)
	}
	return list
}

// Measured are the measurements of drawn answers, by the names of metrics. Those of a game are of its first stage, with
// the reward of the last one.
func (a Groups) Measured(job *prepare.CompiledJob, round uint32) map[string]float64 {
	stages := a.Stages()
	if len(stages) < 2 {
		return a.measured(job, round)
	}
	m := stages[0].measured(job, round)
	m[resolveReward] = stages[len(stages)-1].measured(job, round)["drawn_reward"]
	return m
}

// measured are the measurements of the texts of one stage.
func (a Groups) measured(job *prepare.CompiledJob, round uint32) map[string]float64 {
	var answers, reward, tokens, divergence float64
	for _, g := range a {
		for i, r := range g.Rewards {
			answers, reward, tokens = answers+1, reward+r, tokens+float64(g.Lengths[i])
		}
		divergence += g.divergence
	}
	m := map[string]float64{"equal_groups": a.Equal(), "drawn_reward": reward / max(1, answers),
		"answer_length": tokens / max(1, answers)}
	if job.Job.Rollout.KL > 0 {
		m["kl"] = divergence / max(1, tokens)
	}
	if s := job.Job.Rollout.Staleness; s > 0 {
		m["staleness"] = float64(round - job.Spec.Apart().Policy(round))
	}
	return m
}

// Of draws the answers that the first unit of a round draws in its first step, if it begins with a checkpoint, on a
// number of threads: of a swarm, those of each unit. There are none if the job draws no answers.
func Of(b *prepare.CompiledJob, ckpt *train.Checkpoint, round uint32, threads int) (all Groups, err error) {
	p, err := b.Drawn()
	if p == nil || err != nil {
		return nil, err
	}
	x, err := cpu.Compile(p, threads)
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	for unit := range max(1, b.Spec.Exchange.Policies) {
		a, err := drawnBy(b, p, x, ckpt, round, unit)
		if err != nil {
			return nil, err
		}
		all = append(all, a...)
	}
	return all, nil
}

// drawnBy are the answers to the prompts of the first step of a unit.
func drawnBy(b *prepare.CompiledJob, p *program.Program, x *cpu.Exec, ckpt *train.Checkpoint, round,
	unit uint32) (Groups, error) {
	spec := b.Spec
	ckpt = train.ModelOf(spec, ckpt, unit)
	if b.Spec.Rollout != nil { // another draws them
		unit = b.Spec.Apart().Drawn(unit, 0)
		spec = b.Spec.Of(unit)
	}
	rows := make([]int32, int(b.Spec.Batch)*(int(b.Spec.Length)+1))
	if err := b.Corpus.Batch(rows, spec.Address(round, unit, 0), int(b.Spec.Length)); err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	defer ckpt.Rest()
	all := b.EvalInputs(ckpt)
	all["tokens"] = tensor.FromI32(rows, int(b.Spec.Batch), int(b.Spec.Length)+1)
	all[model.Dice] = spec.Dice(round, unit, 0)
	in := map[string]*tensor.Tensor{}
	for name := range p.InputShapes() {
		in[name] = all[name]
	}
	out, err := x.Run(in)
	if err != nil {
		return nil, fmt.Errorf("answers: %w", err)
	}
	return read(b, rows, out), nil
}

// read takes the tokens of answers to texts.
func read(b *prepare.CompiledJob, rows []int32, out map[string]*tensor.Tensor) (a Groups) {
	answers, counted := out[model.DrawnAnswers], out[model.DrawnCounted].F32()
	n, each, width := int(b.Spec.Batch), answers.Shape.Dims[1], int(b.Spec.Length)+1
	stages := b.Job.Rollout.Stages
	group, tokens := answers.Shape.Dims[0]/n/stages, b.Tokenizer.Vocabulary().Tokens
	for i := range n * stages {
		g := Group{Prompt: promptOf(b.Tokenizer, rows[i%n*width:][:width-1]), Stage: i / n}
		for k := i * group; k < (i+1)*group; k++ {
			var said []uint32
			length := 0
			for at, id := range answers.I32()[k*each : (k+1)*each] {
				if counted[k*each+at] > 0 {
					length++
					if int(id) < len(tokens) && !tokens[id].Special {
						said = append(said, uint32(id))
					}
				}
				if d := out[model.DrawnDivergence]; d != nil {
					g.divergence += float64(d.F32()[k*each+at])
				}
			}
			g.Texts, g.Lengths = append(g.Texts, b.Tokenizer.Decode(said)), append(g.Lengths, length)
			g.Rewards = append(g.Rewards, float64(out[model.DrawnRewards].F32()[k]))
		}
		a = append(a, g)
	}
	return a
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

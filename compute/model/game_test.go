package model

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/modeltest"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/internal/oracle"
)

// games are prompts of 2 to 4 tokens, in sequences with room for the texts of three stages.
func games(c architecture.Config, n int) (batch *tensor.Tensor, b Batch) {
	narrow, b := questions(c, n)
	from := b.Length + 1
	b.Length = 4 + playedBy(drawnFrom, 3).Room()
	batch = tensor.New(tensor.Make(tensor.Int32, n, b.Length+1))
	for i := range batch.I32() {
		batch.I32()[i] = int32(b.Silent)
		if at := i % (b.Length + 1); at < from {
			batch.I32()[i] = narrow.I32()[i/(b.Length+1)*from+at]
		}
	}
	return batch, b
}

// players are models that see a whole game.
func players(t *testing.T) map[string]architecture.Config {
	const positions = 24
	llama := modeltest.With(modeltest.Llama(), "max_position_embeddings", positions)
	return map[string]architecture.Config{
		"gpt2":       mustParse(t, architecture.GPT2, modeltest.With(modeltest.GPT2(), "n_positions", positions)),
		"llama":      mustParse(t, architecture.Llama, llama),
		"llama-tied": mustParse(t, architecture.Llama, modeltest.With(llama, "tie_word_embeddings", true)),
	}
}

// playedBy are games of two or three stages, in which two texts are read.
func playedBy(r Rollout, stages int) Rollout {
	r.Stages, r.Reads = stages, 2
	return r
}

// turn is a text of a game of plain loops.
type turn struct {
	read, said        []int32
	reward, advantage float64
	length            int // tokens that count
}

// turnsOf plays the games of a batch with plain loops in float64, or those about given answers: the turns of each
// stage.
func turnsOf(c architecture.Config, w state, batch *tensor.Tensor, b Batch, r Rollout, given ...[]int32) [][]turn {
	stages := make([][]turn, r.Stages)
	ended := func(text []int32) []int32 {
		text = slices.Clone(text)
		for at, ends := 0, r.Reward.Ends; len(ends) > 0 && at < len(text)-1; at++ {
			if text[at] == int32(ends[0]) {
				text[at+1] = text[at]
			}
		}
		return text
	}
	for i := range b.Sequences {
		row := batch.I32()[i*(b.Length+1):][:b.Length]
		from := slices.IndexFunc(row, func(id int32) bool { return id < int32(b.Silent) })
		var prompt, answer []int32
		for at, id := range row {
			switch {
			case at < from:
				prompt = append(prompt, id-int32(b.Silent))
			case id < int32(b.Silent):
				answer = append(answer, id)
			}
		}
		for stage := range stages {
			for player := range r.Group {
				var read []int32
				for _, earlier := range stages[:stage] {
					for k := range r.Reads {
						read = append(read, ended(earlier[i*r.Group+(player+k)%r.Group].said)...)
					}
				}
				t := turn{read: append(read, prompt...)}
				if stage == 0 && given != nil {
					t.said = given[i*r.Group+player]
				}
				for at := len(t.said); at < r.Tokens; at++ {
					logits := (reference{c, w}).logits(append(slices.Clone(t.read), t.said...))
					scores, top := logits[len(logits)-1], 0
					noise := gumbel(stage*r.Tokens+at, (i*r.Group+player)*c.VocabSize(), c.VocabSize())
					for k := range scores {
						if scores[k] = scores[k]/r.Temperature + noise[k]; scores[k] > scores[top] {
							top = k
						}
					}
					t.said = append(t.said, int32(top))
				}
				t.reward, t.length = rewardOf(r, row, t.said, answer), lengthOf(r, t.said, answer)
				stages[stage] = append(stages[stage], t)
			}
		}
		final := stages[r.Stages-1][i*r.Group:]
		for stage, turns := range stages {
			turns = turns[i*r.Group:]
			for player := range turns {
				if t := &turns[player]; stage > 0 && stage < r.Stages-1 {
					t.reward, t.length = 0, r.Tokens
					if len(r.Reward.Ends) > 0 {
						t.length = lengthOf(r, t.said, answer)
					}
					for k := range r.Reads {
						t.reward += final[(player+r.Group-k)%r.Group].reward / float64(r.Reads)
					}
				}
			}
			mean, square := 0., 0.
			for _, t := range turns {
				mean += t.reward / float64(r.Group)
			}
			for _, t := range turns {
				square += (t.reward - mean) * (t.reward - mean) / float64(r.Group)
			}
			for k := range turns {
				turns[k].advantage = (turns[k].reward - mean) / (math.Sqrt(square) + 1e-4)
			}
		}
	}
	return stages
}

// A step plays the games that plain loops play, and its gradient is that of the cross-entropy of the texts of all
// stages, weighted by their advantages among the texts of their stage.
func TestGamesMatchReference(t *testing.T) {
	for name, r := range map[string]Rollout{"gpt2": playedBy(drawnFrom, 3), "llama-tied": playedBy(ruled(t), 3),
		"llama": playedBy(drawnFrom, 2)} {
		c := players(t)[name]
		batch, b := games(c, 4)
		task, err := Reinforce(c, b, r)
		mustTask(t, task, err)
		w := strongWeights(c.Tensors())
		want := turnsOf(c, w, batch, b, r)
		in := rolledInputs(task, w, batch, optimizer.AdamW{Eps: 1e-8}, 0)

		p, err := task.Drawn()
		drawn := mustRun(t, mustCompile(t, p, err), inputsOf(p, in))
		rows := b.Sequences * r.Group
		counted := 0
		for stage, turns := range want {
			for i, turn := range turns {
				at := stage*rows + i
				said := drawn[DrawnAnswers].I32()[at*r.Tokens:][:r.Tokens]
				if !slices.Equal(said, turn.said) {
					t.Fatalf("%s: text %d of stage %d is %v, want %v", name, i, stage, said, turn.said)
				}
				checkNear(t, fmt.Sprintf("%s: reward %d of stage %d", name, i, stage),
					float64(drawn[DrawnRewards].F32()[at]), turn.reward, 1e-6)
				length := 0
				for _, x := range drawn[DrawnCounted].F32()[at*r.Tokens:][:r.Tokens] {
					length += int(x)
				}
				if length != turn.length {
					t.Fatalf("%s: of text %d of stage %d, %d tokens count, want %d", name, i, stage, length, turn.length)
				}
				counted += length
			}
		}

		p, err = task.TrainStep(optimizer.AdamW{Eps: 1e-8})
		out := mustRun(t, mustCompile(t, p, err), in)
		mean := 0.
		for _, turn := range want[0] {
			mean += turn.reward / float64(rows)
		}
		checkNear(t, name+" loss", scalar(out["loss"]), 1-mean, 1e-6)
		checkSlopes(t, name, c, w, task, out, want, r, counted)
		p, err = task.Eval()
		measured := mustRun(t, mustCompile(t, p, err), evalInputs(task, in))
		if x := scalar(measured["resolve_reward"]); x < -1 || x > 1 {
			t.Errorf("%s: the reward of final answers is %v", name, x)
		}
	}
}

// checkSlopes compares gradients with slopes of the cross-entropy of the texts of all stages, by advantage, of counted
// tokens.
func checkSlopes(t *testing.T, name string, c architecture.Config, w state, task Task, out state, stages [][]turn,
	r Rollout, counted int) {
	t.Helper()
	surrogate := func() (sum float64) {
		for _, turn := range slices.Concat(stages...) {
			for at, each := range scoresOf(c, w, turn, r)[:turn.length] {
				sum += turn.advantage * crossEntropyOf(each, turn.said[at]) / float64(counted)
			}
		}
		return sum
	}
	for _, n := range task.Trained {
		grad, data := out["m/"+n.Name].F32(), w[n.Name].F32()
		at, h := 7%len(grad), float32(1e-2)
		saved := data[at]
		data[at] = saved + h
		up := surrogate()
		data[at] = saved - h
		slope := (up - surrogate()) / (2 * float64(h))
		data[at] = saved
		checkNear(t, fmt.Sprintf("%s: gradient %d of %s", name, at, n.Name), float64(grad[at]), slope,
			3e-4+0.02*math.Abs(slope))
	}
}

// scoresOf are the logits, divided by the temperature, of each token of a text.
func scoresOf(c architecture.Config, w state, of turn, r Rollout) []oracle.Vector {
	text := append(slices.Clone(of.read), of.said...)
	all := (reference{c, w}).logits(text[:len(text)-1])[len(of.read)-1:]
	for _, scores := range all {
		for k := range scores {
			scores[k] /= r.Temperature
		}
	}
	return all
}

// A unit that learns plays the games that plain loops play about answers of another model: about the group with a
// signal, and its gradient is that of these answers and of the texts that it draws after them.
func TestGamesAcrossMatchReference(t *testing.T) {
	for name, r := range map[string]Rollout{"gpt2": playedBy(drawnFrom, 3), "llama-tied": playedBy(ruled(t), 3),
		"llama": playedBy(drawnFrom, 2)} {
		c := players(t)[name]
		r.Apart, r.Others, r.Shared, r.Across = 1, 1, 1, true
		batch, b := games(c, 2)
		task, err := Reinforce(c, b, r)
		mustTask(t, task, err)
		p, err := task.TrainStep(optimizer.AdamW{Eps: 1e-8})
		w, from := strongWeights(c.Tensors()), b.Sequences*r.Group
		in := rolledInputs(task, w, batch, optimizer.AdamW{Eps: 1e-8}, 0)
		answers := someTokens(c, from, r.Tokens, 3)
		rewards, group := make([]float32, from), r.Group // of the group 1 alone
		for i := group; i < 2*group; i++ {
			rewards[i] = float32(i - group)
		}
		row := batch.I32()[b.Length+1:]
		var said [][]int32
		for texts := range slices.Chunk(answers.I32()[group*r.Tokens:], r.Tokens) {
			said = append(said, texts)
		}
		one := b
		one.Sequences = 1
		want := turnsOf(c, w, tensor.FromI32(row, 1, b.Length+1), one, r, said...)
		counted, scores := 0, make([]float32, from*r.Tokens)
		for i := range want[0] {
			t := &want[0][i]
			t.advantage = (float64(i) - 1) / (math.Sqrt(2./3) + 1e-4)
			for at, each := range scoresOf(c, w, *t, r) {
				scores[(group+i)*r.Tokens+at] = float32(crossEntropyOf(each, t.said[at]))
			}
		}
		for _, turn := range slices.Concat(want...) {
			counted += turn.length
		}
		shaped := func(x []float32) *tensor.Tensor { return tensor.FromF32(x, b.Sequences, group, r.Tokens) }
		in["q/0/answers"] = tensor.New(tensor.Make(tensor.Int32, b.Sequences, group, r.Tokens)) // without a signal
		in["q/0/reward"] = tensor.New(tensor.Make(tensor.Float32, b.Sequences, group))
		in["q/0/scores"], in["q/0/rows"], in["q/1/rows"] = shaped(make([]float32, len(scores))), batch, batch
		in["q/1/answers"] = tensor.FromI32(answers.I32(), b.Sequences, group, r.Tokens)
		in["q/1/reward"], in["q/1/scores"] = tensor.FromF32(rewards, b.Sequences, group), shaped(scores)
		for i := range from {
			own := batch.I32()[i/group*(b.Length+1):][:b.Length]
			var answer []int32
			for _, id := range own {
				if id < int32(b.Silent) {
					answer = append(answer, id)
				}
			}
			counted += lengthOf(r, make([]int32, r.Tokens), answer)
		}
		p = parts.Learning(p)
		out := mustRun(t, mustCompile(t, p, err), inputsOf(p, in))
		checkNear(t, name+" loss", scalar(out["loss"]), 1, 1e-6)
		checkSlopes(t, name, c, w, task, out, want, r, counted)
	}
}

// inputsOf are those that a program reads.
func inputsOf(p *program.Program, all state) state {
	in := state{}
	for name := range p.InputShapes() {
		in[name] = all[name]
	}
	return in
}

// The logits that texts of each stage are drawn from have the bits of those that the loss computes.
func TestDrawnLogitsOfGamesAreThoseOfTheLoss(t *testing.T) {
	for name, c := range players(t) {
		batch, b := games(c, 3)
		r := playedBy(drawnFrom, 3)
		task, err := Reinforce(c, b, r)
		mustTask(t, task, err)
		w := strongWeights(c.Tensors())
		p := policy{c: c, r: r, width: b.Length - r.Room(), silent: b.Silent}
		builder := program.NewBuilder()
		var names []string
		values, err := record.Record(builder, func(g *graph.Graph) (all []*graph.Node) {
			examples := parameters(g, "", task.Batch)[0]
			w, _ := task.inputs(g)
			w.Dice = &record.Dice{Key: graph.Parameter(g, Dice, shapes.Make(dtypes.Int64, 3))}
			_, take := p.drawing(w)
			for i, s := range p.play(w, examples, nil, take) {
				logits := s.logits
				for k := range logits {
					logits[k] = graph.InsertAxes(logits[k], 1)
				}
				tokens, padding := rollout.Rows(s.prompts.Tokens, s.prompts.Padding, r.Group)
				whole := p.scores(w, tokens, padding, s.texts)
				all = append(all, graph.Reshape(graph.Concatenate(logits, 1), dims(whole)...), whole)
				names = append(names, fmt.Sprint("drawn", i), fmt.Sprint("whole", i))
			}
			return all
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range names {
			builder.Output(n, values[i])
		}
		program, err := builder.Finish()
		in := rolledInputs(task, w, batch, optimizer.AdamW{Eps: 1e-8}, 0)
		out := mustRun(t, mustCompile(t, program, err), inputsOf(program, in))
		for i := 0; i < len(names); i += 2 {
			for k, x := range out[names[i]].F32() {
				if y := out[names[i+1]].F32()[k]; math.Float32bits(x) != math.Float32bits(y) {
					t.Fatalf("%s, stage %d: logit %d is %v when drawn, and %v in the loss", name, i/2, k, x, y)
				}
			}
		}
	}
}

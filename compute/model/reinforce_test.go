package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/internal/oracle"
)

var (
	drawnFrom = Rollout{Group: 3, Tokens: 3, Temperature: 0.8, Reward: rollout.Reward{Exact: 1, Prefix: 2}}
	testDice  = [3]int64{5, 7, 11}
)

// questions are prompts of 2 to 4 tokens with answers of 1 to 3, filled up to 7 tokens.
func questions(c architecture.Config, n int) (batch *tensor.Tensor, b Batch) {
	b = Batch{Sequences: n, Length: 7, Silent: c.VocabSize()}
	batch = someTokens(c, n, b.Length+1, 5)
	for i, ids := 0, batch.I32(); i < len(ids); i++ {
		row, at := i/(b.Length+1), i%(b.Length+1)
		if prompt := 2 + row%3; at < prompt || at >= prompt+1+row%2+row%3/2 {
			ids[i] += int32(b.Silent)
		}
	}
	return batch, b
}

// reinforced are models that are trained whole, and one with an adapter and one that sees through a window.
func reinforced(t *testing.T) map[string]architecture.Config {
	all := tiny(t)
	return map[string]architecture.Config{"gpt2": all["gpt2"], "llama-tied": all["llama-tied"],
		"llama-lora": adaptedModels(t)["llama-lora"]}
}

// rolled is what the plain loops of the reference draw and gain from a batch.
type rolled struct {
	answers          [][]int32 // of each prompt and each of its group
	advantages       []float64
	lengths          []int // of the answers: tokens that count
	counted          int
	reward           float64 // mean
	accuracy, greedy float64 // of the answers that are most likely: right ones, and the mean reward
	prompts          [][]int32
}

// roll draws answers with plain loops in float64, from the logits of the reference.
func roll(c architecture.Config, w state, batch *tensor.Tensor, b Batch, r Rollout) (out rolled) {
	n := b.Sequences
	for i := range n {
		var prompt, answer []int32
		row := batch.I32()[i*(b.Length+1):][:b.Length]
		for _, id := range row {
			if id < int32(b.Silent) {
				answer = append(answer, id)
			} else if len(answer) == 0 {
				prompt = append(prompt, id-int32(b.Silent))
			}
		}
		out.prompts = append(out.prompts, prompt)
		best := func(text []int32, noise []float64) int32 {
			logits, top := (reference{c, w}).logits(text), 0
			scores := logits[len(logits)-1]
			nucleus := nucleusOf(scores, r)
			for k := range scores {
				if noise != nil {
					scores[k] = scores[k]/r.Temperature + noise[k]
				}
				if !nucleus[k] {
					scores[k] = math.Inf(-1)
				}
				if scores[k] > scores[top] {
					top = k
				}
			}
			return int32(top)
		}
		var rewards []float64
		for g := range r.Group {
			var said []int32
			for at := range r.Tokens {
				said = append(said, best(append(append([]int32{}, prompt...), said...),
					gumbel(at, (i*r.Group+g)*c.VocabSize(), c.VocabSize())))
			}
			out.answers = append(out.answers, said)
			rewards = append(rewards, rewardOf(r, row, said, answer))
			out.lengths = append(out.lengths, lengthOf(r, said, answer))
			out.counted += out.lengths[len(out.lengths)-1]
		}
		mean, square := 0., 0.
		for _, x := range rewards {
			mean += x / float64(r.Group)
		}
		for _, x := range rewards {
			square += (x - mean) * (x - mean) / float64(r.Group)
		}
		for _, x := range rewards {
			out.advantages = append(out.advantages, (x-mean)/(math.Sqrt(square)+1e-4))
		}
		out.reward += mean / float64(n)
		var said []int32
		for range r.Tokens {
			said = append(said, best(append(append([]int32{}, prompt...), said...), nil))
		}
		gained := rewardOf(r, row, said, answer)
		out.greedy += gained / float64(n)
		if gained >= 1 {
			out.accuracy += 1 / float64(n)
		}
	}
	return out
}

// nucleusOf are the most probable tokens that have r.TopP of the probability together.
func nucleusOf(logits []float64, r Rollout) []bool {
	in, sum := make([]bool, len(logits)), 0.
	probability := func(k int) float64 { return math.Exp(logits[k] / r.Temperature) }
	for k := range logits {
		sum += probability(k)
	}
	for has := 0.; r.TopP > 0 && has < r.TopP*sum; {
		best := -1
		for k := range logits {
			if !in[k] && (best < 0 || logits[k] > logits[best]) {
				best = k
			}
		}
		in[best], has = true, has+probability(best)
	}
	for k := range in {
		in[k] = in[k] || r.TopP == 0
	}
	return in
}

// gumbel is n elements of the noise of a site, from one on.
func gumbel(site, from, n int) (out []float64) {
	for i := from; i < from+n; i++ {
		word := philox.Block(uint64(testDice[0]), uint64(testDice[1])+uint64(site), uint64(testDice[2])+uint64(i/4))[i%4]
		out = append(out, -math.Log(-math.Log((float64(word)+0.5)/(1<<32))))
	}
	return out
}

// ruled rewards answers of letters by a rule, up to the letter c.
func ruled(t *testing.T) Rollout {
	r := drawnFrom
	rule := grade.Rule{Ends: []uint32{2}, Terms: []grade.Term{{Kind: grade.Prefix, Key: grade.Completion, Weight: 1},
		{Kind: grade.Starlark, Weight: 2, Steps: 1000, Source: "def reward(prompt, answer, fields):\n" +
			"  return answer.count('a') + (answer in prompt) - len(fields['completion']) / 8"}}}
	rule.Pieces, rule.Lengths = grade.Vocabulary(strings.Split("abcdefghijk", ""))
	if _, err := grade.New(rule); err != nil {
		t.Fatal(err)
	}
	r.Reward = rollout.Reward{Rule: rule.Encode(), Ends: []int{2}}
	return r
}

// lengthOf is how many tokens of an answer count.
func lengthOf(r Rollout, said, answer []int32) int {
	if r.Reward.Rule == nil {
		return len(answer)
	}
	return min(slices.Index(append(slices.Clone(said), int32(r.Reward.Ends[0])), int32(r.Reward.Ends[0]))+1, len(said))
}

func rewardOf(r Rollout, row, said, answer []int32) float64 {
	if r.Reward.Rule != nil {
		g, _ := grade.Decode(r.Reward.Rule)
		return float64(g.Reward(row, said))
	}
	n, w := 0, r.Reward
	for n < len(answer) && said[n] == answer[n] {
		n++
	}
	exact := 0.
	if n == len(answer) {
		exact = 1
	}
	return (w.Exact*exact + w.Prefix*float64(n)/float64(len(answer))) / (w.Exact + w.Prefix)
}

// rolledInputs are those of a step that draws.
func rolledInputs(task Task, w state, batch *tensor.Tensor, o optimizer.AdamW, lr float64) state {
	in := taskInputs(task, w, state{"tokens": batch}, o, lr)
	in[Dice] = tensor.New(tensor.Make(tensor.Int64, 3))
	copy(tensor.As[int64](in[Dice].Bytes()), testDice[:])
	return in
}

// A step draws the answers that plain loops draw, its loss is what these miss, and its gradient is that of their
// cross-entropy, weighted by their advantages.
func TestReinforceMatchesReference(t *testing.T) {
	const n = 5
	held := drawnFrom
	held.KL = 0.5
	truncated := held
	truncated.TopP = 0.6
	for name, r := range map[string]Rollout{"gpt2": drawnFrom, "llama-tied": drawnFrom, "gpt2 held": held,
		"gpt2 ruled": ruled(t), "llama-tied truncated": truncated} {
		architecture, how, _ := strings.Cut(name, " ")
		if how == "" && !*long {
			continue
		}
		c := tiny(t)[architecture]
		batch, b := questions(c, n)
		task, err := Reinforce(c, b, r)
		mustTask(t, task, err)
		w := strongWeights(c.Tensors())
		before := state{}
		for _, x := range task.Frozen { // another model
			x.Name = strings.TrimPrefix(x.Name, Reference)
			before[x.Name] = w[x.Name].Clone()
			for i, v := range before[x.Name].F32() {
				before[x.Name].F32()[i] = 0.9 * v
			}
		}
		want := roll(c, w, batch, b, r)
		in := rolledInputs(task, w, batch, optimizer.AdamW{Eps: 1e-8}, 0)
		for x, v := range before {
			in[train.Param+Reference+x] = v
		}
		p, err := task.TrainStep(optimizer.AdamW{Eps: 1e-8})
		out := mustRun(t, mustCompile(t, p, err), in)
		checkNear(t, name+" loss", scalar(out["loss"]), 1-want.reward, 1e-6)
		p, err = task.Eval()
		measured := mustRun(t, mustCompile(t, p, err), evalInputs(task, in))
		checkNear(t, name+" greedy loss", scalar(measured["loss"]), 1-want.greedy, 1e-6)
		checkNear(t, name+" reward", scalar(measured["reward"]), want.greedy, 1e-6)
		checkNear(t, name+" accuracy", scalar(measured["accuracy"]), want.accuracy, 1e-6)

		nuclei := map[[2]int][]bool{}
		surrogate := func() (sum float64) {
			for i, said := range want.answers {
				prompt := want.prompts[i/drawnFrom.Group]
				text := append(append([]int32{}, prompt...), said...)
				logits := (reference{c, w}).logits(text[:len(text)-1])
				var others []oracle.Vector
				if r.KL > 0 {
					others = (reference{c, before}).logits(text[:len(text)-1])
				}
				for at := range want.lengths[i] {
					scores := logits[len(prompt)-1+at]
					nucleus := nuclei[[2]int{i, at}] // of the weights that drew, and has no gradient
					if nucleus == nil {
						nucleus = nucleusOf(scores, r)
						nuclei[[2]int{i, at}] = nucleus
					}
					among := func(scores oracle.Vector) {
						for k := range scores {
							if scores[k] /= drawnFrom.Temperature; !nucleus[k] {
								scores[k] = -1e3
							}
						}
					}
					among(scores)
					own := crossEntropyOf(scores, said[at])
					sum += want.advantages[i] * own / float64(want.counted)
					if r.KL == 0 {
						continue
					}
					scores = others[len(prompt)-1+at]
					among(scores)
					log := own - crossEntropyOf(scores, said[at])
					sum += r.KL * (math.Exp(log) - log - 1) / float64(want.counted)
				}
			}
			return sum
		}
		surrogate()
		for _, n := range task.Trained {
			grad, data := out["m/"+n.Name].F32(), w[n.Name].F32()
			for k := range 3 {
				at, h := (k*len(grad)/3+7*k)%len(grad), float32(1e-2)
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
	}
}

// The logits that tokens are drawn from, one by one with remembered keys and values, have the bits of those that the
// loss computes of whole sequences.
func TestDrawnLogitsAreThoseOfTheLoss(t *testing.T) {
	models := reinforced(t)
	for name, raw := range tiny(t) {
		models[name] = raw
	}
	for name, c := range models {
		batch, b := questions(c, 6)
		for _, b.Half = range []bool{false, true} {
			checkDrawnLogits(t, name, c, batch, b, drawnFrom)
		}
		one := drawnFrom
		one.Tokens = 1
		checkDrawnLogits(t, name+" of one token", c, batch, b, one)
		b.Half, b.Form = false, exact.Form{Bits: 8, Block: 64}
		checkDrawnLogits(t, name+" of integers", c, batch, b, drawnFrom)
	}
}

// So have those of prompts that are longer than the chunks of sums, with query heads that share keys, through a window
// and without.
func TestDrawnLogitsOfLongPrompts(t *testing.T) {
	const columns = 600
	for name, window := range map[string]any{architecture.Llama: nil, "mistral": 300} {
		raw := map[string]any{"vocab_size": 11, "max_position_embeddings": columns, "hidden_size": 24,
			"intermediate_size": 20, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 3}
		if window != nil {
			raw["sliding_window"] = window
		}
		c, err := architecture.Parse(name, raw)
		if err != nil {
			t.Fatal(err)
		}
		b := Batch{Sequences: 2, Length: columns, Silent: c.VocabSize()}
		batch := someTokens(c, b.Sequences, b.Length+1, 5)
		for i, ids := 0, batch.I32(); i < len(ids); i++ {
			if row, at := i/(b.Length+1), i%(b.Length+1); at < columns-30-row || at >= columns-25 {
				ids[i] += int32(b.Silent)
			}
		}
		r := drawnFrom
		r.Tokens = 20
		checkDrawnLogits(t, name, c, batch, b, r)
	}
}

// checkDrawnLogits compares the logits that a task draws from with those of its loss.
func checkDrawnLogits(t *testing.T, name string, c architecture.Config, batch *tensor.Tensor, b Batch, r Rollout) {
	t.Helper()
	task, err := Reinforce(c, b, r)
	mustTask(t, task, err)
	p := policy{c: c, r: r, width: b.Length - r.Tokens, silent: b.Silent}
	builder := program.NewBuilder()
	values, err := record.Record(builder, func(g *graph.Graph) []*graph.Node {
		examples := parameters(g, "", task.Batch)
		w, _ := task.inputs(g)
		w.Dice = &record.Dice{Key: graph.Parameter(g, Dice, shapes.Make(dtypes.Int64, 3))}
		prompts := p.prompts(examples[0])
		key := w.Dice.Key
		answers, logits := p.draw(w, prompts, r.Group, func(logits *graph.Node, i int) *graph.Node {
			return r.Policy().Draw(logits, key, i)
		})
		for i := range logits {
			logits[i] = graph.InsertAxes(logits[i], 1)
		}
		again := p.scores(w, rollout.Repeat(prompts.Tokens, r.Group), rollout.Repeat(prompts.Padding, r.Group), answers)
		return []*graph.Node{graph.Reshape(graph.Concatenate(logits, 1), dims(again)...), again}
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	builder.Output("drawn", values[0])
	builder.Output("learnt", values[1])
	made, err := finish(builder)
	all := rolledInputs(task, both(strongWeights(c.Tensors()), strongWeights(c.Adapters())), batch, optimizer.AdamW{}, 0)
	in := state{}
	for n := range made.InputShapes() {
		in[n] = all[n]
	}
	out := mustRun(t, mustCompile(t, made, err), in)
	drawn, learnt := out["drawn"].F32(), out["learnt"].F32()
	differ := 0
	for i := range drawn {
		if math.Float32bits(drawn[i]) != math.Float32bits(learnt[i]) {
			differ++
		}
	}
	if differ > 0 {
		t.Errorf("%s, half %v: %d of %d logits differ", name, b.Half, differ, len(drawn))
	}
}

// Steps raise the reward of a model, whole and in parts of a batch, to the same weights but for rounding.
func TestReinforceLearns(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1}
	for name, c := range reinforced(t) {
		if name == "gpt2" && !*long {
			continue
		}
		batch, b := questions(c, 4)
		var first float64
		for _, b.Micro = range []int{0, 2} {
			task, err := Reinforce(c, b, Rollout{Group: 8, Tokens: 3, Temperature: 1, Reward: rollout.Reward{Prefix: 1}})
			mustTask(t, task, err)
			p, err := task.TrainStep(o)
			e := mustCompile(t, p, err)
			w := c.Init(7)
			if _, adapted := c.LoRA(); adapted { // what it adapts must do something
				w = both(strongWeights(c.Tensors()), c.InitAdapters(4))
			}
			in := rolledInputs(task, w, batch, o, 0.02)
			var begin, last float64
			for step := range 60 {
				tensor.As[int64](in[Dice].Bytes())[1] = int64(1000 * step)
				out := mustRun(t, e, in)
				if last = scalar(out["loss"]); step == 0 {
					begin = last
				}
				carry(task, in, out)
			}
			if last > begin-0.3 {
				t.Errorf("%s in parts of %d: the loss goes from %v to %v", name, b.Micro, begin, last)
			}
			if b.Micro == 0 {
				first = begin
			} else {
				checkNear(t, name+" loss in parts", begin, first, 1e-6)
			}
		}
	}
}

func TestReinforceErrors(t *testing.T) {
	c := tiny(t)["gpt2"]
	good := Batch{Sequences: 2, Length: 6, Silent: 11}
	for name, change := range map[string]func(*Batch, *Rollout){
		"no group":       func(_ *Batch, r *Rollout) { r.Group = 1 },
		"long answers":   func(_ *Batch, r *Rollout) { r.Tokens = 6 },
		"temperature":    func(_ *Batch, r *Rollout) { r.Temperature = math.NaN() },
		"two rewards":    func(_ *Batch, r *Rollout) { r.Reward.Rule = ruled(t).Reward.Rule },
		"no reward":      func(_ *Batch, r *Rollout) { r.Reward = rollout.Reward{} },
		"nothing silent": func(b *Batch, _ *Rollout) { b.Silent = 0 },
		"dropout":        func(b *Batch, _ *Rollout) { b.Dropout = 0.1 },
		"parts":          func(b *Batch, _ *Rollout) { b.Micro = 4 },
		"too long":       func(b *Batch, _ *Rollout) { b.Length = 400 },
		"its own ratio":  func(_ *Batch, r *Rollout) { r.Correction = rollout.Tapered },
		"other ratios":   func(_ *Batch, r *Rollout) { r.Apart, r.Correction = 1, "other" },
	} {
		b, r := good, drawnFrom
		change(&b, &r)
		if _, err := Reinforce(c, b, r); !errors.Is(err, ErrStep) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Package reinforce measures how a small model learns from rewards. The model first learns from right answers, until
// some of its answers are right; then it draws answers (GRPO) and learns from their rewards. The programs are those of
// units, run in this process and without a network. It compares jobs whose answers are drawn by other units, with
// models of different ages: their rewards, and in the simulator their throughput.
package reinforce

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/machine"
	"github.com/starling-network/starling/node/benchmark/reinforce/sums"
)

// Options configure the measurement.
type Options struct {
	Seeds    int    // models that learn, each from other initial weights and examples
	Steps    int    // of learning from rewards
	Rounds   int    // of the jobs whose answers other units draw
	Played   int    // of the runs that are played for their times; 0: 75
	Parts    string // file of the parts that are measured, to which this adds; "": none
	Threads  int
	Progress func(string)
}

// Run is one model.
type Run struct {
	Seed    uint64  `json:"seed"`
	Shown   int     `json:"shown_steps"`  // of learning from right answers
	Before  float64 `json:"reward_shown"` // share of held-out sums whose most likely answer is right
	Steps   int     `json:"steps"`        // of learning from rewards
	After   float64 `json:"reward"`
	Seconds float64 `json:"seconds"`
}

// Report is the measurement.
type Report struct {
	Parameters int             `json:"parameters"`
	Prompts    int             `json:"prompts"` // of a step
	Group      int             `json:"group"`   // answers to each
	Runs       []Run           `json:"runs"`
	Preference float64         `json:"first_preference_loss"` // of DPO, in nats
	Ages       []Age           `json:"asynchronous"`          // answers are drawn by other units
	Patches    []Patch         `json:"patches"`               // from one version of the weights to the next
	Spread     Spread          `json:"spread"`                // of a patch
	Bars       []benchmark.Bar `json:"bars"`

	eval  *cpu.Exec
	parts *parts
}

const (
	prompts, group = 32, 16
	shownRows      = 64
	shownUntil     = 0.2  // of the held-out sums are right
	shownMost      = 2000 // steps of learning from right answers
	shownEvery     = 5    // steps between evaluations: the share of right answers rises quickly
	every          = 20   // of learning from rewards, likewise
	evaluated      = 512  // held-out sums
)

// Measure trains the models. Seconds are by the clock.
func Measure(ctx context.Context, o Options) (*Report, error) {
	for name, n := range map[string]int{"seeds": o.Seeds, "steps": o.Steps, "rounds": o.Rounds,
		"threads": o.Threads} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"n_layer": 3, "n_embd": 96, "n_head": 4,
		"n_positions": sums.Length, "vocab_size": sums.Tokens})
	if err != nil {
		return nil, err
	}
	r := &Report{Prompts: prompts, Group: group}
	if r.parts, err = openParts(o); err != nil {
		return nil, err
	}
	for _, n := range c.Tensors() {
		r.Parameters += n.Shape.Elements()
	}
	if r.Preference, err = firstPreference(c, o.Threads); err != nil {
		return nil, err
	}
	before, after, seconds := 0., 1., 0.
	var shown []map[string]*tensor.Tensor
	for seed := range uint64(o.Seeds) {
		l := &learner{config: c, options: o, run: Run{Seed: seed}, weights: c.Init(seed), begun: time.Now()}
		if err := r.parts.learnt(ctx, l); err != nil {
			return nil, err
		}
		r.Runs, shown = append(r.Runs, l.run), append(shown, l.shown)
		before, after, seconds = max(before, l.run.Before), min(after, l.run.After), max(seconds, l.run.Seconds)
	}
	r.Bars = []benchmark.Bar{
		benchmark.AtMost("parameters", float64(r.Parameters), 1e6),
		benchmark.AtMost("reward of a model that was shown answers", before, 0.3),
		benchmark.AtLeast("reward after learning from rewards", after, 0.75),
		benchmark.AtMost("seconds for a model", seconds, 900),
		benchmark.AtMost("the first loss of preferences, its distance from ln 2", math.Abs(r.Preference-float64(
			float32(math.Ln2))), 0),
	}
	l := &learner{config: c, options: o, weights: cloned(shown[0])}
	if err := r.patches(ctx, l); err != nil {
		return nil, err
	}
	return r, r.stale(ctx, o, c, shown)
}

// learner is a model that learns.
type learner struct {
	config  architecture.Config
	options Options
	run     Run
	weights map[string]*tensor.Tensor
	shown   map[string]*tensor.Tensor // the weights when it began to learn from rewards
	eval    *cpu.Exec                 // answers the held-out sums
	begun   time.Time
}

func (l *learner) learn(ctx context.Context) error {
	if err := l.show(ctx); err != nil {
		return err
	}
	l.shown = cloned(l.weights)
	return l.reward(ctx)
}

func cloned(all map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	copies := make(map[string]*tensor.Tensor, len(all))
	for name, w := range all {
		copies[name] = w.Clone()
	}
	return copies
}

// show trains on right answers until some are right.
func (l *learner) show(ctx context.Context) error {
	task, err := model.LanguageOf(l.config, model.Batch{Sequences: shownRows, Length: sums.Length, Silent: sums.Silent})
	if err != nil {
		return err
	}
	t, err := l.trainer(task, 1e-3)
	if err != nil {
		return err
	}
	from := &sums.Stream{Seed: l.run.Seed, Number: 1}
	for l.run.Shown < shownMost && l.run.Before < shownUntil {
		if err := l.steps(ctx, t, from, shownEvery); err != nil {
			return err
		}
		l.run.Shown += shownEvery
		if l.run.Before, err = l.right(); err != nil {
			return err
		}
	}
	l.options.Progress(fmt.Sprintf("seed %d: %.3f of the sums are right after %d steps that show answers", l.run.Seed,
		l.run.Before, l.run.Shown))
	return nil
}

// reward trains on rewards of drawn answers.
func (l *learner) reward(ctx context.Context) error {
	task, err := model.Reinforce(l.config, model.Batch{Sequences: prompts, Length: sums.Length, Silent: sums.Silent},
		model.Rollout{Group: group, Tokens: sums.Digits, Temperature: 1, Reward: rollout.Reward{Exact: 1, Prefix: 1}})
	if err != nil {
		return err
	}
	t, err := l.trainer(task, 8e-4)
	if err != nil {
		return err
	}
	t.Spec.Seed, t.Spec.Units, t.Spec.Steps = l.run.Seed, 1, uint32(l.options.Steps)
	t.Spec.Rate.Kind, t.Spec.Rate.Warmup = train.Cosine, 10
	from := &sums.Stream{Seed: l.run.Seed, Number: 2}
	for l.run.Steps < l.options.Steps {
		if err := l.steps(ctx, t, from, min(every, l.options.Steps-l.run.Steps)); err != nil {
			return err
		}
		if l.run.After, err = l.right(); err != nil {
			return err
		}
		l.options.Progress(fmt.Sprintf("seed %d: %.3f after %d steps of rewards, %.0f s", l.run.Seed, l.run.After,
			l.run.Steps, time.Since(l.begun).Seconds()))
	}
	return nil
}

func (l *learner) trainer(task model.Task, rate float64) (*machine.Trainer, error) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.01, MaxGradNorm: 1}
	p, err := task.TrainStep(o)
	if err != nil {
		return nil, err
	}
	return machine.ProgramTrainer(p, machine.Recipe{Optimizer: o, Rate: rate, Threads: l.options.Threads}, l.weights)
}

// steps takes n steps, and takes over the weights.
func (l *learner) steps(ctx context.Context, t *machine.Trainer, from *sums.Stream, n int) error {
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		from.Fill(t.Tokens())
		if _, draws := t.In[model.Dice]; draws {
			t.In[model.Dice] = t.Spec.Dice(0, 0, uint32(l.run.Steps))
			l.run.Steps++
		}
		if _, err := t.Step(); err != nil {
			return err
		}
	}
	for name := range l.weights {
		l.weights[name] = t.In[train.Param+name]
	}
	return nil
}

// right is the share of held-out sums whose most likely answer is right.
func (l *learner) right() (float64, error) {
	if err := l.compile(); err != nil {
		return 0, err
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.New(tensor.Make(tensor.Int32, evaluated, sums.Length+1))}
	(&sums.Stream{Number: 3, Held: true}).Fill(in["tokens"].I32())
	for name, w := range l.weights {
		in[train.Param+name] = w
	}
	out, err := l.eval.Run(in)
	if err != nil {
		return 0, err
	}
	return float64(out["reward"].F32()[0]), nil
}

// compile makes the program that answers the held-out sums, if there is none.
func (l *learner) compile() error {
	if l.eval != nil {
		return nil
	}
	task, err := model.Reinforce(l.config, model.Batch{Sequences: evaluated, Length: sums.Length, Silent: sums.Silent},
		model.Rollout{Group: 2, Tokens: sums.Digits, Temperature: 1, Reward: rollout.Reward{Exact: 1}})
	if err != nil {
		return err
	}
	p, err := task.Eval()
	if err != nil {
		return err
	}
	l.eval, err = cpu.Compile(p, l.options.Threads)
	return err
}

func run(p *program.Program, in map[string]*tensor.Tensor, threads int) (map[string]*tensor.Tensor, error) {
	x, err := cpu.Compile(p, threads)
	if err != nil {
		return nil, err
	}
	return x.Run(in)
}

// firstPreference is the loss of direct preference optimisation before its first update, where both models agree.
func firstPreference(c architecture.Config, threads int) (float64, error) {
	task, err := model.Preference(c, model.Batch{Sequences: prompts, Length: sums.Length, Silent: sums.Silent}, 0.1)
	if err != nil {
		return 0, err
	}
	p, err := task.Eval()
	if err != nil {
		return 0, err
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.New(tensor.Make(tensor.Int32, prompts, 2*sums.Length+1))}
	from := &sums.Stream{Number: 4}
	pair := make([]int32, 2*(sums.Length+1))
	for row := range prompts {
		from.Fill(pair)
		at := in["tokens"].I32()[row*(2*sums.Length+1):][:2*sums.Length+1]
		copy(at, pair[:sums.Length])
		copy(at[sums.Length:], pair[sums.Length+1:])
	}
	for name, w := range c.Init(0) {
		in[train.Param+name], in[train.Param+model.Reference+name] = w, w
	}
	out, err := run(p, in, threads)
	if err != nil {
		return 0, err
	}
	return float64(out["loss"].F32()[0]), nil
}

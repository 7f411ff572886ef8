package train_test

import (
	"errors"
	"flag"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/meter"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/compute/train/unitlog"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

type sizes struct{ layers, width, heads, length, batch int }

var tiny = sizes{2, 16, 2, 12, 2}

// newTask makes a small job on made-up text.
func newTask(t testing.TB, z sizes, threads int) (*train.Task, *train.Checkpoint) {
	t.Helper()
	c, err := architecture.Parse("gpt2", map[string]any{"n_layer": z.layers, "n_embd": z.width, "n_head": z.heads,
		"n_positions": z.length, "vocab_size": 256})
	if err != nil {
		t.Fatal(err)
	}
	step, err := model.TrainStep(c, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1},
		z.batch, z.length)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("the quick brown fox jumps over the lazy dog; ", 2000)
	corpus, err := data.Build([]source.File{{Format: "text", Name: "fox", Data: []byte(text)}}, tokenizer.Bytes(), 0.1)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(step, threads)
	if err != nil {
		t.Fatal(err)
	}
	spec := &train.Spec{
		Version: 1, Numerics: step.Numerics, Name: "fox", Seed: 7, Program: step.Digest(),
		Data:   corpus.Manifest(1 << 20).Digest(),
		Rounds: 2, Steps: 5, Segment: 2, Units: 2, Batch: uint32(z.batch), Length: uint32(z.length),
		Rate: train.Rate{Kind: train.Cosine, Peak: 1e-2, Warmup: 2, Floor: 0.1}, Beta1: 0.9, Beta2: 0.95,
		Exchange: train.Exchange{Codec: "int8", Rule: "mean", Outer: "nesterov", Rate: 0.7, Momentum: 0.9},
	}
	if err := errors.Join(spec.Check(), train.CheckProgram(spec, step)); err != nil {
		t.Fatal(err)
	}
	base, err := train.Genesis(train.Params(step), c.Init(7), 1)
	if err != nil {
		t.Fatal(err)
	}
	return &train.Task{Spec: spec, Step: step, Exec: exec, Corpus: corpus}, base
}

// A unit is a pure function: the same bits again, on any number of threads, and it leaves its checkpoint alone.
func TestUnitIsAPureFunction(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	root := base.Root()
	first, err := task.Run(base, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := task.Run(base, 0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	parallel, _ := newTask(t, tiny, 3)
	again, err := parallel.Run(base, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(first.Segments, again.Segments) || !slices.Equal(first.Losses, again.Losses) ||
		!slices.Equal(first.Norms, again.Norms) {
		t.Error("the same unit gave other bits")
	}
	if first.Segments[0] != other.Segments[0] || first.Segments[1] == other.Segments[1] {
		t.Error("units of a round share their start and nothing else")
	}
	if base.Root() != root {
		t.Error("the unit changed its checkpoint")
	}
	if n := int(task.Spec.Segments()) + 1; len(first.Segments) != n || n != 4 {
		t.Errorf("%d segment roots, want %d", len(first.Segments), n)
	}
}

// The norm of a step is that of its gradient before it is clipped: the first moment after one step has the gradient
// that was clipped to one, times what the moment does not keep.
func TestNorms(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	var moment float64
	r, err := task.Resume(base, 1, nil, false, nil, func(p train.Progress) error {
		if p.Step == 1 {
			for _, m := range p.State[len(base.Params) : 2*len(base.Params)] {
				for _, x := range m.F32() {
					moment += float64(x) * float64(x)
				}
			}
		}
		return nil
	})
	if err != nil || len(r.Norms) != int(task.Spec.Steps) {
		t.Fatalf("%d norms of %d steps: %v", len(r.Norms), task.Spec.Steps, err)
	}
	first := float64(r.Norms[0])
	if got, want := math.Sqrt(moment)/(1-0.9), min(first, 1); first <= 0 || math.Abs(got-want) > 1e-4*want {
		t.Errorf("the gradient that was taken up has norm %v, the step says %v", got, first)
	}
}

// A unit that is executed to the end of a segment has the states of the whole unit up to there.
func TestRunTo(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	whole, err := task.Run(base, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k := uint32(1); k <= task.Spec.Segments(); k++ {
		part, err := task.RunTo(base, 1, k, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		steps := task.Spec.StepsTo(1, k)
		if !slices.Equal(part.Segments, whole.Segments[:k+1]) || !slices.Equal(part.Losses, whole.Losses[:steps]) ||
			!slices.Equal(part.Norms, whole.Norms[:steps]) || part.Delta != nil {
			t.Errorf("to segment %d: %d steps, %d roots", k, len(part.Losses), len(part.Segments))
		}
		if train.StateRoot(steps, train.Roots(part.End)) != whole.Segments[k] {
			t.Errorf("the state after segment %d is not the one of its root", k)
		}
	}
}

// A unit of fewer segments is the beginning of a whole one, on data of its own: the data of the units of a round are
// consecutive. It can be resumed like any other.
func TestSizes(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	task.Spec.Segment, task.Spec.Sizes = 1, []uint32{5, 2}
	if err := task.Spec.Check(); err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for round := range task.Spec.Rounds {
		for unit := range task.Spec.Units {
			for step := range task.Spec.StepsOf(unit) {
				a := task.Spec.Address(round, unit, step)
				at := int64(a.Round)*int64(a.StepsPerRound) + int64(a.Step)
				if seen[at] || a.Units != 1 || a.StepsPerRound != 7 || at >= 14 {
					t.Errorf("round %d, unit %d, step %d: %+v", round, unit, step, a)
				}
				seen[at] = true
			}
		}
	}
	var half train.Progress
	got, err := task.Resume(base, 1, nil, false, nil, func(p train.Progress) error {
		if p.Step == 1 {
			half = p
			half.Segments, half.Losses, half.Norms, half.State = slices.Clone(p.Segments), slices.Clone(p.Losses),
				slices.Clone(p.Norms), slices.Clone(p.State)
			for i, x := range p.State {
				half.State[i] = x.Clone()
			}
		}
		return nil
	})
	if err != nil || len(got.Segments) != 3 || len(got.Losses) != 2 {
		t.Fatalf("%v: %d roots and %d losses of a unit of 2 segments", err, len(got.Segments), len(got.Losses))
	}
	if part, err := task.RunTo(base, 1, 1, nil, nil); err != nil || !slices.Equal(part.Segments, got.Segments[:2]) {
		t.Errorf("to its first segment: %v, %v", part, err)
	}
	again, err := task.Resume(base, 1, nil, false, &half, func(train.Progress) error { return nil })
	if err != nil || !slices.Equal(again.Segments, got.Segments) ||
		!slices.Equal(train.Roots(again.Delta), train.Roots(got.Delta)) {
		t.Errorf("from its first step on: another result, %v", err)
	}
	whole, err := task.Run(base, 0, nil, nil)
	if err != nil || len(whole.Segments) != 6 {
		t.Fatalf("%v: %d roots of a unit of 5 segments", err, len(whole.Segments))
	}
	before := *task.Spec // of one unit, so that the same data lie first
	task.Spec.Sizes, task.Spec.Units = nil, 1
	alone, err := task.Run(base, 0, nil, nil)
	if err != nil || !slices.Equal(alone.Segments, whole.Segments) {
		t.Errorf("a whole unit has the roots %v, one of a job of equal units %v, %v", whole.Segments, alone.Segments, err)
	}
	task.Spec = &before
}

// The loss of a checkpoint on the first batch of a unit is that of the unit's first step.
func TestMeter(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	r, err := task.Run(base, 1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := meter.New(task)
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]int32, tiny.batch*(tiny.length+1))
	if err := task.Corpus.Batch(tokens, task.Spec.Address(0, 1, 0), tiny.length); err != nil {
		t.Fatal(err)
	}
	before, err := m.Loss(base.Params, tokens)
	if err != nil || before != r.Losses[0] {
		t.Errorf("loss %v (%v), the step says %v", before, err, r.Losses[0])
	}
	if after, err := m.Loss(r.End[:len(base.Params)], tokens); err != nil || after >= before {
		t.Errorf("the loss goes from %v to %v (%v)", before, after, err)
	}
	if _, err := m.Loss(base.Params[1:], tokens); err == nil {
		t.Error("a parameter too few is taken")
	}
	if part, step := task.Step.Only("loss").Flops(), task.Step.Flops(); 5*part > 2*step {
		t.Errorf("a loss takes %d operations, a step %d", part, step)
	}
}

func TestPathsGiveTheSameBits(t *testing.T) {
	defer func() {
		if err := kernel.Select(""); err != nil {
			t.Error(err)
		}
	}()
	var roots []canon.Digest
	for _, path := range kernel.Paths() {
		if err := kernel.Select(path.String()); err != nil {
			t.Fatal(err)
		}
		task, base := newTask(t, tiny, 1)
		r, err := task.Run(base, 0, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		roots = append(roots, r.Segments[len(r.Segments)-1])
	}
	for i, path := range kernel.Paths() {
		if roots[i] != roots[0] {
			t.Errorf("portable kernels end in %v, %s in %v", roots[0], path, roots[i])
		}
	}
}

// The state roots of a small run are part of the numerics: a change of them is another version.
func TestGoldenStateRoots(t *testing.T) {
	const file = "testdata/roots.txt"
	task, base := newTask(t, tiny, 1)
	s, err := task.Begin(base, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := base.Root().String() + "\n"
	for step := 1; step <= 5; step++ {
		if _, err := s.Advance(); err != nil {
			t.Fatal(err)
		}
		if step == 1 || step == 5 {
			got += s.Root().String() + "\n"
		}
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Fatalf("state roots after 0, 1 and 5 steps:\n%swant (%v):\n%s", got, err, want)
	}
}

// The trace of a step ends in the state that the step ends in.
func TestTraceAgreesWithTheStep(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	s, err := task.Begin(base, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(); err != nil {
		t.Fatal(err)
	}
	tree, err := s.Trace(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Advance(); err != nil {
		t.Fatal(err)
	}
	want := map[string]canon.Digest{}
	names := train.Params(task.Step)
	for i, x := range s.Tensors() {
		want[[]string{"p/", "m/", "v/"}[i/len(names)]+names[i%len(names)]] = x.Root()
	}
	for _, o := range task.Step.Outputs {
		root, state := want[o.Name]
		if leaf, err := tree.Node(0, int(o.Value)); state && (err != nil || leaf != root) {
			t.Errorf("%s: the trace says %v (%v), the state %v", o.Name, leaf, err, root)
		}
	}
}

func TestObserverEndsAUnit(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	enough := errors.New("enough")
	steps := 0
	_, err := task.Run(base, 0, nil, func(step uint32, _ float32) error {
		if steps++; step == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || steps != 3 {
		t.Fatalf("%v after %d steps", err, steps)
	}
}

// A unit that resumes from the progress of another process, after any step, ends as an undisturbed one; progress of
// another unit, or damaged, is refused.
func TestResume(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	var all []train.Progress
	keep := func(p train.Progress) error {
		p.Segments, p.Losses, p.Norms = slices.Clone(p.Segments), slices.Clone(p.Losses), slices.Clone(p.Norms)
		for i, x := range p.State {
			p.State[i] = x.Clone()
		}
		all = append(all, p)
		return nil
	}
	want, err := task.Resume(base, 1, nil, false, nil, keep)
	if err != nil || len(all) != int(task.Spec.Steps) {
		t.Fatal(err, len(all))
	}
	ignore := func(train.Progress) error { return nil }
	for _, p := range all[:len(all)-1] {
		got, err := task.Resume(base, 1, nil, false, &p, ignore)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Segments, want.Segments) || !slices.Equal(got.Losses, want.Losses) ||
			!slices.Equal(got.Norms, want.Norms) || !slices.Equal(train.Roots(got.Delta), train.Roots(want.Delta)) {
			t.Errorf("from step %d on: another result", p.Step)
		}
	}
	later := *base
	later.Params = slices.Clone(base.Params)
	later.Params[0] = base.Params[0].Clone()
	later.Params[0].F32()[0]++
	if _, err := task.Resume(&later, 1, nil, false, &all[2], ignore); !errors.Is(err, train.ErrProgress) {
		t.Errorf("from another checkpoint: %v", err)
	}
	for what, damage := range map[string]func(*train.Progress){
		"no such step": func(p *train.Progress) { p.Step++ }, "the end": func(p *train.Progress) { *p = all[len(all)-1] },
		"a root is missing":   func(p *train.Progress) { p.Segments = p.Segments[1:] },
		"a tensor is missing": func(p *train.Progress) { p.State = p.State[1:] },
		"other shapes":        func(p *train.Progress) { p.State = append(p.State[1:len(p.State):len(p.State)], p.State[0]) },
	} {
		p := all[2]
		damage(&p)
		if _, err := task.Resume(base, 1, nil, false, &p, ignore); !errors.Is(err, train.ErrProgress) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A unit whose numbers end is executed to its end, and says where: at a loss that is none, or at an update that is not
// finite though the losses were.
func TestDivergence(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	base.Params[0].F32()[0] = float32(math.Inf(1))
	for what, steps := range map[string]uint32{"the loss of step 1 of unit 1": 5,
		`the update of unit 1 to element 0 of "`: 0} {
		task.Spec.Steps = steps // of none, the update is infinity minus infinity
		r, err := task.Run(base, 1, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := r.Diverged; d == nil || d.Round != 0 || !strings.HasPrefix(d.What, what) || len(r.Losses) != int(steps) {
			t.Errorf("%d steps: %v after %d, want %s", steps, d, len(r.Losses), what)
		}
		again, err := task.Run(base, 1, nil, nil)
		if err != nil || !slices.Equal(again.Segments, r.Segments) {
			t.Errorf("%d steps, again: %v, the roots differ", steps, err)
		}
	}
}

func TestRate(t *testing.T) {
	r := train.Rate{Kind: train.Cosine, Peak: 2, Warmup: 4, Floor: 0.1}
	for _, c := range []struct {
		step uint32
		want float64
	}{{0, 0.5}, {3, 2}, {4, 2}, {54, 1.1}, {104, 0.2}} {
		if got := r.At(c.step, 105); math.Abs(float64(got)-c.want) > 1e-6 {
			t.Errorf("step %d: %v, want %v", c.step, got, c.want)
		}
	}
	r.Kind = train.Linear
	for step, want := range map[uint32]float64{0: 0.5, 3: 2, 4: 2, 29: 1.55, 54: 1.1, 79: 0.65, 104: 0.2} {
		if got := r.At(step, 105); math.Abs(float64(got)-want) > 1e-6 {
			t.Errorf("linear, step %d: %v, want %v", step, got, want)
		}
	}
	w := train.Rate{Kind: train.WSD, Peak: 2, Warmup: 2, Floor: 0.25, Decay: 0.3}
	for step, want := range []float32{1, 2, 2, 2, 2, 2, 2, 1.5, 1, 0.5} {
		if got := w.At(uint32(step), 10); got != want {
			t.Errorf("wsd is %v at step %d of 10, want %v", got, step, want)
		}
	}
	if got := (train.Rate{Kind: train.WSD, Peak: 2, Warmup: 4, Decay: 1}).At(4, 10); !(got < 2 && got > 1.6) {
		t.Errorf("wsd that falls from the warm-up on begins with %v", got)
	}
	if c := (train.Rate{Kind: train.Constant, Peak: 3}); c.At(0, 10) != 3 || c.At(9, 10) != 3 {
		t.Error("a constant rate is not constant")
	}
}

func TestSpecIsChecked(t *testing.T) {
	task, _ := newTask(t, tiny, 1)
	if _, err := train.DecodeSpec(task.Spec.Encode()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*train.Spec){
		"version": func(s *train.Spec) { s.Version = 2 }, "numerics": func(s *train.Spec) { s.Numerics = 99 },
		"rounds": func(s *train.Spec) { s.Rounds = 0 }, "steps": func(s *train.Spec) { s.Steps = 1 << 30 },
		"segment": func(s *train.Spec) { s.Segment = 0 }, "long segment": func(s *train.Spec) { s.Segment = s.Steps + 1 },
		"segments": func(s *train.Spec) { s.Steps, s.Segment = 1000, 1 }, "batch": func(s *train.Spec) { s.Batch = 0 },
		"rate": func(s *train.Spec) { s.Rate.Peak = math.NaN() }, "kind": func(s *train.Spec) { s.Rate.Kind = "x" },
		"sizes of fewer units": func(s *train.Spec) { s.Segment, s.Sizes = 1, []uint32{5} },
		"sizes of none":        func(s *train.Spec) { s.Segment, s.Sizes, s.Units = 1, []uint32{}, 0 },
		"a unit of no segment": func(s *train.Spec) { s.Segment, s.Sizes = 1, []uint32{5, 0} },
		"no whole unit":        func(s *train.Spec) { s.Segment, s.Sizes = 1, []uint32{4, 2} },
		"unequal segments":     func(s *train.Spec) { s.Sizes = []uint32{3, 1} },
		"sizes of gradients": func(s *train.Spec) {
			s.Exchange.Gradients, s.Beta1, s.Beta2, s.Steps, s.Segment, s.Sizes = true, 0, 0, 1, 1, []uint32{1, 1}
		},
		"beta": func(s *train.Spec) { s.Beta1 = 2 }, "trim": func(s *train.Spec) { s.Exchange.Trim = math.Inf(1) },
	} {
		s := *task.Spec
		spoil(&s)
		if _, err := train.DecodeSpec(s.Encode()); !errors.Is(err, train.ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := *task.Spec
	s.Batch++
	if err := train.CheckProgram(&s, task.Step); !errors.Is(err, train.ErrSpec) {
		t.Errorf("a program for another batch: %v", err)
	}
	// The version that a specification names is that in which its work is computed.
	for _, of := range []struct{ spec, program uint32 }{{1, 2}, {2, 1}} {
		s, p := *task.Spec, task.Step.In(of.program)
		s.Numerics, s.Program = of.spec, p.Digest()
		if err := train.CheckProgram(&s, p); !errors.Is(err, train.ErrSpec) {
			t.Errorf("a specification of version %d with a program of version %d: %v", of.spec, of.program, err)
		}
		s.Numerics = of.program
		if err := train.CheckProgram(&s, p); err != nil {
			t.Errorf("version %d: %v", of.program, err)
		}
	}
}

// A step of which no units are stages reads no weights before earlier updates: those of a unit that begins from a
// carried state would be others than a referee has.
func TestEarlierWeightsAreOfStages(t *testing.T) {
	task, _ := newTask(t, tiny, 1)
	p := &program.Program{Numerics: task.Step.Numerics, Ops: slices.Clone(task.Step.Ops),
		Outputs: slices.Clone(task.Step.Outputs)}
	w := task.Step.Inputs()[slices.IndexFunc(task.Step.Inputs(), func(in program.InputInfo) bool {
		return strings.HasPrefix(in.Name, parts.Param)
	})]
	earlier := optimizer.EarlierName(1, strings.TrimPrefix(w.Name, parts.Param))
	p.Outputs = append(p.Outputs, program.Output{Name: earlier, Value: w.Value})
	p.Ops = append(p.Ops, program.Operator{Kind: program.Input, Name: earlier, Out: p.Ops[w.Value].Out})
	for _, carries := range []bool{false, true} {
		s := *task.Spec
		s.Program, s.Exchange.Moments = p.Digest(), carries
		if err := train.CheckProgram(&s, p); !errors.Is(err, train.ErrSpec) {
			t.Errorf("a program that reads %q is taken: %v", earlier, err)
		}
	}
}

// The program of a stage of a model is no job by itself: no worker of a network could send it what it receives.
func TestStagesAreNoJobs(t *testing.T) {
	task, _ := newTask(t, tiny, 1)
	for _, name := range []string{parts.Exchanged + "7", parts.Received + "7"} {
		p := &program.Program{Numerics: task.Step.Numerics, Ops: slices.Clone(task.Step.Ops),
			Outputs: slices.Clone(task.Step.Outputs)}
		p.Outputs = append(p.Outputs, program.Output{Name: name, Value: int32(len(p.Ops))})
		p.Ops = append(p.Ops, program.Operator{Kind: program.Input, Name: name, Out: tensor.Make(tensor.Float32, 2)})
		s := *task.Spec
		s.Program = p.Digest()
		if err := train.CheckProgram(&s, p); !errors.Is(err, train.ErrSpec) {
			t.Errorf("a program that reads %q is taken: %v", name, err)
		}
	}
}

func TestLog(t *testing.T) {
	losses, norms := []float32{2.5, 1.25, 1}, []float32{0.5, float32(math.Inf(1)), 0.25}
	b := unitlog.Encode(3, 1, losses, norms)
	if l, n, err := unitlog.Decode(b, 3, 1, 3); err != nil || !slices.Equal(l, losses) || !slices.Equal(n, norms) {
		t.Fatalf("%v, %v, %v", l, n, err)
	}
	if l, n, err := unitlog.Decode(unitlog.Encode(3, 1, losses, nil), 3, 1, 3); err != nil ||
		!slices.Equal(l, losses) || n != nil {
		t.Fatalf("without norms: %v, %v, %v", l, n, err)
	}
	refused := func(name string, b []byte, unit, steps uint32) {
		t.Helper()
		if _, _, err := unitlog.Decode(b, 3, unit, steps); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	refused("another unit", b, 2, 3)
	refused("another length", b, 1, 4)
	refused("cut off", b[:len(b)-1], 1, 3)
	refused("a loss that is no number", unitlog.Encode(3, 1, []float32{float32(math.NaN())}, nil), 1, 1)
	refused("norms of other steps", unitlog.Encode(3, 1, losses, norms[:2]), 1, 3)
}

func FuzzDecodeLog(f *testing.F) {
	f.Add(unitlog.Encode(0, 0, []float32{1, 2}, nil))
	f.Add(unitlog.Encode(0, 0, []float32{1, 2}, []float32{3, 4}))
	f.Fuzz(func(t *testing.T, b []byte) {
		losses, norms, err := unitlog.Decode(b, 0, 0, 2)
		if err == nil && (len(losses) != 2 || len(norms) != 2 && norms != nil) {
			t.Fatal("accepted another number of steps")
		}
	})
}

func FuzzDecodeSpec(f *testing.F) {
	task, _ := newTask(f, tiny, 1)
	f.Add(task.Spec.Encode())
	task.Spec.Segment, task.Spec.Sizes = 1, []uint32{5, 2}
	f.Add(task.Spec.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := train.DecodeSpec(b); err == nil && string(s.Encode()) != string(b) {
			t.Fatal("accepted bytes that Encode does not produce")
		}
	})
}

// One inner step of the quickstart's model on one thread.
func BenchmarkStep(b *testing.B) {
	task, base := newTask(b, sizes{4, 128, 4, 128, 4}, 1)
	task.Spec.Steps = 1 << 12
	s, err := task.Begin(base, 0, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for b.Loop() {
		if _, err := s.Advance(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*4*128)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(task.Step.Flops())*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

package pass_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/asynchronous"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
)

// lateJob is a job whose first of n stages is late by some steps.
func lateJob(t testing.TB, j job, b model.Batch, o optimizer.Optimizer, n, late int) (job, *stages.Plan) {
	t.Helper()
	costs, err := stages.Costs(j.step)
	if err != nil {
		t.Fatal(err)
	}
	before, err := stages.Balance(costs, slices.Repeat([]int{1}, n))
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.LanguageOf(j.config, b)
	if err != nil {
		t.Fatal(err)
	}
	step, err := asynchronous.Step(task, o, j.step, before, late)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := stages.Cut(step, before)
	if err != nil {
		t.Fatal(err)
	}
	return job{j.config, step}, plan
}

// continued computes steps in stages that do not wait for each other, and returns the state after each.
func (j job) continued(t testing.TB, plan *stages.Plan, steps uint32) map[string]*tensor.Tensor {
	t.Helper()
	state, _ := j.pooled(t, plan, steps)
	return state
}

// pooled is continued, with the bytes that each stage keeps in the end for further tasks.
func (j job) pooled(t testing.TB, plan *stages.Plan, steps uint32) (state map[string]*tensor.Tensor, pools []int64) {
	t.Helper()
	lines := map[[2]int]chan pass.Frame{}
	for a := range plan.Stages {
		for b := range plan.Stages {
			lines[[2]int{a, b}] = make(chan pass.Frame, 1000)
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	begin, errs, ended := j.begin(), make([]error, len(plan.Stages)), 0
	state, pools = map[string]*tensor.Tensor{}, make([]int64, len(plan.Stages))
	for s := range plan.Stages {
		var own []*tensor.Tensor
		for _, n := range plan.Stages[s].State {
			own = append(own, begin[n])
		}
		st, err := pass.New(plan, s, plan.Orders()[s], own, 1)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			w := &channels{s, lines, map[string]pass.Frame{}, nil}
			defer func() {
				for b := range plan.Stages {
					close(lines[[2]int{s, b}])
				}
			}()
			errs[s] = st.Steps(0, steps, func(step uint32) (map[string]*tensor.Tensor, error) { return j.inputs(step), nil },
				func(uint32, map[string]*tensor.Tensor) error {
					mu.Lock()
					defer mu.Unlock()
					ended++
					return nil
				}, w)
			mu.Lock()
			defer mu.Unlock()
			pools[s] = st.Pooled()
			for i, x := range st.State() {
				state[plan.Stages[s].State[i]] = x
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil || ended != int(steps)*len(plan.Stages) {
		t.Fatalf("%d steps ended: %v", ended, err)
	}
	return state, pools
}

// A stage keeps as many bytes for later tasks after six steps as after three: values that it has received are not added
// to them.
func TestMemoryDoesNotGrow(t *testing.T) {
	batch := model.Batch{Sequences: 4, Length: 11, Micro: 1}
	o := adam(1)
	o.Nesterov = true
	j, plan := lateJob(t, gpt2(t, 2, false, batch, adam(1)), batch, o, 2, 1)
	_, short := j.pooled(t, plan, 3)
	if _, long := j.pooled(t, plan, 6); !slices.Equal(long, short) {
		t.Errorf("%v bytes are kept after 6 steps, %v after 3", long, short)
	}
}

// Stages that do not wait for each other have the bits of the step in which each reads weights of the same age, whether
// they compute one step after the other or do not pause between steps.
func TestLateStagesHaveTheBitsOfTheWhole(t *testing.T) {
	one, two, four := model.Batch{Sequences: 2, Length: 11}, model.Batch{Sequences: 4, Length: 11, Micro: 2},
		model.Batch{Sequences: 4, Length: 11, Micro: 1}
	dropped := two
	dropped.Dropout = 0.2
	late := func(clip float64) optimizer.AdamW {
		o := adam(clip)
		o.Nesterov = true
		return o
	}
	for name, c := range map[string]struct {
		job     job
		batch   model.Batch
		o       optimizer.Optimizer
		n, late int
		steps   []int // by which each stage is late
	}{
		"one microbatch, as the paper": {gpt2(t, 4, false, one, adam(1)), one, late(1), 4, 3, []int{3, 2, 1, 0}},
		"microbatches":                 {llama(t, 4, four, adam(1)), four, late(1), 4, 1, []int{1, 1, 1, 0}},
		"later":                        {llama(t, 4, two, adam(1)), two, late(0.1), 4, 5, []int{5, 4, 2, 0}},
		"tied":                         {gpt2(t, 4, true, two, adam(0.1)), two, late(0.1), 3, 2, []int{2, 1, 0}},
		"without a norm":               {gpt2(t, 3, false, two, adam(0)), two, late(0), 2, 2, []int{2, 0}},
		"dropout":                      {gpt2(t, 3, true, dropped, adam(1)), dropped, late(1), 3, 1, []int{1, 1, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			const steps = 7
			j, plan := lateJob(t, c.job, c.batch, c.o, c.n, c.late)
			var by []int
			for _, s := range plan.Stages {
				by = append(by, s.Late)
			}
			if !slices.Equal(by, c.steps) {
				t.Errorf("late by %v, wanted %v", by, c.steps)
			}
			want, _ := j.whole(t, steps)
			inTurn, _, errs := j.inStages(t, plan, steps, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for name, got := range map[string]map[string]*tensor.Tensor{"in turn": inTurn,
				"continued": j.continued(t, plan, steps)} {
				for n, x := range want {
					if got[n] == nil || got[n].Root() != x.Root() {
						t.Fatalf("%s: %q has other bits", name, n)
					}
				}
			}
			if c.late != 3 { // one job shows which weights are kept
				return
			}
			ages := j.ages(t, steps)
			for n, x := range want {
				k, of, ok := optimizer.EarlierOf(n)
				if ok && x.Root() != ages[steps-k][parts.Param+of].Root() {
					t.Errorf("%q is not the weight before %d updates", n, k)
				}
			}
		})
	}
}

// A stage that is ahead of its state reads the weights before k updates under a younger name. So a program whose next
// value under such a name is another one is refused: honest stages would not have the bits of the program.
func TestProgramsThatKeepOtherWeights(t *testing.T) {
	batch, o := model.Batch{Sequences: 2, Length: 11}, adam(1)
	o.Nesterov = true
	j, plan := lateJob(t, gpt2(t, 4, false, batch, adam(1)), batch, o, 3, 2)
	weight := plan.Stages[0].State[0]
	weight = weight[len(parts.Param):]
	of := map[string]int32{}
	for _, out := range j.step.Outputs {
		of[out.Name] = out.Value
	}
	for _, in := range j.step.Inputs() {
		of["before "+in.Name] = in.Value
	}
	for _, c := range []struct {
		k     int
		value string
	}{{1, parts.Param + weight}, {1, "before " + optimizer.EarlierName(1, weight)},
		{2, "before " + parts.Param + weight}} {
		p := &program.Program{Numerics: j.step.Numerics, Ops: j.step.Ops, Outputs: slices.Clone(j.step.Outputs)}
		for i := range p.Outputs {
			if p.Outputs[i].Name == optimizer.EarlierName(c.k, weight) {
				p.Outputs[i].Value = of[c.value]
			}
		}
		costs, err := stages.Costs(p)
		if err != nil {
			t.Fatal(err)
		}
		before, err := stages.Balance(costs, []int{1, 1, 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stages.Cut(p, before); !errors.Is(err, stages.ErrCut) {
			t.Errorf("%q becomes %q: %v", optimizer.EarlierName(c.k, weight), c.value, err)
		}
	}
}

// A weight is updated after the last backward of its step: a program in which an earlier backward makes its next value
// is refused, since forwards of later steps follow that.
func TestProgramsThatUpdateBeforeTheLastBackward(t *testing.T) {
	batch, o := model.Batch{Sequences: 4, Length: 6, Micro: 2}, adam(1)
	o.Nesterov = true
	j, plan := lateJob(t, gpt2(t, 3, true, batch, adam(1)), batch, o, 3, 2)
	shapes, found := j.step.InputShapes(), 0
	for k, out := range j.step.Outputs {
		if !slices.Contains(plan.Stages[0].State, out.Name) || !strings.HasPrefix(out.Name, parts.Param) {
			continue
		}
		made := -1
		for i, at := range plan.At {
			if at.Stage == 0 && at.Task == (order.Task{Phase: order.Backward}) &&
				j.step.Ops[i].Out.Equal(shapes[out.Name]) {
				made = i
			}
		}
		if made < 0 {
			continue
		}
		p := &program.Program{Numerics: j.step.Numerics, Ops: j.step.Ops, Outputs: slices.Clone(j.step.Outputs)}
		p.Outputs[k].Value = int32(made)
		found++
		costs, err := stages.Costs(p)
		if err != nil {
			t.Fatal(err)
		}
		before, err := stages.Balance(costs, []int{1, 1, 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stages.Cut(p, before); !errors.Is(err, stages.ErrCut) {
			t.Errorf("%q is made in the backward of the first microbatch: %v", out.Name, err)
		}
	}
	if found == 0 {
		t.Error("no value of a backward has the shape of a weight")
	}
}

// ages are the states before each step, and after the last.
func (j job) ages(t testing.TB, steps uint32) (all []map[string]*tensor.Tensor) {
	t.Helper()
	all = append(all, j.begin())
	for n := range steps {
		state, _ := j.whole(t, n+1)
		all = append(all, state)
	}
	return all
}

// A stage has as many microbatches under way as its rule says, and a backward reads the weights of its forward.
func TestVersionsAreAFunctionOfStageAndMicrobatch(t *testing.T) {
	for _, c := range []struct{ late, micro, stages int }{{1, 4, 4}, {3, 1, 4}, {2, 3, 5}, {8, 2, 2}, {1, 16, 8}} {
		for s := range c.stages {
			ahead := stages.Ahead(c.late, c.micro, c.stages, s)
			by := stages.LateOf(c.late, c.micro, c.stages, s)
			var tasks []order.Task
			for k := range c.micro {
				tasks = append(tasks, order.Task{Phase: order.Forward, Number: k}, order.Task{Phase: order.Backward, Number: k})
			}
			done, forward, backward := 0, 0, 0
			for _, t2 := range order.Continuous(tasks, ahead, 20) {
				age := int(t2.Step) - by // the updates that the weights of the step have
				if age > done || done > int(t2.Step) || done-max(age, 0) > by {
					t.Fatalf("%+v: %v of step %d of stage %d, after %d updates", c, t2.Task, t2.Step, s, done)
				}
				switch t2.Phase {
				case order.Forward:
					forward++
				case order.Backward:
					if backward++; backward%c.micro == 0 {
						done++
					}
				}
				if forward-backward > ahead+1 || forward < backward {
					t.Fatalf("%+v: %d microbatches are under way in stage %d, of %d", c, forward-backward, s, ahead+1)
				}
			}
			if done != 20 || s == c.stages-1 && by != 0 {
				t.Errorf("%+v: %d steps of stage %d, which is late by %d", c, done, s, by)
			}
		}
	}
}

package pass_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/boundary"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
)

// job is a model with a step.
type job struct {
	config architecture.Config
	step   *program.Program
}

func adam(clip float64) optimizer.AdamW {
	return optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: clip}
}

func newJob(t testing.TB, name string, keys map[string]any, b model.Batch, o optimizer.Optimizer) job {
	t.Helper()
	c, err := architecture.Parse(name, keys)
	if err != nil {
		t.Fatal(err)
	}
	return jobOf(t, c, b, o)
}

func jobOf(t testing.TB, c architecture.Config, b model.Batch, o optimizer.Optimizer) job {
	t.Helper()
	task, err := model.LanguageOf(c, b)
	if err != nil {
		t.Fatal(err)
	}
	step, err := task.TrainStep(o)
	if err != nil {
		t.Fatal(err)
	}
	return job{c, step}
}

func gpt2(t testing.TB, layers int, tied bool, b model.Batch, o optimizer.Optimizer) job {
	return newJob(t, "gpt2", map[string]any{"n_layer": layers, "n_embd": 16, "n_head": 2, "n_positions": 12,
		"vocab_size": 61, "tie_word_embeddings": tied}, b, o)
}

func llama(t testing.TB, layers int, b model.Batch, o optimizer.Optimizer) job {
	return newJob(t, "llama", map[string]any{"num_hidden_layers": layers, "hidden_size": 16, "num_attention_heads": 4,
		"num_key_value_heads": 2, "intermediate_size": 24, "max_position_embeddings": 12, "vocab_size": 61}, b, o)
}

// adapted is llama with adapters, which alone are trained.
func adapted(t testing.TB, layers int, b model.Batch, o optimizer.Optimizer) job {
	t.Helper()
	c, err := llama(t, layers, b, o).config.Adapt(architecture.LoRA{Rank: 2, Alpha: 4,
		Targets: []string{architecture.AllLinear}})
	if err != nil {
		t.Fatal(err)
	}
	return jobOf(t, c, b, o)
}

// begin is the state of a job before its first step, by name.
func (j job) begin() map[string]*tensor.Tensor {
	shapes, state, weights := j.step.InputShapes(), map[string]*tensor.Tensor{}, j.config.Init(3)
	for _, n := range parts.StateNames(j.step) {
		state[n] = tensor.New(shapes[n])
	}
	for _, n := range slices.Concat(parts.Params(j.step), parts.Frozen(j.step)) {
		state[parts.Param+n] = tensor.New(shapes[parts.Param+n])
		x := state[parts.Param+n].F32()
		for i := range x {
			x[i] = float32((i*7919+len(n)*104729)%2003)/8000 - 0.125
		}
		if w := weights[n]; w != nil {
			copy(x, w.F32())
		}
	}
	for n := range state {
		if _, of, ok := optimizer.EarlierOf(n); ok {
			state[n] = state[parts.Param+of].Clone()
		}
	}
	for n := range shapes { // of a proximal term
		if n[:2] == parts.Anchor {
			state[n] = weights[n[2:]].Clone()
		}
	}
	return state
}

// inputs are those of a step that are no state.
func (j job) inputs(step uint32) map[string]*tensor.Tensor {
	shapes, in := j.step.InputShapes(), map[string]*tensor.Tensor{}
	tokens := tensor.New(shapes["tokens"])
	for i := range tokens.I32() {
		tokens.I32()[i] = int32((uint32(i)*7 + step*13 + uint32(i*i)) % 61)
	}
	in["tokens"] = tokens
	for i, n := range []string{"lr", "c1", "c2"} {
		in[n] = tensor.Scalar([]float32{0.01, 1.5, 1.25}[i])
	}
	if shape, ok := shapes["dice"]; ok {
		in["dice"] = tensor.New(shape)
		copy(in["dice"].I64(), []int64{9, 1 << 62, int64(step) << 32})
	}
	return in
}

// whole computes steps in one program, and returns the last state and the losses.
func (j job) whole(t testing.TB, steps uint32) (map[string]*tensor.Tensor, []float32) {
	t.Helper()
	x, err := cpu.Compile(j.step, 1)
	if err != nil {
		t.Fatal(err)
	}
	state, losses := j.begin(), []float32(nil)
	for step := range steps {
		in := j.inputs(step)
		for n, s := range state {
			in[n] = s
		}
		out, err := x.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range parts.StateNames(j.step) {
			state[n] = out[n]
		}
		losses = append(losses, out["loss"].F32()[0], out["grad_norm"].F32()[0])
	}
	return state, losses
}

// channels is a wire between stages that are goroutines.
type channels struct {
	number int
	lines  map[[2]int]chan pass.Frame
	early  map[string]pass.Frame
	change func(from, to int, f *pass.Frame)
}

func key(from int, step uint32, t order.Task) string { return fmt.Sprint(from, step, t) }

func (c *channels) Send(to int, f pass.Frame) error {
	f.Values = slices.Clone(f.Values)
	for i, x := range f.Values {
		f.Values[i] = x.Clone()
	}
	if c.change != nil {
		c.change(c.number, to, &f)
	}
	c.lines[[2]int{c.number, to}] <- f
	return nil
}

func (c *channels) Receive(from int, step uint32, t order.Task) (pass.Frame, error) {
	for {
		if f, ok := c.early[key(from, step, t)]; ok {
			return f, nil
		}
		f, ok := <-c.lines[[2]int{from, c.number}]
		if !ok {
			return f, errors.New("closed")
		}
		c.early[key(from, f.Step, f.Task)] = f
	}
}

// inStages computes steps in stages.
func (j job) inStages(t testing.TB, plan *stages.Plan, steps uint32,
	change func(from, to int, f *pass.Frame)) (map[string]*tensor.Tensor, []float32, []error) {
	t.Helper()
	lines := map[[2]int]chan pass.Frame{}
	for a := range plan.Stages {
		for b := range plan.Stages {
			lines[[2]int{a, b}] = make(chan pass.Frame, 1000)
		}
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	begin, state, losses := j.begin(), map[string]*tensor.Tensor{}, make([]float32, 2*steps)
	errs, tasks := make([]error, len(plan.Stages)), plan.Orders()
	for s := range plan.Stages {
		var own []*tensor.Tensor
		for _, n := range plan.Stages[s].State {
			own = append(own, begin[n])
		}
		st, err := pass.New(plan, s, tasks[s], own, 1)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			w := &channels{s, lines, map[string]pass.Frame{}, change}
			defer func() {
				for b := range plan.Stages {
					close(lines[[2]int{s, b}])
				}
			}()
			for step := range steps {
				told, err := st.Step(step, j.inputs(step), w)
				if err != nil {
					errs[s] = err
					return
				}
				mu.Lock()
				if told["loss"] != nil {
					losses[2*step] = told["loss"].F32()[0]
				}
				if told["grad_norm"] != nil {
					losses[2*step+1] = told["grad_norm"].F32()[0]
				}
				mu.Unlock()
			}
			mu.Lock()
			defer mu.Unlock()
			for i, x := range st.State() {
				state[plan.Stages[s].State[i]] = x
			}
		})
	}
	all.Wait()
	return state, losses, errs
}

// A step in stages has the bits of the step that was cut: for models with tied and other embeddings, all optimizers,
// microbatches, dropout, adapters and halves.
func TestStagesHaveTheBitsOfTheWhole(t *testing.T) {
	one, two := model.Batch{Sequences: 2, Length: 11}, model.Batch{Sequences: 4, Length: 11, Micro: 2}
	four, dropped, halves, silent := two, two, two, two
	four.Micro, dropped.Dropout, halves.Half, silent.Silent = 1, 0.2, true, 61
	clipped := optimizer.Common{MaxGradNorm: 0.1}
	stored := func(s optimizer.Storage) optimizer.AdamW {
		return optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1, Storage: s}
	}
	near := stored("")
	near.Proximal = 0.1
	factored := optimizer.Adafactor{Beta2: 0.99, Threshold: 1, Common: clipped}
	for name, c := range map[string]struct {
		job    job
		stages []int
	}{
		"gpt2 of one batch":     {gpt2(t, 4, false, one, adam(1)), []int{2, 4, 6}},
		"gpt2 of microbatches":  {gpt2(t, 8, false, four, adam(1)), []int{2, 4, 8, 10}},
		"gpt2, tied":            {gpt2(t, 4, true, two, adam(0.1)), []int{2, 4, 6}},
		"gpt2 without a norm":   {gpt2(t, 3, false, two, adam(0)), []int{3}},
		"llama":                 {llama(t, 8, four, adam(0.1)), []int{2, 4, 8}},
		"llama, sgd":            {llama(t, 3, two, optimizer.SGD{}), []int{2, 3}},
		"llama, momentum":       {llama(t, 3, two, optimizer.SGD{Momentum: 0.9, Nesterov: true, Common: clipped}), []int{3}},
		"llama, lion":           {llama(t, 3, two, optimizer.Lion{Beta1: 0.9, Beta2: 0.99, Common: clipped}), []int{3}},
		"llama, adafactor":      {llama(t, 3, two, factored), []int{3}},
		"tied, adafactor":       {gpt2(t, 3, true, two, factored), []int{3}},
		"proximal":              {llama(t, 3, two, near), []int{2}},
		"moments in 8 bits":     {llama(t, 3, two, stored(optimizer.Blocks)), []int{3}},
		"moments in halves":     {llama(t, 3, two, stored(optimizer.Half)), []int{3}},
		"dropout":               {gpt2(t, 3, true, dropped, adam(1)), []int{3}},
		"halves":                {llama(t, 3, halves, adam(1)), []int{3}},
		"adapters":              {adapted(t, 4, two, adam(1)), []int{2, 4, 6}},
		"tokens without a loss": {llama(t, 3, silent, adam(1)), []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			const steps = 3
			want, wantLosses := c.job.whole(t, steps)
			costs, err := stages.Costs(c.job.step)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range c.stages {
				before, err := stages.Balance(costs, slices.Repeat([]int{1}, n))
				if err != nil {
					t.Fatal(err)
				}
				plan, err := stages.Cut(c.job.step, before)
				if err != nil {
					t.Fatal(err)
				}
				got, losses, errs := c.job.inStages(t, plan, steps, nil)
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				for name, x := range want {
					if got[name] == nil || got[name].Root() != x.Root() {
						t.Fatalf("%d stages before %v: %q has other bits", n, before, name)
					}
				}
				if !slices.Equal(losses, wantLosses) {
					t.Errorf("%d stages: losses and norms %v, wanted %v", n, losses, wantLosses)
				}
			}
		})
	}
}

// Every architecture can be cut, and every place before a layer is one tensor forward and one back.
func TestEveryArchitecture(t *testing.T) {
	decoder := map[string]any{"num_hidden_layers": 3, "hidden_size": 16, "num_attention_heads": 2,
		"max_position_embeddings": 12, "vocab_size": 61}
	inner := map[string]string{architecture.OPT: "ffn_dim"}
	for _, name := range architecture.Architectures() {
		keys := maps.Clone(decoder)
		keys[cmp.Or(inner[name], "intermediate_size")] = 24
		if name == architecture.GPT2 {
			keys = map[string]any{"n_layer": 3, "n_embd": 16, "n_head": 4, "n_positions": 12, "vocab_size": 61}
		}
		j := newJob(t, name, keys, model.Batch{Sequences: 2, Length: 11, Micro: 1}, adam(0.1))
		plan, err := stages.Cut(j.step, []int{2, 4})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wide := 0
		for _, tr := range plan.Transfers {
			if tr.From == 0 && tr.To == 1 && tr.After.Phase == order.Forward || tr.From == 1 && tr.To == 0 &&
				tr.After.Phase == order.Backward && tr.Shape.Rank() > 1 {
				wide++
			}
		}
		if wide != 4 {
			t.Errorf("%s: %d values of two microbatches cross a layer, wanted 4", name, wide)
		}
		want, _ := j.whole(t, 2)
		got, _, errs := j.inStages(t, plan, 2, nil)
		if err := errors.Join(errs...); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for n, x := range want {
			if got[n] == nil || got[n].Root() != x.Root() {
				t.Errorf("%s: %q has other bits", name, n)
			}
		}
	}
}

// So has a step whose values between stages are sent in fewer bytes, in as many stages as it was made for.
func TestSmallerBoundariesHaveTheBitsOfTheWhole(t *testing.T) {
	b := model.Batch{Sequences: 4, Length: 11, Micro: 2}
	for name, j := range map[string]job{"gpt2, tied": gpt2(t, 4, true, b, adam(1)), "llama": llama(t, 4, b, adam(1))} {
		for _, sent := range []boundary.Scheme{{Bits: 4}, {Columns: 5}, {Columns: 16}} {
			before, whole := []int{2, 3, 5}, j
			var err error
			if whole.step, err = boundary.Compress(j.step, before, sent); err != nil {
				t.Fatal(err)
			}
			plan, err := stages.Cut(whole.step, before)
			if err != nil {
				t.Fatal(err)
			}
			forward, back := sent.Bytes(2*11, 16)
			for k := range 2 {
				f, b := plan.Frame(1, 2, order.Task{Phase: order.Forward, Number: k}),
					plan.Frame(2, 1, order.Task{Phase: order.Backward, Number: k})
				if got, want := bytesOf(f), forward; got != want {
					t.Errorf("%s, %+v: %d bytes forward, the formula says %d", name, sent, got, want)
				}
				if got, want := bytesOf(b), back; got != want {
					t.Errorf("%s, %+v: %d bytes back, the formula says %d", name, sent, got, want)
				}
			}
			want, wantLosses := whole.whole(t, 3)
			got, losses, errs := whole.inStages(t, plan, 3, nil)
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			for n, x := range want {
				if got[n] == nil || got[n].Root() != x.Root() {
					t.Fatalf("%s, %+v: %q has other bits", name, sent, n)
				}
			}
			if !slices.Equal(losses, wantLosses) {
				t.Errorf("%s, %+v: losses and norms %v, wanted %v", name, sent, losses, wantLosses)
			}
		}
	}
}

// bytesOf are those of the values of a frame but gradients of single biases.
func bytesOf(frame []stages.Transfer) (n int) {
	for _, t := range frame {
		if t.Shape.Rank() > 1 || t.Shape.DType != tensor.Float32 {
			n += t.Shape.Bytes()
		}
	}
	return n
}

// Frames of other shapes, of other tasks and of other numbers are refused.
func TestFramesAreChecked(t *testing.T) {
	j := llama(t, 2, model.Batch{Sequences: 2, Length: 11, Micro: 1}, adam(1))
	plan, err := stages.Cut(j.step, []int{2})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(f *pass.Frame){
		"another shape": func(f *pass.Frame) { f.Values[0] = tensor.FromF32(make([]float32, 3), 3) },
		"too few":       func(f *pass.Frame) { f.Values = f.Values[1:] },
		"too many":      func(f *pass.Frame) { f.Values = append(f.Values, f.Values[0]) },
	} {
		for _, from := range []int{0, 1} { // a forward, a backward
			_, _, errs := j.inStages(t, plan, 1, func(a, _ int, f *pass.Frame) {
				if a == from && f.Task.Phase == order.Phase(2+from) {
					change(f)
				}
			})
			if !errors.Is(errs[1-from], pass.ErrFrame) {
				t.Errorf("%s of stage %d: %v", name, from, errs[1-from])
			}
		}
	}
}

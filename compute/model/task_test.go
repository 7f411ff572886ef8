package model

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// taskInputs returns the inputs of the first step of a task.
func taskInputs(task Task, w, batch state, o AdamW, lr float64) state {
	in := maps.Clone(batch)
	for name, x := range w {
		in["p/"+name] = x
	}
	for _, n := range task.Trained {
		in["m/"+n.Name], in["v/"+n.Name] = tensor.New(n.Shape), tensor.New(n.Shape)
	}
	setStep(in, o, lr, 1)
	return in
}

// evalInputs are those of the inputs of a step that Eval has.
func evalInputs(task Task, in state) state {
	out := state{}
	for _, n := range task.Batch {
		out[n.Name] = in[n.Name]
	}
	for _, list := range [][]Named{task.Frozen, task.Trained} {
		for _, n := range list {
			out["p/"+n.Name] = in["p/"+n.Name]
		}
	}
	return out
}

// checkGradients compares the gradients of a task with central differences of the loss: along the gradient of each
// tensor, and for a sample of its entries. With beta1 = 0 and no clipping the first moment after a step is the gradient.
func checkGradients(t *testing.T, name string, task Task, w, batch state, h float64) {
	t.Helper()
	o := AdamW{Eps: 1e-8}
	p, err := task.TrainStep(o)
	e := mustCompile(t, p, err)
	in := taskInputs(task, w, batch, o, 0)
	out := mustRun(t, e, in)
	loss := func() float64 { return scalar(mustRun(t, e, in)["loss"]) }
	if task.RandomBlocks() == 0 {
		p, err = task.Eval()
		eval := mustRun(t, mustCompile(t, p, err), evalInputs(task, in))
		for _, metric := range append([]string{"loss"}, task.Metrics...) {
			if eval[metric].Root() != out[metric].Root() {
				t.Errorf("%s: %s is %v in a step, %v in Eval", name, metric, scalar(out[metric]), scalar(eval[metric]))
			}
		}
	}
	total := 0.0
	for _, n := range task.Trained {
		grad, data := out["m/"+n.Name].F32(), w[n.Name].F32()
		saved := w[n.Name].Clone().F32()
		slope := func(direction func(i int) float64) float64 {
			at := func(step float64) float64 {
				for i := range data {
					data[i] = float32(float64(saved[i]) + step*direction(i))
				}
				return loss()
			}
			wide, narrow := (at(h)-at(-h))/(2*h), (at(h/2)-at(-h/2))/h
			copy(data, saved)
			return (4*narrow - wide) / 3 // Richardson: without the part in h squared
		}
		norm := 0.0
		for _, g := range grad {
			norm += float64(g) * float64(g)
		}
		total += norm
		norm = math.Sqrt(norm)
		if norm < 1e-3 {
			t.Errorf("%s: gradient of %s is %g, too small to check", name, n.Name, norm)
		}
		along := slope(func(i int) float64 { return float64(grad[i]) / norm })
		checkNear(t, fmt.Sprintf("%s: slope along the gradient of %s", name, n.Name), along, norm, 1e-4+0.01*norm)
		for k := range 4 {
			entry := (k*len(grad)/4 + 7*k) % len(grad)
			got := slope(func(i int) float64 { return unitVector(i, entry) })
			g := float64(grad[entry])
			checkNear(t, fmt.Sprintf("%s: gradient %d of %s", name, entry, n.Name), g, got, 2e-4+0.02*math.Abs(g))
		}
	}
	checkNear(t, name+" gradient norm", scalar(out["grad_norm"]), math.Sqrt(total), 1e-5*math.Sqrt(total))
}

// A trial is a task with tensors and a batch to run it on.
type trial struct {
	task     Task
	w, batch state
}

func mustTask(t testing.TB, task Task, err error) Task {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func noise(seed, stream uint64, dims ...int) *tensor.Tensor {
	x := tensor.New(tensor.Make(tensor.Float32, dims...))
	kernel.NormalTo(x.F32(), seed, stream)
	return x
}

func someIDs(seed uint64, below, n int) *tensor.Tensor {
	random, ids := kernel.NewPhilox(seed, 1), make([]int32, n)
	for i := range ids {
		ids[i] = int32(random.Uint64n(uint64(below)))
	}
	return tensor.FromI32(ids, n)
}

// ring is a graph of nodes with two chords; node nodes-1 has no neighbour.
func ring(nodes int) (pairs [][2]int32) {
	for i := range int32(nodes - 1) {
		pairs = append(pairs, [2]int32{i, (i + 1) % int32(nodes-1)})
	}
	return append(pairs, [2]int32{0, 3}, [2]int32{3, 0}, [2]int32{5, 2})
}

// networkTrials are the small classifiers of the tests, each without and with dropout.
func networkTrials(t testing.TB) map[string]trial {
	trials := map[string]trial{}
	for suffix, rate := range map[string]float64{"": 0, "-dropout": 0.2} {
		for name, n := range map[string]Network{
			"mlp":      MLP{Inputs: 7, Hidden: []int{9, 8}, Classes: 3, Dropout: rate},
			"cnn":      CNN{Rows: 8, Columns: 10, Colours: 2, Channels: []int{3, 4}, Kernel: 3, Hidden: 6, Classes: 3, Dropout: rate},
			"cnn-mean": CNN{Rows: 7, Columns: 5, Colours: 1, Channels: []int{3}, Kernel: 5, MeanPool: true, Hidden: 6, Classes: 4, Dropout: rate},
		} {
			task, err := Classify(n, 5)
			mustTask(t, task, err)
			batch := state{"x": noise(3, 0, task.Batch[0].Shape.Dims...), "y": someIDs(4, 3, 5)}
			trials[name+suffix] = trial{task, strongWeights(task.Trained), batch}
		}
		for name, n := range map[string]GraphNet{
			"gcn":  {Inputs: 5, Hidden: 6, Classes: 3, Layers: 2, Dropout: rate},
			"sage": {Sage: true, Inputs: 5, Hidden: 4, Classes: 3, Layers: 3, Dropout: rate},
		} {
			const nodes = 8
			edges := GCNEdges
			if n.Sage {
				edges = MeanEdges
			}
			from, to, weight, err := edges(nodes, ring(nodes))
			if err != nil {
				t.Fatal(err)
			}
			task, err := ClassifyNodes(n, nodes, len(from))
			mustTask(t, task, err)
			batch := state{"x": noise(5, 0, nodes, n.Inputs), "y": someIDs(6, n.Classes, nodes),
				"from": tensor.FromI32(from, len(from)), "to": tensor.FromI32(to, len(to)), "weight": tensor.FromF32(weight, len(weight)),
				"mask": tensor.FromF32([]float32{1, 1, 0, 1, 1, 0, 1, 1}, nodes)}
			trials[name+suffix] = trial{task, strongWeights(task.Trained), batch}
		}
	}
	for _, tr := range trials {
		if tr.task.RandomBlocks() > 0 {
			tr.batch["random"] = tensor.FromI64([]int64{7, 8, 9}, 3)
		}
	}
	return trials
}

func TestNetworkGradients(t *testing.T) {
	for name, tr := range networkTrials(t) {
		checkGradients(t, name, tr.task, tr.w, tr.batch, 5e-3)
	}
}

// TestNetworkOverfit trains on one batch until it is all but known by heart.
func TestNetworkOverfit(t *testing.T) {
	o := AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1}
	for name, tr := range networkTrials(t) {
		p, err := tr.task.TrainStep(o)
		e := mustCompile(t, p, err)
		in := taskInputs(tr.task, Init(tr.task.Trained, 8), tr.batch, o, 0)
		var first, last state
		for step := 1; step <= 150; step++ {
			setStep(in, o, 0.02, step)
			last = mustRun(t, e, in)
			if step == 1 {
				first = last
			}
			carry(tr.task, in, last)
		}
		if tr.task.RandomBlocks() > 0 {
			p, err := tr.task.Eval()
			last = mustRun(t, mustCompile(t, p, err), evalInputs(tr.task, in))
		}
		if !(scalar(last["loss"]) < 0.2*scalar(first["loss"])) || scalar(last["accuracy"]) != 1 {
			t.Errorf("%s: the loss went from %g to %g, accuracy %g", name, scalar(first["loss"]), scalar(last["loss"]), scalar(last["accuracy"]))
		}
	}
}

// carry makes the outputs of a step the inputs of the next one.
func carry(task Task, in, out state) {
	for _, n := range task.Trained {
		for _, prefix := range []string{"p/", "m/", "v/"} {
			in[prefix+n.Name] = out[prefix+n.Name]
		}
	}
	if random := in["random"]; random != nil {
		next := random.Clone()
		next.I64()[2] += task.RandomBlocks()
		in["random"] = next
	}
}

// TestDropoutIsAddressed checks that the loss of a step depends on the key alone, and that a key further on differs.
func TestDropoutIsAddressed(t *testing.T) {
	tr := networkTrials(t)["mlp-dropout"]
	o := AdamW{Eps: 1e-8}
	p, err := tr.task.TrainStep(o)
	e := mustCompile(t, p, err)
	in := taskInputs(tr.task, tr.w, tr.batch, o, 0)
	loss := func(seed, stream, index int64) canon.Digest {
		in["random"] = tensor.FromI64([]int64{seed, stream, index}, 3)
		return mustRun(t, e, in)["loss"].Root()
	}
	here := loss(1, 2, 3)
	if loss(1, 2, 3) != here {
		t.Error("one key gives two losses")
	}
	for _, other := range [][3]int64{{0, 2, 3}, {1, 0, 3}, {1, 2, 3 + tr.task.RandomBlocks()}} {
		if loss(other[0], other[1], other[2]) == here {
			t.Errorf("key %v gives the masks of another", other)
		}
	}
	if got, want := tr.task.RandomBlocks(), int64(12+10); got != want {
		t.Errorf("%d blocks, want %d: 45 and 40 words in blocks of 4", got, want)
	}
}

func TestTaskErrors(t *testing.T) {
	cnn := CNN{Rows: 8, Columns: 8, Colours: 1, Channels: []int{2}, Kernel: 3, Hidden: 2, Classes: 2}
	even, deep, odd := cnn, cnn, cnn
	even.Kernel, deep.Channels, odd.Dropout = 2, []int{1, 1, 1, 1}, math.NaN()
	third := func(_, _ []int32, _ []float32, err error) error { return err }
	failed := func(_ Task, err error) error { return err }
	for i, err := range []error{
		failed(Classify(cnn, 0)), failed(Classify(even, 1)), failed(Classify(deep, 1)), failed(Classify(odd, 1)),
		failed(Classify(MLP{Inputs: 1, Classes: 0}, 1)), failed(Classify(MLP{Inputs: 1, Classes: 2, Dropout: 1}, 1)),
		failed(ClassifyNodes(GraphNet{Inputs: 1, Hidden: 1, Classes: 1}, 3, 3)),
		failed(ClassifyNodes(GraphNet{Inputs: 1, Hidden: 1, Classes: 1, Layers: 1}, 3, 0)),
		third(GCNEdges(2, [][2]int32{{0, 2}})), third(MeanEdges(2, [][2]int32{{-1, 0}})),
	} {
		if !errors.Is(err, ErrStep) {
			t.Errorf("case %d: got %v, want ErrStep", i, err)
		}
	}
}

func unitVector(i, entry int) float64 {
	if i == entry {
		return 1
	}
	return 0
}

// BenchmarkCNN is a step of a network of 207 thousand weights on 32 images of 28 x 28.
func BenchmarkCNN(b *testing.B) {
	task, err := Classify(CNN{Rows: 28, Columns: 28, Colours: 1, Channels: []int{16, 32}, Kernel: 5, Hidden: 120, Classes: 10, Dropout: 0.5}, 32)
	mustTask(b, task, err)
	o := AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	p, err := task.TrainStep(o)
	e := mustCompile(b, p, err)
	in := taskInputs(task, Init(task.Trained, 1), state{"x": noise(1, 0, 32, 28, 28, 1), "y": someIDs(2, 10, 32),
		"random": tensor.FromI64([]int64{1, 2, 3}, 3)}, o, 1e-3)
	out := mustRun(b, e, in)
	for b.Loop() {
		if err := e.RunInto(in, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(p.Flops())/1e9, "GFLOP/step")
}

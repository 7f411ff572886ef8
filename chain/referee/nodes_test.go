package referee

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/nodes"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/gnn"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
)

// nodesJob makes a task that classifies the nodes of a graph, and its first checkpoint.
func nodesJob(t *testing.T, name string) (*train.Task, *train.Checkpoint) {
	t.Helper()
	plain, _ := job(t, tiny)
	random, g, rows := philox.New(4, 0), &nodes.Graph{}, [][]uint32{}
	for i := range 40 {
		own := make([]float32, 6)
		philox.NormalTo(own, 5, uint64(i))
		g.IDs, g.Features = append(g.IDs, fmt.Sprint(i)), append(g.Features, own)
		rows = append(rows, nodes.Row(uint32(i%3), uint32(i)))
		for j := range i {
			if random.Uint64n(6) == 0 {
				g.Edges = append(g.Edges, [2]int32{int32(i), int32(j)}, [2]int32{int32(j), int32(i)})
			}
		}
	}
	read, size := gnn.Messages(name, g)
	n, err := gnn.Parse(name, map[string]any{"hidden_sizes": []any{5}}, size, []string{"a", "b", "c"})
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := data.Rows(rows, 256, 1, 0.1)
	if err != nil {
		t.Fatal(err)
	}
	classes, err := model.Classify(n, model.Batch{Sequences: tiny.batch, Dropout: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	step, err := classes.TrainStep(adamw)
	if err != nil {
		t.Fatal(err)
	}
	task := &train.Task{Step: step, Corpus: corpus}
	for _, frozen := range train.Frozen(step) {
		task.Frozen = append(task.Frozen, read[frozen])
	}
	spec := *plain.Spec
	spec.Program, spec.Length, spec.Data = step.Digest(), uint32(1+n.Example()), corpus.Manifest(shardTokens).Digest()
	spec.Frozen = train.FrozenRoot(train.Roots(task.Frozen))
	task.Spec = &spec
	base, err := outer.Genesis(spec.Exchange, train.Params(step), architecture.Init(n.Tensors(), 3))
	if err != nil {
		t.Fatal(err)
	}
	return compile(t, task), base
}

// A worker that computes another network of a graph is convicted over a tile, and one that reads another graph over the
// tensor that it changed.
func TestOtherGraphNetwork(t *testing.T) {
	for _, name := range []string{gnn.GCN, gnn.SAGE} {
		task, base := nodesJob(t, name)
		w := witness.New(task, base, unit, nil, shardTokens)
		r := newReferee(task.Spec, task.Step)
		for _, i := range distinct(task.Step) {
			checkPart(t, w, r, base, i, 0)
		}
		honest := vouch(t, task, base, unit, nil)
		sources := task.Step.Ops[slices.IndexFunc(task.Step.Ops,
			func(op program.Operator) bool { return op.Kind == program.TakeRows })].In[1]
		liars := map[string]*train.Task{}
		for kind, change := range map[program.Kind]func(op *program.Operator){
			program.Max:     func(op *program.Operator) { op.Kind = program.Min },
			program.Mul:     func(op *program.Operator) { op.Kind = program.Add },
			program.AddRows: func(op *program.Operator) { op.In[1] = sources }, // messages go back to their senders
		} {
			liars[kind.String()] = tampered(t, task, kind, change)
		}
		for i, frozen := range train.Frozen(task.Step) {
			other := *task
			other.Frozen = append([]*tensor.Tensor{}, task.Frozen...)
			other.Frozen[i] = task.Frozen[i].Clone()
			if x := other.Frozen[i]; x.Shape.DType == tensor.Int32 {
				x.I32()[3] ^= 1
			} else {
				x.F32()[3]++
			}
			liars[frozen] = compile(t, &other)
		}
		for lie, wrong := range liars {
			v := convict(t, name+", "+lie, task, wrong, base, honest)
			at := strings.TrimPrefix(task.Step.Ops[v.Operator].Name, train.Param)
			if slices.Contains(train.Frozen(task.Step), lie) && at != lie {
				t.Errorf("%s, %s: verdict %+v about %q", name, lie, v, at)
			}
		}
	}
}

// Of the largest graph that is read, every part of the step can be shown to the referee.
func TestLargestGraphIsDecidable(t *testing.T) {
	plain, _ := job(t, tiny)
	for name, size := range map[string]gnn.Size{
		gnn.GCN: {Nodes: nodes.MaxNodes, Features: nodes.MaxValues / nodes.MaxNodes,
			Messages: 2*nodes.MaxEdges + nodes.MaxNodes},
		gnn.SAGE: {Nodes: nodes.MaxValues / nodes.MaxFeatures, Features: nodes.MaxFeatures, Messages: 1 << 21},
	} {
		n, err := gnn.Parse(name, nil, size, []string{"a", "b", "c"})
		if err != nil {
			t.Fatal(err)
		}
		task, err := model.Classify(n, model.Batch{Sequences: 1 << 14})
		if err != nil {
			t.Fatal(err)
		}
		step, err := task.TrainStep(adamw)
		if err != nil {
			t.Fatal(err)
		}
		spec := *plain.Spec
		spec.Program, spec.Length, spec.Batch = step.Digest(), nodes.RowTokens, 1<<14
		if err := Check(&spec, step, plain.Corpus.Manifest(shardTokens)); err != nil {
			t.Errorf("%s, %+v: %v", name, size, err)
		}
		t.Logf("%s, %+v: %.3g operations a step", name, size, float64(step.Flops()))
	}
}

package gnn

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/nodes"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// drawn is a directed graph in which node 0 receives no message from another.
func drawn(n, width int) *nodes.Graph {
	g, random := &nodes.Graph{}, philox.New(5, 0)
	for i := range n {
		own := make([]float32, width)
		philox.NormalTo(own, 6, uint64(i))
		g.IDs, g.Classes = append(g.IDs, string(rune('a'+i))), append(g.Classes, "")
		g.Features = append(g.Features, own)
		for j := 1; j < n; j++ {
			if j != i && random.Uint64n(3) == 0 {
				g.Edges = append(g.Edges, [2]int32{int32(i), int32(j)})
			}
		}
	}
	return g
}

var labels = []string{"ant", "bee", "cat"}

// network is one of a drawn graph, and the values that it reads.
func network(t *testing.T, name string, count int, config map[string]any) (Network, map[string]*tensor.Tensor,
	*nodes.Graph) {
	t.Helper()
	g := drawn(count, 5)
	read, size := Messages(name, g)
	n, err := Parse(name, config, size, labels)
	if err != nil {
		t.Fatal(err)
	}
	return n, read, g
}

// A configuration is read as it was written.
func TestConfig(t *testing.T) {
	n, _, _ := network(t, GCN, 11, map[string]any{"hidden_sizes": []any{7, 4}})
	again, err := Read(n.JSON())
	if err != nil || string(again.JSON()) != string(n.JSON()) || again.Size() != n.Size() ||
		!slices.Equal(again.Labels(), labels) || n.Parameters() != 5*7+7+7*4+4+4*3+3 {
		t.Errorf("%s\n%v", again.JSON(), err)
	}
	if n, _, _ := network(t, SAGE, 11, nil); n.Parameters() != 2*5*16+16+2*16*3+3 {
		t.Errorf("%d parameters", n.Parameters())
	}
	const whole = `{"model_type": "gcn", "num_nodes": 4, "num_features": 2, "num_messages": 9, ` +
		`"id2label": {"0": "a", "1": "b"}}`
	for change, want := range map[[2]string]string{
		{`"gcn"`, `"gat"`}:                 "gat",
		{`nodes": 4`, `nodes": 0`}:         "num_nodes",
		{`nodes": 4`, `nodes": 65537`}:     "num_nodes",
		{`features": 2`, `features": 0`}:   "num_features",
		{`messages": 9`, `messages": 0`}:   "num_messages",
		{`messages": 9`, `messages": 1e8`}: "num_messages",
		{`"1": `, `"2": `}:                 "class 1",
		{`, "1": "b"`, ``}:                 "1 classes",
		{`}}`, `}, "hidden_sizes": [0]}`}:  "hidden_sizes",
		{`}}`, `}, "width": 3}`}:           "width",
		{`}}`, ``}:                         "JSON",
	} {
		config := strings.Replace(whole, change[0], change[1], 1)
		if _, err := Read([]byte(config)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
	large := strings.Replace(strings.Replace(whole, `nodes": 4`, `nodes": 65536`, 1), `features": 2`, `features": 513`, 1)
	if _, err := Read([]byte(large)); err == nil || !strings.Contains(err.Error(), "num_features") {
		t.Errorf("%v", err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model_type": "sage", "num_nodes": 4, "num_features": 2, "num_messages": 9, ` +
		`"id2label": {"0": "a", "1": "b"}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if n, err := Read(raw); err == nil {
			if again, err := Read(n.JSON()); err != nil || string(again.JSON()) != string(n.JSON()) {
				t.Fatalf("%s: %v", n.JSON(), err)
			}
		}
	})
}

// Messages are in order, and their weights those of the papers.
func TestMessages(t *testing.T) {
	g := &nodes.Graph{IDs: []string{"a", "b", "c"}, Features: [][]float32{{1}, {2}, {3}},
		Edges: [][2]int32{{0, 1}, {1, 0}, {1, 2}, {2, 1}}}
	third, sixth := float32(1/3.0), float32(1/math.Sqrt(6))
	for name, want := range map[string][3]*tensor.Tensor{
		GCN: {tensor.FromI32([]int32{0, 1, 0, 1, 2, 1, 2}, 7), tensor.FromI32([]int32{0, 0, 1, 1, 1, 2, 2}, 7),
			tensor.FromF32([]float32{0.5, sixth, sixth, third, sixth, sixth, 0.5}, 7)},
		SAGE: {tensor.FromI32([]int32{1, 0, 2, 1}, 4), tensor.FromI32([]int32{0, 1, 1, 2}, 4),
			tensor.FromF32([]float32{1, 0.5, 0.5, 1}, 4)},
	} {
		read, size := Messages(name, g)
		for i, key := range []string{nameSource, nameTarget, nameWeight} {
			if read[key].Root() != want[i].Root() {
				t.Errorf("%s: another %s", name, key)
			}
		}
		if size != (Size{3, 1, want[0].Shape.Dims[0]}) || !slices.Equal(read[nameFeatures].F32(), []float32{1, 2, 3}) {
			t.Errorf("%s: %+v", name, size)
		}
	}
}

// adjacency is what messages sum, from the edges alone, as a dense matrix in float64.
func adjacency(name string, g *nodes.Graph) [][]float64 {
	n := len(g.IDs)
	a := make([][]float64, n)
	for i := range a {
		a[i] = make([]float64, n)
		if name == GCN {
			a[i][i] = 1
		}
	}
	for _, e := range g.Edges {
		a[e[1]][e[0]] = 1
	}
	degree := make([]float64, n)
	for i, row := range a {
		for _, v := range row {
			degree[i] += v
		}
	}
	for i, row := range a {
		for j := range row {
			switch {
			case row[j] == 0:
			case name == GCN:
				row[j] /= math.Sqrt(degree[i]) * math.Sqrt(degree[j])
			default:
				row[j] /= degree[i]
			}
		}
	}
	return a
}

// times is a times b, or times b transposed.
func times(a, b [][]float64, transposed bool) [][]float64 {
	out := make([][]float64, len(a))
	for i := range a {
		columns := len(b[0])
		if transposed {
			columns = len(b)
		}
		out[i] = make([]float64, columns)
		for j := range columns {
			for k, v := range a[i] {
				if transposed {
					out[i][j] += v * b[j][k]
				} else {
					out[i][j] += v * b[k][j]
				}
			}
		}
	}
	return out
}

// plainScores are those of every node, by dense matrices in float64: neighbours are summed before they are mapped.
func plainScores(n Network, a [][]float64, g *nodes.Graph, w map[string]*tensor.Tensor) [][]float64 {
	matrix := func(t *tensor.Tensor) [][]float64 {
		rows := make([][]float64, t.Shape.Dims[0])
		for i := range rows {
			for _, v := range t.F32()[i*t.Shape.Dims[1] : (i+1)*t.Shape.Dims[1]] {
				rows[i] = append(rows[i], float64(v))
			}
		}
		return rows
	}
	var x [][]float64
	for _, own := range g.Features {
		x = append(x, nil)
		for _, v := range own {
			x[len(x)-1] = append(x[len(x)-1], float64(v))
		}
	}
	layers := len(n.hidden) + 1
	for i := range layers {
		name := "conv" + string(rune('1'+i)) + "."
		around := times(a, x, false)
		var y, own [][]float64
		var bias []float32
		if n.architecture == GCN {
			y, bias = times(around, matrix(w[name+"lin.weight"]), true), w[name+"bias"].F32()
		} else {
			y, bias = times(around, matrix(w[name+"lin_l.weight"]), true), w[name+"lin_l.bias"].F32()
			own = times(x, matrix(w[name+"lin_r.weight"]), true)
		}
		for r := range y {
			for c := range y[r] {
				y[r][c] += float64(bias[c])
				if own != nil {
					y[r][c] += own[r][c]
				}
				if i+1 < layers {
					y[r][c] = max(0, y[r][c])
				}
			}
		}
		x = y
	}
	return x
}

// weighted are weights of a network whose biases are not 0.
func weighted(n Network) map[string]*tensor.Tensor {
	w := architecture.Init(n.Tensors(), 3)
	for i, named := range n.Tensors() {
		if strings.HasSuffix(named.Name, "bias") {
			philox.NormalTo(w[named.Name].F32(), 5, uint64(i))
		}
	}
	return w
}

// examples are classes and nodes, in rows of a batch, and the tokens of the batch.
func examples(count, all int) (rows [][2]int32, tokens *tensor.Tensor) {
	random, flat := philox.New(8, 0), []int32{}
	for range count {
		row := [2]int32{int32(random.Uint64n(3)), int32(random.Uint64n(uint64(all)))}
		rows, flat = append(rows, row), append(flat, row[0], row[1], 0, 0, 0, 0, 0, 0, 2)
	}
	return rows, tensor.FromI32(flat, count, nodes.RowTokens+1)
}

// plainLoss is the mean cross-entropy of examples, and the share of them whose class has the highest score.
func plainLoss(scores [][]float64, rows [][2]int32) (loss, right float64) {
	for _, row := range rows {
		own, sum := scores[row[1]], 0.0
		for _, s := range own {
			sum += math.Exp(s)
		}
		loss += (math.Log(sum) - own[row[0]]) / float64(len(rows))
		if own[row[0]] == slices.Max(own) {
			right += 1 / float64(len(rows))
		}
	}
	return loss, right
}

// networks are small ones, and one of more messages than are sent at a time.
var networks = []struct {
	name   string
	nodes  int
	config map[string]any
}{{GCN, 11, map[string]any{"hidden_sizes": []any{7, 6}}}, {SAGE, 11, map[string]any{"hidden_sizes": []any{7}}},
	{SAGE, 11, map[string]any{"hidden_sizes": []any{}}}, {GCN, 700, map[string]any{"hidden_sizes": []any{2}}}}

// The loss and the accuracy are those of dense matrices in float64.
func TestScores(t *testing.T) {
	const count = 9
	for _, c := range networks {
		name := fmt.Sprintf("%s of %d nodes", c.name, c.nodes)
		n, read, g := network(t, c.name, c.nodes, c.config)
		if c.nodes > 100 && n.Size().Messages <= block {
			t.Fatalf("%+v", n.Size())
		}
		task, err := model.Classify(n, model.Batch{Sequences: count, Dropout: 0.5})
		if err != nil {
			t.Fatal(err)
		}
		p, err := task.Eval()
		if err != nil {
			t.Fatal(err)
		}
		exec, err := cpu.Compile(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		w, a := weighted(n), adjacency(c.name, g)
		rows, tokens := examples(count, len(g.IDs))
		in := map[string]*tensor.Tensor{"tokens": tokens}
		for _, all := range []map[string]*tensor.Tensor{w, read} {
			for name, x := range all {
				in["p/"+name] = x
			}
		}
		out, err := exec.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		loss, right := plainLoss(plainScores(n, a, g, w), rows)
		if got := float64(out["loss"].F32()[0]); math.Abs(got-loss) > 1e-5*loss {
			t.Errorf("%s: loss %v, want %v", name, got, loss)
		}
		if got := float64(out["accuracy"].F32()[0]); math.Abs(got-right) > 1e-6 {
			t.Errorf("%s: accuracy %v, want %v", name, got, right)
		}
	}
}

// A step of gradient descent moves every weight as differences of the loss of dense matrices say.
func TestGradients(t *testing.T) {
	const count, rate, small = 8, 1, 1e-3
	for _, c := range networks {
		name := fmt.Sprintf("%s of %d nodes", c.name, c.nodes)
		n, read, g := network(t, c.name, c.nodes, c.config)
		if c.nodes > 100 && n.Size().Messages <= block {
			t.Fatalf("%+v", n.Size())
		}
		task, err := model.Classify(n, model.Batch{Sequences: count, Micro: 4})
		if err != nil {
			t.Fatal(err)
		}
		p, err := task.TrainStep(optimizer.SGD{})
		if err != nil {
			t.Fatal(err)
		}
		exec, err := cpu.Compile(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		w, a := weighted(n), adjacency(c.name, g)
		rows, tokens := examples(count, len(g.IDs))
		in := map[string]*tensor.Tensor{"tokens": tokens, "lr": tensor.Scalar(rate), "c1": tensor.Scalar(1),
			"c2": tensor.Scalar(1)}
		given := maps.Clone(w)
		maps.Copy(given, read)
		for name, x := range given {
			in["p/"+name] = x.Clone()
		}
		out, err := exec.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		for _, named := range n.Tensors() {
			x := w[named.Name].F32()
			for i, before := range x {
				at := func(v float32) float64 {
					x[i] = v
					loss, _ := plainLoss(plainScores(n, a, g, w), rows)
					x[i] = before
					return loss
				}
				want := (at(before+small) - at(before-small)) / (float64(before+small) - float64(before-small))
				got := float64(before-out["p/"+named.Name].F32()[i]) / rate
				if math.Abs(got-want) > 2e-3*(math.Abs(want)+0.1) {
					t.Errorf("%s: the gradient of %s, element %d, is %v, want %v", name, named.Name, i, got, want)
				}
			}
		}
	}
}

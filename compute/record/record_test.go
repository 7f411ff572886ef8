package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

type node = graph.Node

func input(g *graph.Graph, name string, d dtypes.DType, dims ...int) *node {
	return graph.Parameter(g, name, shapes.Make(d, dims...))
}

func f32(g *graph.Graph, name string, dims ...int) *node {
	return input(g, name, dtypes.Float32, dims...)
}

// record returns the operators that build makes, without inputs, as "index: Kind operands attributes -> shape".
func record(t *testing.T, build func(g *graph.Graph) []*node) (ops []string, values []program.Value) {
	t.Helper()
	b := program.NewBuilder()
	values, err := Record(b, build)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range values {
		b.Output(fmt.Sprint("out", i), v)
	}
	p, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	for i, op := range p.Ops {
		if op.Kind != program.Input {
			ops = append(ops, fmt.Sprint(i, ": ", op.Kind, " ", op.In, " ", op.Ints, " -> ", op.Out))
		}
	}
	return ops, values
}

func one(n *node) []*node { return []*node{n} }

func TestForms(t *testing.T) {
	for _, tc := range []struct {
		name  string
		build func(g *graph.Graph) []*node
		want  []string
	}{
		{"scalar broadcast", func(g *graph.Graph) []*node {
			return one(graph.Mul(f32(g, "k"), f32(g, "x", 2, 3)))
		}, []string{"2: Broadcast [0] [] -> float32[2,3]", "3: Mul [2 1] [] -> float32[2,3]"}},
		{"axes broadcast both ways", func(g *graph.Graph) []*node {
			return one(graph.Add(f32(g, "x", 2, 1), f32(g, "y", 1, 3)))
		}, []string{"2: Broadcast [0] [0 1] -> float32[2,3]", "3: Broadcast [1] [0 1] -> float32[2,3]",
			"4: Add [2 3] [] -> float32[2,3]"}},
		{"where", func(g *graph.Graph) []*node {
			return one(graph.Where(graph.LessThan(f32(g, "x", 2), f32(g, "y", 2)), f32(g, "z", 2), f32(g, "k")))
		}, []string{"2: Less [0 1] [] -> bool[2]", "5: Broadcast [4] [] -> float32[2]", "6: Where [2 3 5] [] -> float32[2]"}},
		{"identity", func(g *graph.Graph) []*node {
			return one(graph.Exp(graph.StopGradient(f32(g, "x", 2))))
		}, []string{"1: Exp [0] [] -> float32[2]"}},
		{"embedding lookup", func(g *graph.Graph) []*node {
			return one(graph.Gather(f32(g, "table", 7, 3), input(g, "i", dtypes.Int32, 2, 5, 1)))
		}, []string{"2: Reshape [1] [] -> int32[2,5]", "3: TakeRows [0 2] [] -> float32[2,5,3]"}},
		{"embedding gradient", func(g *graph.Graph) []*node {
			return one(graph.ScatterSum(f32(g, "base", 7, 3), input(g, "i", dtypes.Int32, 2, 5, 1), f32(g, "u", 2, 5, 3), false,
				false))
		}, []string{"3: Reshape [1] [] -> int32[2,5]", "4: AddRows [0 3 2] [] -> float32[7,3]"}},
		{"weight gradient", func(g *graph.Graph) []*node {
			x, w := f32(g, "x", 5, 2), f32(g, "w", 2, 3)
			y := graph.DotGeneral(x, []int{1}, nil, w, []int{0}, nil)
			return graph.Gradient(graph.ReduceAllSum(y), w)
		}, nil},
		{"reductions", func(g *graph.Graph) []*node {
			x := f32(g, "x", 2, 3, 4)
			return []*node{graph.ReduceAllSum(x), graph.ReduceMax(x, -1), graph.ReduceMin(x, 0)}
		}, []string{"1: ReduceSum [0] [0 1 2] -> float32[]", "2: ReduceMax [0] [2] -> float32[2,3]",
			"3: ReduceMin [0] [0] -> float32[3,4]"}},
		{"movement", func(g *graph.Graph) []*node {
			x := f32(g, "x", 4, 3)
			part := graph.Slice(x, graph.AxisRange(1, 3), graph.AxisRange())
			return one(graph.Reverse(graph.Concatenate([]*node{part, graph.TransposeAllAxes(graph.Reshape(x, 3, 4), 1, 0)}, 0),
				1))
		}, []string{"1: Slice [0] [1 0 3 3 1 1] -> float32[2,3]", "2: Reshape [0] [] -> float32[3,4]",
			"3: Transpose [2] [1 0] -> float32[4,3]", "4: Concat [1 3] [0] -> float32[6,3]",
			"5: Reverse [4] [1] -> float32[6,3]"}},
		{"slice gradient", func(g *graph.Graph) []*node {
			x := f32(g, "x", 4)
			y := graph.ReduceAllSum(graph.Slice(x, graph.AxisRange(1, 3)))
			return graph.Gradient(y, x)
		}, nil},
	} {
		ops, _ := record(t, tc.build)
		if tc.want != nil && !slices.Equal(ops, tc.want) {
			t.Errorf("%s:\n got %q\nwant %q", tc.name, ops, tc.want)
		}
		if tc.name == "weight gradient" && slices.ContainsFunc(ops, isExchange) {
			t.Errorf("%s still moves the gradient: %q", tc.name, ops)
		}
		if tc.name == "slice gradient" && !strings.Contains(ops[len(ops)-1], "Pad") {
			t.Errorf("%s: %q", tc.name, ops)
		}
	}
}

func isExchange(op string) bool {
	return strings.Contains(op, "Transpose") && strings.Contains(op, "[1 0]")
}

// TestElementwise checks that each operator of GoMLX lands on the kind of the same name.
func TestElementwise(t *testing.T) {
	for kind, unary := range map[program.Kind]func(*node) *node{
		program.Abs: graph.Abs, program.Ceil: graph.Ceil, program.Cos: graph.Cos, program.Erf: graph.Erf,
		program.Exp:   graph.Exp,
		program.Floor: graph.Floor, program.Log: graph.Log, program.Logistic: graph.Logistic, program.Neg: graph.Neg,
		program.Round: graph.Round, program.Rsqrt: graph.Rsqrt, program.Sign: graph.Sign, program.Sin: graph.Sin,
		program.Sqrt: graph.Sqrt, program.Tanh: graph.Tanh,
	} {
		ops, _ := record(t, func(g *graph.Graph) []*node { return one(unary(f32(g, "x", 3))) })
		checkOps(t, ops, fmt.Sprintf("1: %s [0] [] -> float32[3]", kind))
	}
	for kind, binary := range map[program.Kind]func(x, y *node) *node{
		program.Add: graph.Add, program.Sub: graph.Sub, program.Mul: graph.Mul, program.Div: graph.Div,
		program.Max: graph.Max,
		program.Min: graph.Min, program.Pow: graph.Pow,
	} {
		ops, _ := record(t, func(g *graph.Graph) []*node { return one(binary(f32(g, "x", 3), f32(g, "y", 3))) })
		checkOps(t, ops, fmt.Sprintf("2: %s [0 1] [] -> float32[3]", kind))
	}
	for kind, compare := range map[program.Kind]func(x, y *node) *node{
		program.Equal: graph.Equal, program.NotEqual: graph.NotEqual, program.Less: graph.LessThan,
		program.LessEqual: graph.LessOrEqual, program.Greater: graph.GreaterThan, program.GreaterEqual: graph.GreaterOrEqual,
	} {
		ops, _ := record(t, func(g *graph.Graph) []*node { return one(compare(f32(g, "x", 3), f32(g, "y", 3))) })
		checkOps(t, ops, fmt.Sprintf("2: %s [0 1] [] -> bool[3]", kind))
	}
	ops, _ := record(t, func(g *graph.Graph) []*node {
		x, y := input(g, "x", dtypes.Bool, 3), input(g, "y", dtypes.Bool, 3)
		return []*node{graph.LogicalAnd(x, y), graph.LogicalOr(x, y), graph.LogicalNot(x),
			graph.ConvertDType(x, dtypes.Int64)}
	})
	checkOps(t, ops, "2: And [0 1] [] -> bool[3]", "3: Or [0 1] [] -> bool[3]", "4: Not [0] [] -> bool[3]",
		"5: Convert [0] [] -> int64[3]")
}

func checkOps(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestOrder checks that inputs and values keep the order of the graph, and that one node may be returned twice.
func TestOrder(t *testing.T) {
	b := program.NewBuilder()
	before := b.Input("before", tensor.Make(tensor.Float32))
	values, err := Record(b, func(g *graph.Graph) []*node {
		x, y := f32(g, "x", 2), f32(g, "y", 3)
		return []*node{y, x, y}
	})
	if err != nil {
		t.Fatal(err)
	}
	if before != 0 || !slices.Equal(values, []program.Value{2, 1, 2}) {
		t.Errorf("got values %v", values)
	}
}

func TestUnsupported(t *testing.T) {
	for _, tc := range []struct {
		operator string
		build    func(g *graph.Graph) *node
	}{
		{"ArgMinMax", func(g *graph.Graph) *node { return graph.ArgMax(f32(g, "x", 2, 3), 1) }},
		{"ReduceProduct", func(g *graph.Graph) *node { return graph.ReduceMultiply(f32(g, "x", 2, 3), 1) }},
		{"Gather", func(g *graph.Graph) *node { return graph.Gather(f32(g, "x", 2, 3), input(g, "i", dtypes.Int32, 4, 2)) }},
		{"ScatterSum", func(g *graph.Graph) *node {
			return graph.ScatterSum(f32(g, "x", 2, 3), input(g, "i", dtypes.Int32, 4, 2), f32(g, "u", 4), false, false)
		}},
		{"Float64", func(g *graph.Graph) *node { return graph.ConvertDType(f32(g, "x", 2), dtypes.Float64) }},
		{"Int16", func(g *graph.Graph) *node { return input(g, "x", dtypes.Int16, 2) }},
		{"Constant", func(g *graph.Graph) *node { return graph.Const(g, []float64{1}) }},
	} {
		_, err := Record(program.NewBuilder(), func(g *graph.Graph) []*node { return one(tc.build(g)) })
		var bad *UnsupportedError
		if !errors.As(err, &bad) || bad.Operator != tc.operator || !compute.IsNotImplemented(err) {
			t.Errorf("%s: got %v", tc.operator, err)
		}
	}
}

func TestMalformed(t *testing.T) {
	_, err := Record(program.NewBuilder(), func(g *graph.Graph) []*node {
		return one(graph.Add(f32(g, "x", 2), f32(g, "y", 3)))
	})
	if err == nil || errors.As(err, new(*UnsupportedError)) {
		t.Errorf("a sum of different shapes: got %v", err)
	}
	_, err = Record(program.NewBuilder(), func(*graph.Graph) []*node { return nil })
	if err == nil {
		t.Error("a graph without results was recorded")
	}
	defer func() {
		if recover() == nil {
			t.Error("a fault of the building function was swallowed")
		}
	}()
	_, _ = Record(program.NewBuilder(), func(*graph.Graph) []*node { return one(graph.Exp((*node)(nil).Inputs()[0])) })
}

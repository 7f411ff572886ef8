// Package record turns GoMLX graphs into programs: it is a GoMLX backend whose operators append themselves to a
// program.Builder. Models and their gradients are written with GoMLX and recorded once, where a job is authored.
//
// It executes nothing, holds no buffers and is no general backend: an operator that a program cannot express is an
// *UnsupportedError. No other package needs GoMLX at run time: a worker, a verifier and the referee run the program
// alone.
package record

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// UnsupportedError says that a graph uses an operator, or a form of one, that programs do not have.
type UnsupportedError struct {
	Operator string // GoMLX's name
	Why      string // empty when no form of the operator is supported
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	if e.Why == "" {
		return fmt.Sprintf("record: unsupported operator %s; write the model without it", e.Operator)
	}
	return fmt.Sprintf("record: unsupported operator %s: %s", e.Operator, e.Why)
}

// Unwrap makes GoMLX fall back to the decomposed form of a fused operator.
func (e *UnsupportedError) Unwrap() error { return compute.ErrNotImplemented }

// Record makes a GoMLX graph with build, appends its operators to b, and returns the values of the nodes that build
// returns, in their order. Parameters of the graph become inputs of the program, in order of creation. The error is
// whatever build panicked with, as GoMLX does for a malformed graph, and wraps *UnsupportedError where that was the
// cause.
func Record(b *program.Builder, build func(g *graph.Graph) []*graph.Node) (values []program.Value, err error) {
	return RecordWith(b, nil, build)
}

// RecordWith is Record of a graph that uses values of b: a parameter of the graph whose name is a key of given is that
// value instead of an input. This is how a graph gets at operators that GoMLX does not have.
func RecordWith(b *program.Builder, given map[string]program.Value,
	build func(g *graph.Graph) []*graph.Node) (values []program.Value, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = asError(thrown)
		}
	}()
	r := newRecorder(b, given)
	g := graph.NewGraph(&backend{recorder: r}, "program")
	results := build(g)
	if len(results) == 0 {
		return nil, errors.New("record: a graph without results; return at least one node")
	}
	if err := g.Compile(results...); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return r.main.out, nil
}

// asError turns what GoMLX panics with for a malformed graph into an error. Faults of the Go program stay panics.
func asError(thrown any) error {
	err, ok := thrown.(error)
	if _, fault := thrown.(runtime.Error); !ok || fault {
		panic(thrown)
	}
	if bad := (*UnsupportedError)(nil); errors.As(err, &bad) {
		return bad
	}
	return fmt.Errorf("record: %w", err)
}

func unsupported(op compute.OpType) error { return &UnsupportedError{Operator: op.String()} }

// backend is a compute.Backend that can only build, and builds one graph.
type backend struct {
	notimplemented.Backend
	recorder *recorder
}

func (*backend) Name() string                     { return "record" }
func (*backend) String() string                   { return "record" }
func (*backend) Description() string              { return "records graphs as programs" }
func (b *backend) Builder(string) compute.Builder { return b.recorder }

// recorder is the compute.Builder of the graph.
type recorder struct {
	notimplemented.Builder
	main *function
}

func newRecorder(b *program.Builder, given map[string]program.Value) *recorder {
	r := &recorder{}
	r.main = newFunction(r, b, given)
	return r
}

func (*recorder) Name() string             { return "record" }
func (r *recorder) Main() compute.Function { return r.main }

func (r *recorder) NewFunction(string) (compute.Function, error) {
	return nil, &UnsupportedError{Operator: "NewFunction"}
}

func (r *recorder) OpShape(v compute.Value) (shapes.Shape, error) { return r.main.Shape(v) }

func (r *recorder) Compile() (compute.Executable, error) { return recorded{}, nil }

// recorded is the executable of a graph that is only ever recorded.
type recorded struct{}

func (recorded) Finalize()                          {}
func (recorded) Inputs() ([]string, []shapes.Shape) { return nil, nil }
func (recorded) Outputs() []shapes.Shape            { return nil }
func (recorded) Execute([]compute.Buffer, []bool, compute.DeviceNum) ([]compute.Buffer, error) {
	return nil, &UnsupportedError{Operator: "Execute", Why: "a recorded graph is run as a program"}
}

var dtypePairs = [...]struct {
	gomlx dtypes.DType
	ours  tensor.DType
}{
	{dtypes.Float32, tensor.Float32}, {dtypes.Int32, tensor.Int32}, {dtypes.Int64, tensor.Int64},
	{dtypes.Uint8, tensor.Uint8}, {dtypes.Bool, tensor.Bool}, {dtypes.Uint32, tensor.Uint32},
	{dtypes.Int8, tensor.Int8}, {dtypes.Float16, tensor.Float16}, {dtypes.BFloat16, tensor.BFloat16},
}

func toDType(d dtypes.DType) (tensor.DType, error) {
	for _, p := range dtypePairs {
		if p.gomlx == d {
			return p.ours, nil
		}
	}
	return 0, &UnsupportedError{Operator: d.String(),
		Why: "programs have no such element type; convert to float32 or int32"}
}

func toShape(s shapes.Shape) (tensor.Shape, error) {
	d, err := toDType(s.DType)
	return tensor.Make(d, s.Dimensions...).Clone(), err
}

func fromShape(s tensor.Shape) shapes.Shape {
	for _, p := range dtypePairs {
		if p.ours == s.DType {
			return shapes.Make(p.gomlx, s.Dims...)
		}
	}
	return shapes.Invalid()
}

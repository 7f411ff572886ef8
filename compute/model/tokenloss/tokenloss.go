// Package tokenloss makes the programs of a training loop that a client leads: the log-probabilities of given tokens,
// the gradients of a loss that weights each of them, which are added to those of earlier batches, and the step of AdamW
// on their sum. It runs nothing.
//
// All programs take "tokens" and "targets", int32 [rows, length]: targets[i] follows tokens[..i] of its row. The
// log-probability of a target is the same bits in each program, whatever the other rows are and however many tokens of
// padding follow.
package tokenloss

import (
	"errors"
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
)

// Names of inputs and outputs, besides those of package optimizer.
const (
	Tokens     = "tokens"           // int32 [rows, length]
	Targets    = "targets"          // int32 [rows, length]
	Weights    = "weights"          // float32 [rows, length]: of the loss of a target
	Sampled    = "sampled"          // float32 [rows, length]: log-probabilities in the policy that drew the targets
	Advantages = "advantages"       // float32 [rows, length]
	LogProbs   = "logprobs"         // float32 [rows*length]
	Bias       = "bias"             // float32 [vocabulary]: is added to the logits, of Biased
	Probs      = "probs"            // float32 [rows*length, vocabulary]: of all tokens, of Expected
	Loss       = "loss"             // float32 scalar: the sum over all targets
	Gradient   = optimizer.Gradient // prefix of the sums of gradients
)

// ErrLoss is wrapped by errors about a loss or a batch that no program can have.
var ErrLoss = errors.New("tokenloss: invalid loss")

// Kind is a loss of a target.
type Kind uint8

// The losses of a target with log-probability l, weight w, advantage a, and log-probability s in the policy that drew
// it.
const (
	CrossEntropy       Kind = iota // -w l
	ImportanceSampling             // -w a exp(l-s)
	Proximal                       // -w min(a r, a clip(r, Low, High)) for r = exp(l-s) (Schulman et al. 2017, equation 7)
)

// A Function is a loss with the range of its ratio, of which only Proximal has one.
type Function struct {
	Kind      Kind
	Low, High float64
}

// Sampled reports whether the loss reads Sampled and Advantages.
func (f Function) Sampled() bool { return f.Kind != CrossEntropy }

// Check reports a loss that has no meaning, by an error that wraps ErrLoss.
func (f Function) Check() error {
	if f.Kind == Proximal && !(f.Low >= 0 && f.Low <= 1 && f.High >= 1 && f.High <= 1e3) {
		return fmt.Errorf("%w: a ratio from %g to %g; give at least 0 and at most 1, then at least 1 and at most 1000",
			ErrLoss, f.Low, f.High)
	}
	if f.Kind != Proximal && (f.Low != 0 || f.High != 0) || f.Kind > Proximal {
		return fmt.Errorf("%w: %+v", ErrLoss, f)
	}
	return nil
}

// Trained lists the tensors that are trained: the adapters of a model, or all of it if it has none.
func Trained(c architecture.Config) []architecture.Named {
	if _, adapted := c.LoRA(); adapted {
		return c.Adapters()
	}
	return c.Tensors()
}

func frozen(c architecture.Config) []architecture.Named {
	if _, adapted := c.LoRA(); adapted {
		return c.Frozen()
	}
	return nil
}

// Forward returns the program of LogProbs. Inputs: Tokens, Targets and the tensors as "p/<name>", frozen ones first.
func Forward(c architecture.Config, rows, length int) (*program.Program, error) {
	if err := check(c, rows, length); err != nil {
		return nil, err
	}
	return outputs(func(g *graph.Graph) []*graph.Node {
		tokens, targets := parameter(g, Tokens, dtypes.Int32, rows, length), parameter(g, Targets, dtypes.Int32, rows, length)
		w, _ := weights(g, c)
		return []*graph.Node{graph.Neg(entropy(c, w, tokens, targets))}
	}, LogProbs)
}

// Expected returns the program of LogProbs and Probs. Inputs: those of Forward.
func Expected(c architecture.Config, rows, length int) (*program.Program, error) {
	if err := check(c, rows, length); err != nil {
		return nil, err
	}
	return outputs(func(g *graph.Graph) []*graph.Node {
		tokens, targets := parameter(g, Tokens, dtypes.Int32, rows, length), parameter(g, Targets, dtypes.Int32, rows, length)
		w, _ := weights(g, c)
		logits := decoder.Logits(c, w, tokens)
		each := record.CrossEntropy(logits, graph.Reshape(targets, rows*length))
		return []*graph.Node{graph.Neg(each), graph.Softmax(logits)}
	}, LogProbs, Probs)
}

// Biased returns the program of LogProbs by logits to which Bias is added. Inputs: Tokens, Targets, Bias, and the
// tensors as those of Forward.
func Biased(c architecture.Config, rows, length int) (*program.Program, error) {
	if err := check(c, rows, length); err != nil {
		return nil, err
	}
	return outputs(func(g *graph.Graph) []*graph.Node {
		tokens, targets := parameter(g, Tokens, dtypes.Int32, rows, length), parameter(g, Targets, dtypes.Int32, rows, length)
		bias := parameter(g, Bias, dtypes.Float32, c.VocabSize())
		w, _ := weights(g, c)
		logits := decoder.Logits(c, w, tokens)
		logits = graph.Add(logits, graph.BroadcastToShape(graph.ExpandAxes(bias, 0), logits.Shape()))
		return []*graph.Node{graph.Neg(record.CrossEntropy(logits, graph.Reshape(targets, rows*length)))}
	}, LogProbs)
}

// outputs is a program whose outputs have names.
func outputs(of func(g *graph.Graph) []*graph.Node, names ...string) (*program.Program, error) {
	b := program.NewBuilder()
	values, err := record.Record(b, of)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		b.Output(name, values[i])
	}
	return finish(b)
}

// Backward returns the program that adds the gradients of a loss to "g/<name>" of each trained tensor. Inputs: those of
// Forward, after the first two Weights and, if the loss reads them, Sampled and Advantages; then the "g/<name>".
// Outputs: LogProbs, Loss, and "g/<name>".
func Backward(c architecture.Config, f Function, rows, length int) (*program.Program, error) {
	if err := errors.Join(f.Check(), check(c, rows, length)); err != nil {
		return nil, err
	}
	b := program.NewBuilder()
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		given := func(name string, of dtypes.DType) *graph.Node { return parameter(g, name, of, rows, length) }
		tokens, targets := given(Tokens, dtypes.Int32), given(Targets, dtypes.Int32)
		weight := graph.Reshape(given(Weights, dtypes.Float32), rows*length)
		var sampled, advantage *graph.Node
		if f.Sampled() {
			sampled = graph.Reshape(given(Sampled, dtypes.Float32), rows*length)
			advantage = graph.Reshape(given(Advantages, dtypes.Float32), rows*length)
		}
		w, trained := weights(g, c)
		each := entropy(c, w, tokens, targets)
		loss := graph.ReduceAllSum(f.of(each, weight, sampled, advantage))
		sums := graph.Gradient(loss, trained...)
		for i, n := range Trained(c) {
			sums[i] = graph.Add(parameter(g, Gradient+n.Name, dtypes.Float32, n.Shape.Dims...), sums[i])
		}
		return append([]*graph.Node{graph.Neg(each), loss}, sums...)
	})
	if err != nil {
		return nil, err
	}
	b.Output(LogProbs, values[0])
	b.Output(Loss, values[1])
	for i, n := range Trained(c) {
		b.Output(Gradient+n.Name, values[2+i])
	}
	return finish(b)
}

// of are the losses [n] of targets with the cross-entropies each [n].
func (f Function) of(each, weight, sampled, advantage *graph.Node) *graph.Node {
	if f.Kind == CrossEntropy {
		return graph.Mul(weight, each)
	}
	gain := graph.Mul(weight, advantage)
	logRatio := graph.Neg(graph.Add(each, sampled))
	if f.Kind != Proximal {
		return graph.Neg(graph.Mul(gain, graph.Exp(logRatio)))
	}
	none := graph.ZerosLike(logRatio)
	return clipped(gain, logRatio, advantage, graph.AddScalar(none, f.Low), graph.AddScalar(none, f.High))
}

// clipped is Proximal of targets with the given gain, logarithm of the ratio, advantage and range.
func clipped(gain, logRatio, advantage, least, most *graph.Node) *graph.Node {
	none := graph.ZerosLike(logRatio)
	better := graph.GreaterThan(advantage, none)
	bound := graph.Where(better, most, least)
	ratio := graph.Exp(graph.StopGradient(logRatio))
	beyond := graph.LogicalOr(graph.LogicalAnd(better, graph.GreaterThan(ratio, bound)),
		graph.LogicalAnd(graph.LogicalNot(better), graph.LessThan(ratio, bound)))
	// Where the minimum is the bound, nothing is learnt. The exponential of another logarithm is taken there, as the
	// gradient of one that overflows is NaN.
	return graph.Neg(graph.Mul(gain, graph.Where(beyond, bound, graph.Exp(graph.Where(beyond, none, logRatio)))))
}

// Update returns the program of a step of AdamW. Inputs: the scalars "lr", "c1" and "c2" as model.Task.TrainStep has
// them, and of each trained tensor "p/<name>", "g/<name>", "m/<name>" and "v/<name>". Outputs: those of
// optimizer.Append.
func Update(c architecture.Config, o optimizer.AdamW) (*program.Program, error) {
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoss, err)
	}
	return optimizer.Alone(o, moved(c))
}

// moved is Trained as package optimizer takes it.
func moved(c architecture.Config) (list []optimizer.Tensor) {
	for _, n := range Trained(c) {
		list = append(list, optimizer.Tensor{Name: n.Name, Shape: n.Shape})
	}
	return list
}

// entropy is the cross-entropy of each target: [rows*length].
func entropy(c architecture.Config, w decoder.Weights, tokens, targets *graph.Node) *graph.Node {
	return record.CrossEntropy(decoder.Logits(c, w, tokens), graph.Reshape(targets, targets.Shape().Size()))
}

// weights makes a parameter "p/<name>" for each tensor of a model, and lists those of the trained ones.
func weights(g *graph.Graph, c architecture.Config) (w decoder.Weights, trained []*graph.Node) {
	w.Nodes, w.Scale = map[string]*graph.Node{}, c.Scale()
	for _, n := range frozen(c) {
		w.Nodes[n.Name] = parameter(g, optimizer.Param+n.Name, dtypes.Float32, n.Shape.Dims...)
	}
	for _, n := range Trained(c) {
		w.Nodes[n.Name] = parameter(g, optimizer.Param+n.Name, dtypes.Float32, n.Shape.Dims...)
		trained = append(trained, w.Nodes[n.Name])
	}
	return w, trained
}

func parameter(g *graph.Graph, name string, d dtypes.DType, dims ...int) *graph.Node {
	return graph.Parameter(g, name, shapes.Make(d, dims...))
}

func check(c architecture.Config, rows, length int) error {
	if rows < 1 || length < 1 || length > c.Context() || rows > math.MaxInt32/length {
		return fmt.Errorf("%w: %d rows of %d tokens, the model has %d positions", ErrLoss, rows, length, c.Context())
	}
	return nil
}

func finish(b *program.Builder) (*program.Program, error) {
	p, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return p.Simplify(), nil
}

package tokenloss

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// A step of a network is one program: of the data that a client gives it come the gradients, and of these the weights.
// It reads the data as "q/<name>" and passes them on. The tensors that a loop remembers from step to step, and the
// answer to the client, are parameters besides the weights, so that a checkpoint has them: "first.<name>" and
// "second.<name>" are the moments of AdamW, and High and Low the log-probabilities.

// Names of the data that a step of a network reads, besides Tokens, Targets, Weights, Sampled and Advantages, each
// after DataOf.
const (
	DataOf = "q/" // as package compute/train/parts has it

	Ratio = "ratio" // float32 [rows, length]: 1 where the loss is that of a ratio, 0 where it is the cross-entropy
	Least = "least" // float32 [rows, length]: range of the ratio, of Proximal
	Most  = "most"  // float32 [rows, length]
	Rate  = "rate"  // float32 scalar: the learning rate
	C1    = "c1"    // float32 scalar: the corrections of the bias of the moments, as schedule.Correction computes them
	C2    = "c2"    // float32 scalar
)

// Names of parameters of a step of a network that are no weights: prefixes of those of a weight, and the
// log-probabilities of the last step, float32 [rows*length].
const (
	FirstOf  = "first."
	SecondOf = "second."
	High     = "reply.high"
	Low      = "reply.low"
)

// Units of High and Low: their sum is a log-probability, which is exact from 2^-11 on. An update is the difference of
// two of them, which has no rounding.
const (
	highUnit = 1. / (1 << 10)
	lowUnit  = 1. / (1 << 34)
	leastLog = -127

	// LogError is how far LogProb is from the log-probability, at most, unless that is below -127.
	LogError = lowUnit / 2
)

// LogProb is the log-probability of a target that a step of a network has left in High and Low.
func LogProb(high, low float32) float32 { return high + low }

// Given lists the data of a step of a network, in the order in which it reads them, with their names after DataOf.
func Given(rows, length int) (list []architecture.Named) {
	add := func(d tensor.DType, name string, dims ...int) {
		list = append(list, architecture.Named{Name: name, Shape: tensor.Make(d, dims...)})
	}
	for _, name := range []string{Tokens, Targets} {
		add(tensor.Int32, name, rows, length)
	}
	for _, name := range []string{Weights, Sampled, Advantages, Ratio, Least, Most} {
		add(tensor.Float32, name, rows, length)
	}
	for _, name := range []string{Rate, C1, C2} {
		add(tensor.Float32, name)
	}
	return list
}

// Remembered are the parameters of a step of a network: the trained weights, and zeros for all else.
func Remembered(c architecture.Config, rows, length int, trained map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	all := map[string]*tensor.Tensor{High: tensor.New(tensor.Make(tensor.Float32, rows*length)),
		Low: tensor.New(tensor.Make(tensor.Float32, rows*length))}
	for _, n := range Trained(c) {
		all[n.Name] = trained[n.Name]
		all[FirstOf+n.Name], all[SecondOf+n.Name] = tensor.New(n.Shape), tensor.New(n.Shape)
	}
	return all
}

// Step returns the program of a step of a network, as package train executes it: inputs and outputs are the tensors of
// Given as "q/<name>" and those of Remembered as "p/<name>"; frozen tensors of the model are inputs as "p/<name>", and
// "loss" and "grad_norm" further outputs. Tokens that the model does not have count as its first or last one.
func Step(c architecture.Config, o optimizer.AdamW, rows, length int) (*program.Program, error) {
	if err := errors.Join(o.Check(), check(c, rows, length)); err != nil {
		return nil, err
	}
	b, list := program.NewBuilder(), Given(rows, length)
	values, err := record.Record(b, func(g *graph.Graph) []*graph.Node {
		of := map[string]*graph.Node{}
		var read []*graph.Node
		for _, n := range list {
			d := dtypes.Float32
			if n.Shape.DType == tensor.Int32 {
				d = dtypes.Int32
			}
			of[n.Name] = parameter(g, DataOf+n.Name, d, n.Shape.Dims...)
			read = append(read, of[n.Name])
		}
		w, trained := weights(g, c)
		known := func(x *graph.Node) *graph.Node {
			return graph.MaxScalar(graph.MinScalar(x, float64(c.VocabSize()-1)), 0)
		}
		each := entropy(c, w, known(of[Tokens]), known(of[Targets]))
		loss := graph.ReduceAllSum(mixed(each, of, rows*length))
		high, low := split(graph.Neg(each))
		return slices.Concat(read, trained, graph.Gradient(loss, trained...), []*graph.Node{loss, high, low})
	})
	if err != nil {
		return nil, err
	}
	trained, k := moved(c), len(list)
	n := len(trained)
	scalars := values[k-3 : k] // Rate, C1, C2
	params, grads := slices.Clone(values[k:k+n]), values[k+n:k+2*n]
	err = optimizer.Append(b, o, trained, params, grads, scalars[0], scalars[1], scalars[2])
	if err != nil {
		return nil, err
	}
	for i, x := range list {
		b.Output(DataOf+x.Name, values[i])
	}
	last := values[k+2*n:]
	b.Output(Loss, last[0])
	b.Output(optimizer.Param+High, last[1])
	b.Output(optimizer.Param+Low, last[2])
	p, err := finish(b)
	if err != nil {
		return nil, err
	}
	return remembering(p, rows*length), nil
}

// mixed are the losses [n] of targets with the cross-entropies each [n], by the function of each target.
func mixed(each *graph.Node, of map[string]*graph.Node, n int) *graph.Node {
	flat := func(name string) *graph.Node { return graph.Reshape(of[name], n) }
	weight, none := flat(Weights), graph.ZerosLike(each)
	gain := graph.Mul(weight, flat(Advantages))
	is := graph.GreaterThan(flat(Ratio), none)
	// The logarithm of a ratio that is not read is 0, as the gradient of an exponential that overflows is NaN.
	logRatio := graph.Where(is, graph.Neg(graph.Add(each, flat(Sampled))), none)
	return graph.Where(is, clipped(gain, logRatio, flat(Advantages), flat(Least), flat(Most)), graph.Mul(weight, each))
}

// split divides log-probabilities into High and Low.
func split(x *graph.Node) (high, low *graph.Node) {
	x = graph.MaxScalar(x, leastLog)
	high = graph.MulScalar(graph.Round(graph.MulScalar(x, 1/highUnit)), highUnit)
	return high, graph.MulScalar(graph.Round(graph.MulScalar(graph.Sub(x, high), 1/lowUnit)), lowUnit)
}

// remembering makes the moments parameters, and declares as inputs those parameters that no operator reads.
func remembering(p *program.Program, targets int) *program.Program {
	rename := func(name string) string {
		if rest, ok := strings.CutPrefix(name, optimizer.First); ok {
			return optimizer.Param + FirstOf + rest
		}
		if rest, ok := strings.CutPrefix(name, optimizer.Second); ok {
			return optimizer.Param + SecondOf + rest
		}
		return name
	}
	for i := range p.Ops {
		if p.Ops[i].Kind == program.Input {
			p.Ops[i].Name = rename(p.Ops[i].Name)
		}
	}
	for i := range p.Outputs {
		p.Outputs[i].Name = rename(p.Outputs[i].Name)
	}
	for _, name := range []string{High, Low} {
		p.Ops = append(p.Ops, program.Operator{Kind: program.Input, Out: tensor.Make(tensor.Float32, targets),
			Name: optimizer.Param + name})
	}
	return p
}

// Data are tensors of the shapes of Given for fewer sequences, whose targets count nothing.
func Data(rows, length int) map[string]*tensor.Tensor {
	all := map[string]*tensor.Tensor{}
	for _, n := range Given(rows, length) {
		all[n.Name] = tensor.New(n.Shape)
	}
	return all
}

// Bounds are Least and Most of targets with a loss: those of ImportanceSampling bound nothing.
func (f Function) Bounds() (least, most float32) {
	if f.Kind == ImportanceSampling {
		return -1, math.MaxFloat32
	}
	return float32(f.Low), float32(f.High)
}

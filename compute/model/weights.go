package model

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/model/blocks"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// normal, ones and zeros describe a float32 tensor and how it starts.
func normal(std float64, name string, dims ...int) Named {
	return Named{Name: name, Shape: tensor.Make(tensor.Float32, dims...), std: std}
}

// embedding is a normal matrix that rows are looked up in: no linear layer, even where the output layer is tied to it.
func embedding(std float64, name string, dims ...int) Named {
	n := normal(std, name, dims...)
	n.embedding = true
	return n
}

func ones(name string, dims ...int) Named {
	return Named{Name: name, Shape: tensor.Make(tensor.Float32, dims...), fill: 1}
}

func zeros(name string, dims ...int) Named {
	return Named{Name: name, Shape: tensor.Make(tensor.Float32, dims...)}
}

// residualStd is the initial deviation of a matrix that writes to the residual stream: smaller the more of them add up
// (Radford et al. 2019, section 2.3).
func (c Config) residualStd() float64 { return c.initStd / math.Sqrt(float64(2*c.layers)) }

// Init returns the initial tensors: matrices and embeddings normal with deviation initializer_range, those that write
// to the residual stream divided by sqrt(2*layers); gains one, biases zero. Tensor i of Tensors draws from stream i of
// the seed, so the same seed gives the same bits everywhere.
func (c Config) Init(seed uint64) map[string]*tensor.Tensor { return Init(c.Tensors(), seed) }

// InitDigest is a digest of all that the bytes of Init depend on, but for the seed.
func InitDigest(list []Named) canon.Digest {
	all := make([][]any, len(list))
	for i, n := range list {
		all[i] = []any{n.Name, n.Shape.Dims, n.std, float64(n.fill)}
	}
	return canon.Sum("model/init/1", canon.MustMarshal(all))
}

// Init returns initial values of the tensors: tensor i draws from stream i of the seed.
func Init(list []Named, seed uint64) map[string]*tensor.Tensor { return initFrom(list, seed, 0) }

// initFrom is Init with the first tensor drawing from the given stream.
func initFrom(list []Named, seed, stream uint64) map[string]*tensor.Tensor {
	all := make(map[string]*tensor.Tensor)
	for i, named := range list {
		t := tensor.New(named.Shape)
		data := t.F32()
		if named.std != 0 {
			philox.NormalTo(data, seed, stream+uint64(i))
		}
		for j, x := range data {
			data[j] = float32(x*float32(named.std)) + named.fill
		}
		all[named.Name] = t
	}
	return all
}

// weights are the tensors of a model as nodes of a graph, seen under a prefix of their names.
type weights struct {
	nodes           map[string]*graph.Node
	prefix          string
	scale           float64      // of what adapters add
	each            []own        // the adapters of each sequence, if they have their own
	dice            *record.Dice // of dropout; nil: there is none
	dropout, hidden float64      // the share of what is added to the residual stream that is dropped
	half            bool         // layers read and give bfloat16
}

// dropped is what is added to the residual stream, less what is dropped of it.
func (w weights) dropped(x *graph.Node) *graph.Node { return w.dice.Drop(x, w.hidden) }

// rounded is x as layers read it, or give it.
func (w weights) rounded(x *graph.Node) *graph.Node {
	if w.half {
		return record.Half(x)
	}
	return x
}

// own is the adapters of one sequence.
type own struct {
	nodes map[string]*graph.Node
	scale *graph.Node // of what they add: a scalar
}

// at returns the tensor with the given name after the prefix.
func (w weights) at(name string) *graph.Node {
	node, ok := w.nodes[w.prefix+name]
	if !ok {
		panic("model: no tensor " + w.prefix + name)
	}
	return node
}

// under returns the same tensors under a longer prefix.
func (w weights) under(prefix string) weights {
	w.prefix += prefix
	return w
}

// task is a task of the model on the given batch that trains its adapters, or all of it if there are none. Its loss is
// still to be set.
func (c Config) task(batch ...Named) Task {
	if c.lora == nil {
		return Task{Batch: batch, Trained: c.Tensors()}
	}
	return Task{Batch: batch, Frozen: frozen(c), Trained: c.Adapters(), scale: c.lora.scale(), dropout: c.lora.Dropout}
}

// frozen lists the tensors of a model under adapters: weights, or their codes and then their scales.
func frozen(c Config) (list []Named) {
	for _, n := range c.Tensors() {
		list = append(list, n)
		if linear := n.Shape.Rank() == 2 && !n.embedding && n.Name != c.OutputName(); linear && c.lora.Bits > 0 {
			codes, scales := blocks.Shapes(n.Shape.Dims[0], n.Shape.Dims[1], c.lora.Bits)
			list[len(list)-1].Shape = codes
			list = append(list, Named{Name: n.Name + blocks.Suffix, Shape: scales})
		}
	}
	return list
}

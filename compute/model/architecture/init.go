package architecture

import (
	"math"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// Normal, ones and Zeros describe a float32 tensor and how it starts.
func Normal(std float64, name string, dims ...int) Named {
	return Named{Name: name, Shape: tensor.Make(tensor.Float32, dims...), std: std}
}

// embedding is a normal matrix that rows are looked up in: no linear layer, even where the output layer is tied to it.
func embedding(std float64, name string, dims ...int) Named {
	n := Normal(std, name, dims...)
	n.embedding = true
	return n
}

func ones(name string, dims ...int) Named {
	return Named{Name: name, Shape: tensor.Make(tensor.Float32, dims...), fill: 1}
}

func Zeros(name string, dims ...int) Named {
	return Named{Name: name, Shape: tensor.Make(tensor.Float32, dims...)}
}

// residualStd is the initial deviation of a matrix that writes to the residual stream: smaller the more of them add up
// (Radford et al. 2019, section 2.3).
func residualStd(c Config) float64 { return c.initStd / math.Sqrt(float64(2*c.Layers)) }

// Init returns the initial tensors: matrices and embeddings normal with deviation initializer_range, those that write
// to the residual stream divided by sqrt(2*layers); gains one, biases zero. Tensor i of Tensors draws from stream i of
// the seed, so the same seed gives the same bits everywhere.
func (c Config) Init(seed uint64) map[string]*tensor.Tensor { return Init(c.Tensors(), seed) }

// Linear is a layer [out, Width] on the hidden states of the model, which begins as its other layers do.
func (c Config) Linear(name string, out int) Named { return Normal(c.initStd, name, out, c.Width) }

// InitDigest is a digest of all that the bytes of Init depend on, but for the seed.
func InitDigest(list []Named) canon.Digest {
	all := make([][]any, len(list))
	for i, n := range list {
		all[i] = []any{n.Name, n.Shape.Dims, n.std, float64(n.fill)}
	}
	return canon.Sum("model/init/1", canon.MustMarshal(all))
}

// Init returns initial values of the tensors: tensor i draws from stream i of the seed.
func Init(list []Named, seed uint64) map[string]*tensor.Tensor { return InitFrom(list, seed, 0) }

// InitFrom is Init with the first tensor drawing from the given stream of the seed.
func InitFrom(list []Named, seed, stream uint64) map[string]*tensor.Tensor {
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

// Named is the name, shape and initial distribution of one tensor of a model.
type Named struct {
	Name  string
	Shape tensor.Shape

	fill float32 // initial value, when std is 0
	std  float64 // standard deviation of the normal distribution of the initial values

	embedding bool // rows are looked up
}

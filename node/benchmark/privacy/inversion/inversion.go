// Package inversion is an attack on updates: it looks for the images whose gradient a given one is (Zhu et al. 2019),
// for a network that classifies digits. It shows what an update of few examples discloses. A search that finds nothing
// proves nothing.
package inversion

import (
	"context"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/dpsgd"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/node/benchmark/privacy/digits"
	"github.com/starling-network/starling/node/benchmark/privacy/network"
)

// Network is what an attacker knows: the program of a gradient, and the weights that it was computed at.
type Network struct {
	*network.Network
	exec  *cpu.Exec
	in    map[string]*tensor.Tensor
	grads map[string]*tensor.Tensor
}

// New is a convolutional network for digits, with weights that a seed draws.
func New(seed uint64) (*Network, error) {
	config := map[string]any{"conv_channels": []any{8}, "hidden_sizes": []any{16}, "pooling": "mean"}
	of, err := network.New(vision.CNN, config, seed, 1)
	if err != nil {
		return nil, err
	}
	gradients, err := parts.Gradients(of.Step)
	if err != nil {
		return nil, err
	}
	n := &Network{Network: of, in: map[string]*tensor.Tensor{},
		grads: map[string]*tensor.Tensor{"loss": tensor.Scalar(0)}}
	for i, name := range n.Names {
		n.in[optimizer.Param+name] = n.Weights[i]
		n.grads[optimizer.Gradient+name] = tensor.New(n.Weights[i].Shape)
	}
	n.in["tokens"] = tensor.New(tensor.Make(tensor.Int32, 1, digits.Values+2))
	n.exec, err = cpu.Compile(gradients, 1)
	return n, err
}

// Gradient is that of one example, in the order of the tensors.
func (n *Network) Gradient(e digits.Example) ([]*tensor.Tensor, error) {
	e.Tokens(n.in["tokens"].I32())
	if err := n.exec.RunInto(n.in, n.grads); err != nil {
		return nil, err
	}
	var list []*tensor.Tensor
	for _, name := range n.Names {
		list = append(list, n.grads[optimizer.Gradient+name].Clone())
	}
	return list, nil
}

// flat is a gradient as one list.
func (n *Network) flat(e digits.Example) ([]float64, error) {
	list, err := n.Gradient(e)
	return Flat(list), err
}

// Flat are the elements of tensors.
func Flat(list []*tensor.Tensor) (all []float64) {
	for _, t := range list {
		for _, x := range t.F32() {
			all = append(all, float64(x))
		}
	}
	return all
}

// Label is the digit of the one example of a gradient: of the bias of the last layer, it has the only negative element
// (Zhao et al. 2020).
func Label(gradient []float64) int {
	last := gradient[len(gradient)-digits.Classes:]
	return slices.Index(last, slices.Min(last))
}

// Search is how long a search takes.
type Search struct {
	Starts int // points that it begins from
	Steps  int // from each
}

// Search looks for images of the given digits whose mean gradient is nearest to a given one, by the method of Levenberg
// and Marquardt with derivatives from differences. It returns how far their gradient is from it, relative to it.
func (n *Network) Search(ctx context.Context, gradient []float64, labels []int, o Search) ([]digits.Example, float64,
	error) {
	best, least := []digits.Example(nil), math.Inf(1)
	for s := range o.Starts {
		found := make([]digits.Example, len(labels))
		for k, d := range labels {
			u := make([]float32, digits.Values)
			philox.NormalTo(u, 77, uint64(s*len(labels)+k))
			found[k].Digit = d
			for i := range u {
				found[k].Pixels[i] = int32(min(255, max(0, 100+40*u[i])))
			}
		}
		f := fit{n, gradient, found, 1e-3}
		away, err := f.run(ctx, o.Steps)
		if err != nil {
			return nil, 0, err
		}
		if away < least {
			best, least = slices.Clone(f.at), away
		}
		if least <= near {
			break
		}
	}
	return best, least, nil
}

// Noisy is the update of a step on one example whose gradient is clipped and gets noise, as package dpsgd does for an
// owner.
func (n *Network) Noisy(e digits.Example, t dpsgd.Terms, seed prg.Key) ([]float64, error) {
	end, err := n.Private(t, one{e}, 1, 1, seed)
	if err != nil {
		return nil, err
	}
	before := Flat(n.Weights)
	for i, v := range Flat(end) {
		before[i] -= v
	}
	return before, nil
}

// one is an owner of one example.
type one struct{ e digits.Example }

// Len implements dpsgd.Examples.
func (one) Len() int { return 1 }

// Row implements dpsgd.Examples.
func (o one) Row(_ int, into []int32) { o.e.Tokens(into) }

// near is how far gradients may be apart, relative to their norm, for a search to end.
const near = 0.01

// stalled is by how much a step has to bring gradients nearer, relatively, for another one to follow.
const stalled = 1e-3

// fit is one search.
type fit struct {
	n      *Network
	wanted []float64
	at     []digits.Example
	damp   float64
}

// away is how far the mean gradient of examples is from the wanted one: its elements, and their norm, relative.
func (f *fit) away(of []digits.Example) (rest []float64, norm float64, err error) {
	rest = slices.Clone(f.wanted)
	size := 0.0
	for _, x := range rest {
		size += x * x
	}
	for _, e := range of {
		g, err := f.n.flat(e)
		if err != nil {
			return nil, 0, err
		}
		for i, x := range g {
			rest[i] -= x / float64(len(of))
		}
	}
	for _, x := range rest {
		norm += x * x
	}
	return rest, math.Sqrt(norm / size), nil
}

// run takes steps until the gradients agree, or no step brings them nearer.
func (f *fit) run(ctx context.Context, steps int) (float64, error) {
	rest, now, err := f.away(f.at)
	for k := 0; k < steps && now > near && f.damp < 1e6 && err == nil; k++ {
		if err := ctx.Err(); err != nil {
			return now, err
		}
		var matrix, right []float64
		if matrix, right, err = f.normal(rest); err != nil {
			break
		}
		for f.damp < 1e6 {
			next := f.moved(solved(matrix, right, f.damp))
			r, norm, wrong := f.away(next)
			if wrong != nil {
				return now, wrong
			}
			if norm < now {
				if now-norm < stalled*now {
					k = steps
				}
				f.at, rest, now, f.damp = next, r, norm, max(1e-9, f.damp/5)
				break
			}
			f.damp *= 4
		}
	}
	return now, err
}

// difference is by how much a pixel is changed to see what the gradient does.
const difference = 6

// normal are the normal equations of the linear fit around the current images.
func (f *fit) normal(rest []float64) (matrix, right []float64, err error) {
	var columns [][]float64
	for k := range f.at {
		base, err := f.n.flat(f.at[k])
		if err != nil {
			return nil, nil, err
		}
		for i := range digits.Values {
			e, d := f.at[k], int32(difference)
			if e.Pixels[i]+d > 255 {
				d = -d
			}
			e.Pixels[i] += d
			g, err := f.n.flat(e)
			if err != nil {
				return nil, nil, err
			}
			for j := range g {
				g[j] = (g[j] - base[j]) / float64(d) / float64(len(f.at))
			}
			columns = append(columns, g)
		}
	}
	m := len(columns)
	matrix, right = make([]float64, m*m), make([]float64, m)
	for i, a := range columns {
		for j := range i + 1 {
			s := 0.0
			for t, x := range columns[j] {
				s += a[t] * x
			}
			matrix[i*m+j], matrix[j*m+i] = s, s
		}
		for t, x := range rest {
			right[i] += a[t] * x
		}
	}
	return matrix, right, nil
}

// moved are the current images after a step, on the grid of pixels.
func (f *fit) moved(step []float64) []digits.Example {
	next := slices.Clone(f.at)
	for i, d := range step {
		p := &next[i/digits.Values].Pixels[i%digits.Values]
		*p = int32(math.Round(min(255, max(0, float64(*p)+d))))
	}
	return next
}

// solved is the solution of the normal equations with a damped diagonal, by the decomposition of Cholesky.
func solved(matrix, right []float64, damp float64) []float64 {
	m := len(right)
	l, x := make([]float64, m*m), slices.Clone(right)
	mean := 0.0
	for i := range m {
		mean += matrix[i*m+i] / float64(m)
	}
	for i := range m {
		for j := range i + 1 {
			s := matrix[i*m+j]
			if i == j {
				s += damp * (s + mean)
			}
			for k := range j {
				s -= l[i*m+k] * l[j*m+k]
			}
			if i == j {
				l[i*m+i] = math.Sqrt(max(s, 1e-300))
			} else {
				l[i*m+j] = s / l[j*m+j]
			}
		}
		for k := range i {
			x[i] -= l[i*m+k] * x[k]
		}
		x[i] /= l[i*m+i]
	}
	for i := m - 1; i >= 0; i-- {
		for k := i + 1; k < m; k++ {
			x[i] -= l[k*m+i] * x[k]
		}
		x[i] /= l[i*m+i]
	}
	return x
}

// PSNR is the peak signal-to-noise ratio of an image against another one, in decibels; at most 99.
func PSNR(a, b digits.Example) float64 {
	sum := 0.0
	for i := range a.Pixels {
		d := float64(a.Pixels[i]-b.Pixels[i]) / 255
		sum += d * d
	}
	if sum == 0 {
		return 99
	}
	return min(99, -10*math.Log10(sum/digits.Values))
}

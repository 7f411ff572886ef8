package proven

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"

	groth16 "github.com/consensys/gnark/backend/groth16/bn254"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/fixedpoint"
	"github.com/starling-network/starling/proof/aggregation"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/equation"
)

// ErrUpdate is wrapped by every reason why a file holds no update, or none that its owner committed to.
var ErrUpdate = errors.New("not an update")

// Update is an update on the grid of exchange/fixedpoint with the secret of its owner, as the owner gives it to the
// party that adds it. Values are its elements, and then its weight.
type Update struct {
	Place  int            `cbor:"1,keyasint"` // in the sum, from 0
	Key    canon.Digest   `cbor:"2,keyasint"` // of the verifying key
	Clip   uint64         `cbor:"3,keyasint"` // bits of the norm, a float64, that is fixedpoint.Unit on the grid
	Names  []string       `cbor:"4,keyasint"` // of the tensors, ascending
	Shapes [][]int        `cbor:"5,keyasint"`
	Values []int32        `cbor:"6,keyasint"`
	Secret circuit.Secret `cbor:"7,keyasint"`
}

const (
	updateMagic = "starling committed update 1\n"
	maxUpdate   = aggregation.MaxElements/2*5 + 1<<16
	maxTensors  = 4096
	maxAxes     = 16
)

// EncodeUpdate puts the tensors of a safetensors file on the grid: clipped to a norm, and weighed with 0 to 1.
func EncodeUpdate(name string, clip, weight float64) (u Update, err error) {
	info, err := os.Stat(name)
	if err != nil {
		return u, err
	}
	if most := int64(aggregation.MaxElements/2*4 + 1<<20); info.Size() > most {
		return u, fmt.Errorf("%w: %s has %d bytes, at most %d", ErrUpdate, name, info.Size(), most)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return u, err
	}
	f, err := safetensors.Open(raw)
	if err != nil {
		return u, fmt.Errorf("%w: %s: %w", ErrUpdate, name, err)
	}
	u = Update{Clip: math.Float64bits(clip), Names: slices.Sorted(slices.Values(f.Names()))}
	var list []*tensor.Tensor
	for _, n := range u.Names {
		t, err := f.Tensor(n)
		if err == nil && t.Shape.DType != tensor.Float32 {
			err = fmt.Errorf("tensor %q is not float32", n)
		}
		if err != nil {
			return u, fmt.Errorf("%w: %s: %w", ErrUpdate, name, err)
		}
		list, u.Shapes = append(list, t), append(u.Shapes, t.Shape.Dims)
	}
	values, err := fixedpoint.Encode(list, clip, weight)
	if err != nil {
		return u, fmt.Errorf("%w: %s: %w", ErrUpdate, name, err)
	}
	for _, v := range values {
		u.Values = append(u.Values, int32(v))
	}
	return u, nil
}

// shapes are those of the tensors; the values are theirs and the weight, on the grid.
func (u Update) shapes() (list []tensor.Shape, err error) {
	n := 1
	if len(u.Names) == 0 || len(u.Names) > maxTensors || len(u.Names) != len(u.Shapes) || !slices.IsSorted(u.Names) ||
		!(math.Float64frombits(u.Clip) > 0) {
		return nil, fmt.Errorf("%w: %d tensors with %d shapes", ErrUpdate, len(u.Names), len(u.Shapes))
	}
	for _, dims := range u.Shapes {
		elements := 1
		for _, d := range dims {
			if d < 1 || d > aggregation.MaxElements || len(dims) > maxAxes {
				return nil, fmt.Errorf("%w: a tensor of %v", ErrUpdate, dims)
			}
			if elements *= d; elements > aggregation.MaxElements {
				return nil, fmt.Errorf("%w: a tensor of %v", ErrUpdate, dims)
			}
		}
		n += elements
		list = append(list, tensor.Make(tensor.Float32, dims...))
	}
	if n != len(u.Values) {
		return nil, fmt.Errorf("%w: %d values for tensors of %d and a weight", ErrUpdate, len(u.Values), n-1)
	}
	grid := make([]uint32, n)
	for i, v := range u.Values {
		grid[i] = uint32(v)
	}
	if !fixedpoint.Fits(grid) {
		return nil, fmt.Errorf("%w: its values are longer than the clipping norm, or its weight %d is outside 0..%d",
			ErrUpdate, u.Values[n-1], fixedpoint.Unit)
	}
	return list, nil
}

// Encode returns the bytes of a file.
func (u Update) Encode() []byte { return append([]byte(updateMagic), canon.MustMarshal(u)...) }

// ReadUpdate reads the file that Encode made.
func ReadUpdate(name string) (u Update, err error) {
	f, err := os.Open(name)
	if err != nil {
		return u, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxUpdate+1))
	if err != nil {
		return u, err
	}
	if u, err = DecodeUpdate(data); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return u, err
}

// DecodeUpdate reads what Encode returned, of a stranger.
func DecodeUpdate(data []byte) (u Update, err error) {
	if err := equation.Decode(data, updateMagic, maxUpdate, &u); err != nil {
		return u, fmt.Errorf("%w: %w", ErrUpdate, err)
	}
	if u.Place < 0 || u.Place >= aggregation.MaxUpdates {
		return u, fmt.Errorf("%w: place %d", ErrUpdate, u.Place)
	}
	_, err = u.shapes()
	return u, err
}

func (u Update) committed() circuit.Committed {
	return circuit.Committed{Update: u.Values, Secret: u.Secret}
}

// Commit is the commitment to an update, for the keys of a setup.
func (u Update) Commit(v *aggregation.Verifier, pk *groth16.ProvingKey) ([]byte, error) {
	a, err := circuit.NewAggregator(v, pk)
	if err != nil {
		return nil, err
	}
	return a.Commit(u.Place, u.committed())
}

// Added is where a proof commits to an update, and nowhere else. The error wraps ErrOther if it does not.
func (u Update) Added(p aggregation.Proof, v *aggregation.Verifier, pk *groth16.ProvingKey) error {
	c, err := u.Commit(v, pk)
	if err != nil {
		return err
	}
	if u.Place >= len(p.Commitments) || !bytes.Equal(c, p.Commitments[u.Place]) {
		return fmt.Errorf("%w: commitment %d is not to this update under this secret", ErrOther, u.Place+1)
	}
	return nil
}

// Sum adds updates, one for each place, and proves the sum, which changed the model of a folder.
func Sum(ctx context.Context, updates []Update, model, part, owner string, v *aggregation.Verifier,
	pk *groth16.ProvingKey) (made aggregation.Proof, err error) {
	updates = slices.Clone(updates)
	slices.SortFunc(updates, func(a, b Update) int { return a.Place - b.Place })
	s := aggregation.Statement{Part: part, Owner: owner}
	if s.Model, err = describe(ctx, model); err != nil {
		return made, err
	}
	var values [][]int32
	var all []circuit.Committed
	for i, u := range updates {
		switch first := updates[0]; {
		case u.Place != i:
			return made, fmt.Errorf("%w: no update, or several, for place %d", ErrUpdate, i+1)
		case u.Key != v.Digest():
			return made, fmt.Errorf("%w: update %d is for the key %s, and these are %s", ErrOther, i+1, u.Key.Short(),
				v.Digest().Short())
		case u.Clip != first.Clip || !slices.Equal(u.Names, first.Names) ||
			!slices.EqualFunc(u.Shapes, first.Shapes, slices.Equal):
			return made, fmt.Errorf("%w: update %d has other tensors, or another clipping norm, than the first", ErrUpdate,
				i+1)
		}
		values, all = append(values, u.Values), append(all, u.committed())
	}
	if err := s.Apply(values); err != nil {
		return made, err
	}
	a, err := circuit.NewAggregator(v, pk)
	if err != nil {
		return made, err
	}
	return a.Prove(s, all)
}

// WriteMean writes the weighted mean of updates as safetensors, by the sums of a statement: exchange/fixedpoint.Mean.
func WriteMean(w io.Writer, s aggregation.Statement, like Update) error {
	shapes, err := like.shapes()
	if err != nil {
		return err
	}
	sum := make([]uint32, s.Shape.Length)
	for i := range sum {
		x := s.Sum(i)
		if int64(int32(x)) != x {
			return fmt.Errorf("%w: the sum %d of element %d has more than 32 bits", ErrUpdate, x, i)
		}
		sum[i] = uint32(int32(x))
	}
	mean, err := fixedpoint.Mean(sum, math.Float64frombits(like.Clip), shapes)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUpdate, err)
	}
	tensors := map[string]*tensor.Tensor{}
	for i, n := range like.Names {
		tensors[n] = mean[i]
	}
	return safetensors.EncodeAs(w, slices.Sorted(maps.Keys(tensors)), tensors, nil, nil)
}

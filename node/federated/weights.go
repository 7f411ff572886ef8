package federated

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/federated"
	"github.com/starling-network/starling/node/prepare"
)

// ErrWeights is returned for bytes that are not the weights of the model.
var ErrWeights = errors.New("not the weights of this model")

// Entries is the number of weights that owners train in a round.
func Entries(c *train.Checkpoint, round uint32) (n int) {
	for _, i := range federated.Turn(c.Names, round) {
		n += c.Params[i].Shape.Elements()
	}
	return n
}

// Most is the largest number of weights that owners train in a round: the factors of an adapter take turns.
func Most(c *train.Checkpoint) int { return max(Entries(c, 0), Entries(c, 1)) }

// Base is the digest of the base model of a job: of the tensors that are read and not trained, and of the tokenizer;
// nil: the job has none.
func Base(b *prepare.CompiledJob) *canon.Digest {
	if b.Job.Model.BaseModel == "" {
		return nil
	}
	d := canon.Sum("starling/federated/base/1", b.Spec.Frozen[:], b.Tokenizer.JSON())
	return &d
}

// EncodeWeights are the elements of the trained tensors of a model, in order, and of control variates after them, if
// the job has some: 4 bytes for each, the lowest first.
func EncodeWeights(params []*tensor.Tensor) []byte {
	all := make([][]byte, len(params))
	for i, t := range params {
		all[i] = t.Bytes()
	}
	return slices.Concat(all...)
}

// DecodeWeights sets tensors to the elements that EncodeWeights gave. Elements that are not finite are refused.
func DecodeWeights(b []byte, params []*tensor.Tensor) error {
	n := 0
	for _, t := range params {
		n += len(t.Bytes())
	}
	if len(b) != n {
		return fmt.Errorf("%w: %d bytes, wanted %d", ErrWeights, len(b), n)
	}
	for _, t := range params {
		b = b[copy(t.Bytes(), b):]
		if slices.ContainsFunc(t.F32(), infinite) {
			return fmt.Errorf("%w: an element is not finite", ErrWeights)
		}
	}
	return nil
}

// infinite reports whether an element is not finite.
func infinite(x float32) bool { return x-x != 0 }

// WeightsDigest names such bytes.
func WeightsDigest(b []byte) canon.Digest { return canon.Sum("starling/federated/weights/1", b) }

// Params are the tensors of a model in the order of a checkpoint, each with the shape that it has there.
func Params(like *train.Checkpoint, model map[string]*tensor.Tensor) (list []*tensor.Tensor, _ error) {
	for i, name := range like.Names {
		t, ok := model[name]
		if !ok || !t.Shape.Equal(like.Params[i].Shape) || slices.ContainsFunc(t.F32(), infinite) {
			return nil, fmt.Errorf("%w: tensor %s is missing, not finite, or has another shape", ErrWeights, name)
		}
		list = append(list, t)
	}
	return list, nil
}

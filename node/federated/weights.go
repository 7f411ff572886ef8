package federated

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

// ErrWeights is returned for bytes that are not the weights of the model.
var ErrWeights = errors.New("not the weights of this model")

// EncodeWeights are the elements of the trained tensors of a model, in order: 4 bytes for each, the lowest first.
func EncodeWeights(params []*tensor.Tensor) []byte {
	var b []byte
	for _, t := range params {
		for _, x := range t.F32() {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b
}

// DecodeWeights sets tensors to the elements that EncodeWeights gave. Elements that are not finite are refused.
func DecodeWeights(b []byte, params []*tensor.Tensor) error {
	n := 0
	for _, t := range params {
		n += 4 * len(t.F32())
	}
	if len(b) != n {
		return fmt.Errorf("%w: %d bytes, wanted %d", ErrWeights, len(b), n)
	}
	for _, t := range params {
		for i := range t.F32() {
			x := math.Float32frombits(binary.LittleEndian.Uint32(b))
			if x-x != 0 {
				return fmt.Errorf("%w: an element is not finite", ErrWeights)
			}
			t.F32()[i], b = x, b[4:]
		}
	}
	return nil
}

// WeightsDigest names such bytes.
func WeightsDigest(b []byte) canon.Digest { return canon.Sum("starling/federated/weights/1", b) }

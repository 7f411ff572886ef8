package update

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
)

// A tensor that is not sent decodes to zeros, and its proof is empty.
func TestExcerptOfNothing(t *testing.T) {
	x := tensor.New(tensor.Make(tensor.Float32, codec.PartElements+5))
	payload, err := codec.Encode(codec.Skip, x)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := LeafProofOf(codec.Skip, x.Shape, 0, codec.PartElements, payload, codec.PayloadTree(payload))
	if err != nil {
		t.Fatal(err)
	}
	root, part, err := RestoreLeaves(codec.Skip, x.Shape, 0, codec.PartElements, shown)
	if err != nil || root != codec.PayloadTree(nil).Root() ||
		slices.ContainsFunc(part.F32(), func(v float32) bool { return v != 0 }) {
		t.Errorf("%s (%v)", root, err)
	}
	for _, bad := range []LeafProof{{Bytes: []byte{0}}, {Cover: []canon.Digest{{}}}} {
		if _, _, err := RestoreLeaves(codec.Skip, x.Shape, 0, codec.PartElements, bad); !errors.Is(err, codec.ErrPayload) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

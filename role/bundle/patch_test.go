package bundle_test

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// A checkpoint that has another name than the attested one leaves nothing, and takes nothing that was there.
func TestSaveAs(t *testing.T) {
	s := blob.NewMemory()
	first := &train.Checkpoint{Round: 1, Names: []string{"w"}, Params: []*tensor.Tensor{tensor.Scalar(1)}}
	name, err := bundle.SaveCheckpoint(t.Context(), s, "job", first)
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := *first
	second.Round = 2 // with the same tensors
	err = bundle.SaveAs(t.Context(), s, "job", &second, terms.Checkpoint{Round: 2, Root: second.Root(), CID: name.CID})
	if !errors.Is(err, bundle.ErrName) {
		t.Errorf("saved: %v", err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != len(before) {
		t.Errorf("%d blobs, and %d before: %v", len(list), len(before), err)
	}
	if err := bundle.SaveAs(t.Context(), s, "job", first, name); err != nil {
		t.Error(err)
	}
}

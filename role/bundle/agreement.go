package bundle

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/screen"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/progress"
)

// Agreement is the mean cosine between the updates of a round and the combined update, of the last round that an
// attested checkpoint is made of; nil if one of them is unavailable, or is in slices.
func Agreement(s *train.Spec, genesis *train.Checkpoint, e progress.Entry,
	get func(blob.CID) ([]byte, error)) *float64 {
	rounds, units := s.Applied(e.Attestation.Checkpoint.Round-1), int(s.Units)
	if len(rounds) == 0 || len(e.Attestation.Updates) != len(rounds)*units {
		return nil
	}
	deltas := make([][]*tensor.Tensor, units)
	for unit, cid := range e.Attestation.Updates[(len(rounds)-1)*units:] {
		id, err := blob.Parse(cid)
		if err != nil {
			return nil
		}
		update, err := get(id)
		if err != nil {
			return nil
		}
		if deltas[unit], err = outer.Unpack(s, genesis, rounds[len(rounds)-1], uint32(unit), canon.Digest{},
			update); err != nil {
			return nil
		}
	}
	combined, err := outer.Combine(s, deltas)
	if err != nil {
		return nil
	}
	if mean, ok := screen.Agreement(deltas, combined); ok {
		return &mean
	}
	return nil
}

package evidence

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Progress is what there is of an output, or of a payload, after some of its parts but not all. Its digest is what the
// parties of a dispute show each other.
type Progress struct {
	Done  []canon.Digest `cbor:"1,keyasint,omitempty"` // nodes of the canon.Frontier over the leaves that are done
	State []byte         `cbor:"2,keyasint,omitempty"` // of the part under way
}

// Digest is the digest that stands for a progress in the moves of a dispute.
func (p Progress) Digest() canon.Digest { return canon.Hash("starling/progress/1", p) }

// Resume checks that a progress is the one that both parties agree on before a part, empty before part 0, and returns
// the frontier over the leaves that are done. The error wraps ErrPayload.
func Resume(part uint64, before canon.Digest, p Progress, leaves int) (*canon.Frontier, error) {
	if part == 0 && (len(p.Done) > 0 || len(p.State) > 0) || part > 0 && p.Digest() != before {
		return nil, Wrong("this is not what both agree on before part %d", part)
	}
	f, err := canon.NewFrontier(leaves, p.Done)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return f, nil
}

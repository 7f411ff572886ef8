package referee

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// progress is what there is of an output, or of a payload, after some of its parts but not all. Its digest is what the
// parties of a dispute show each other.
type progress struct {
	Done  []canon.Digest `cbor:"1,keyasint,omitempty"` // nodes of the canon.Frontier over the leaves that are done
	State []byte         `cbor:"2,keyasint,omitempty"` // of what is under way
}

func (p progress) digest() canon.Digest { return canon.Hash("starling/progress/1", p) }

// opened checks what a challenger brings of what there was before a part, and returns the frontier of the leaves done.
func opened(part uint64, before canon.Digest, p progress, leaves int) (*canon.Frontier, error) {
	if part == 0 && (len(p.Done) > 0 || len(p.State) > 0) || part > 0 && p.digest() != before {
		return nil, wrong("this is not what both agree on before part %d", part)
	}
	f, err := canon.NewFrontier(leaves, p.Done)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return f, nil
}

package sale

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Evidence is shown by a buyer against a seller. Without a Leaf, it says that the answer holds another key than the
// seller committed to.
type Evidence struct {
	Index  uint64       `cbor:"1,keyasint"`
	Leaf   []byte       `cbor:"2,keyasint"` // encrypted
	Plain  canon.Digest `cbor:"3,keyasint"` // digest of the plain leaf
	Path   canon.Proof  `cbor:"4,keyasint"` // of that digest
	Sealed canon.Proof  `cbor:"5,keyasint"` // of the digest of the encrypted leaf
}

// MaxEvidence is the limit of encoded evidence in bytes: a leaf, and two paths of seven levels.
const MaxEvidence = 16 << 10

// ParseEvidence reads the canonical bytes of evidence.
func ParseEvidence(data []byte) (e Evidence, err error) {
	if len(data) > MaxEvidence {
		return e, fmt.Errorf("%w: %d bytes, at most %d", ErrEvidence, len(data), MaxEvidence)
	}
	if err := canon.Unmarshal(data, &e); err != nil {
		return e, fmt.Errorf("%w: %w", ErrEvidence, err)
	}
	return e, nil
}

// Shows returns nil if the evidence shows that the seller of this content lied with this key, and otherwise why not.
func (e Evidence) Shows(c Content, key []byte) error {
	n, i := int(c.Leaves), int(e.Index)
	switch {
	case c.Scheme.KeyDigest(key) != c.Key:
		return nil
	case len(e.Leaf) == 0 || len(e.Leaf) > LeafBytes:
		return fmt.Errorf("%w: the answer holds the key, and a leaf of %d bytes is shown", ErrEvidence, len(e.Leaf))
	case e.Index >= c.Leaves || !e.Sealed.Verify(c.Sealed, n, i, canon.Leaf(e.Leaf)):
		return fmt.Errorf("%w: it is not the encrypted leaf %d", ErrEvidence, e.Index)
	case !e.Path.Verify(c.Plain, n, i, e.Plain):
		return fmt.Errorf("%w: it is not the digest of the plain leaf %d", ErrEvidence, e.Index)
	}
	x, err := c.Scheme.NewCipher(key)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrEvidence, err)
	}
	plain := make([]byte, len(e.Leaf))
	if x.Leaf(e.Index, plain, e.Leaf); canon.Leaf(plain) == e.Plain {
		return fmt.Errorf("%w: leaf %d is the one that was offered", ErrEvidence, e.Index)
	}
	return nil
}

package goods

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/fault"
)

// Describe returns the digest of the index of files, as Seal does, without encrypting them: a listing names its files
// by it before they are sold. progress gets bytes; it may be nil.
func Describe(ctx context.Context, from Source, progress func(done, total int64)) (canon.Digest, error) {
	s, err := from.open()
	if err != nil {
		return canon.Digest{}, err
	}
	defer s.root.Close()
	x := &Index{Format: format, Parts: s.parts,
		Digests: make([]byte, countLeaves(s.parts)*uint64(len(canon.Digest{})))}
	err = each(ctx, cut(s.parts), progress, func(m *scratch, b block) error {
		if err := s.read(m, b); err != nil {
			return err
		}
		x.put(m, b)
		return nil
	})
	if err == nil {
		err = s.unchanged()
	}
	return indexDigest(canon.MustMarshal(x)), fault.OnDisk(err)
}

// put stores the digests of the plain leaves of a block.
func (x *Index) put(m *scratch, b block) {
	for i, d := range canon.Leaves(m.leaves) {
		copy(x.Digests[(b.leaf+i)*len(d):], d[:])
	}
}

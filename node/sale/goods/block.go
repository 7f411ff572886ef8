package goods

import (
	"context"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/protocol/sale"
)

// blockBytes is the number of bytes that a thread reads, encrypts and digests at a time.
const blockBytes = 512 * sale.LeafBytes

// block is a run of leaves of one part.
type block struct {
	part int   // number of the part
	at   int64 // offset in the part
	size int   // bytes
	leaf int   // number of its first leaf
	from int64 // offset in the file of the encrypted leaves
}

// cut lists the blocks of parts, in order.
func cut(parts []Part) (out []block) {
	leaf, from := 0, int64(0)
	for i, p := range parts {
		for at := int64(0); at < int64(p.Bytes); {
			b := block{i, at, int(min(blockBytes, int64(p.Bytes)-at)), leaf, from}
			out = append(out, b)
			at, from = at+int64(b.size), from+int64(b.size)
			leaf += (b.size + sale.LeafBytes - 1) / sale.LeafBytes
		}
	}
	return out
}

// sealedLeaf reads an encrypted leaf of a file with these blocks.
func sealedLeaf(r io.ReaderAt, blocks []block, leaf int) ([]byte, error) {
	at, found := slices.BinarySearchFunc(blocks, leaf, func(b block, leaf int) int { return b.leaf - leaf })
	if !found {
		at--
	}
	b := blocks[at]
	from := (leaf - b.leaf) * sale.LeafBytes
	data := make([]byte, min(sale.LeafBytes, b.size-from))
	if n, err := r.ReadAt(data, b.from+int64(from)); n < len(data) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return data, nil
}

// scratch is the memory of one thread.
type scratch struct {
	data   []byte
	leaves [][]byte
}

// read fills the memory with n bytes at an offset, and cuts them into leaves.
func (s *scratch) read(r io.ReaderAt, at int64, n int) error {
	if s.data == nil {
		s.data = make([]byte, blockBytes)
	}
	data := s.data[:n]
	if got, err := r.ReadAt(data, at); got < n {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	s.leaves = s.leaves[:0]
	for len(data) > 0 {
		size := min(sale.LeafBytes, len(data))
		s.leaves = append(s.leaves, data[:size])
		data = data[size:]
	}
	return nil
}

// crypt encrypts the leaves in their place, or decrypts them.
func (s *scratch) crypt(c sale.Cipher, first int) {
	for i, leaf := range s.leaves {
		c.Leaf(uint64(first+i), leaf, leaf)
	}
}

// each calls work for every block, on as many threads as there are processors. Threads take the blocks in order, and
// end the one that they have when another fails. progress gets the bytes that are done; it may be nil.
func each(ctx context.Context, blocks []block, progress func(done, total int64),
	work func(s *scratch, b block) error) error {
	total, done := int64(0), int64(0)
	for _, b := range blocks {
		total += int64(b.size)
	}
	var (
		threads errgroup.Group
		next    atomic.Int64
		failed  atomic.Bool
		mu      sync.Mutex
	)
	for range min(kernel.Cores, len(blocks)) {
		threads.Go(func() error {
			s := &scratch{}
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= len(blocks) {
					return nil
				}
				err := ctx.Err()
				if err == nil {
					err = work(s, blocks[i])
				}
				if err != nil {
					failed.Store(true)
					return err
				}
				mu.Lock()
				done += int64(blocks[i].size)
				if progress != nil {
					progress(done, total)
				}
				mu.Unlock()
			}
			return nil
		})
	}
	return threads.Wait()
}

// sealedDigests digests the encrypted leaves.
func sealedDigests(ctx context.Context, r io.ReaderAt, parts []Part) ([]canon.Digest, error) {
	digests := make([]canon.Digest, countLeaves(parts))
	err := each(ctx, cut(parts), nil, func(s *scratch, b block) error {
		if err := s.read(r, b.from, b.size); err != nil {
			return err
		}
		copy(digests[b.leaf:], canon.Leaves(s.leaves))
		return nil
	})
	return digests, err
}

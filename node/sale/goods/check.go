package goods

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/protocol/sale"
)

// Examine reads the index of a folder, and checks that it is the one that an offer commits to and describes its
// content. A buyer calls it before it pays.
func Examine(dir string, c sale.Content) (*Index, error) {
	path := filepath.Join(dir, FileIndex)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fault.OnDisk(err)
	}
	var data []byte
	if info.Size() <= MaxIndex { // more bytes have another digest
		if data, err = os.ReadFile(path); err != nil {
			return nil, fault.OnDisk(err)
		}
	}
	x, err := examine(data, c)
	if err != nil {
		return nil, &fault.Error{Code: fault.BadIndex, What: "the index is not that of the offer", Err: err,
			Fix: "buy from another seller: nothing is paid"}
	}
	return x, nil
}

func examine(data []byte, c sale.Content) (*Index, error) {
	if got := indexDigest(data); got != c.Index {
		return nil, fmt.Errorf("its digest is %s, and the offer says %s", got.Short(), c.Index.Short())
	}
	x, err := parse(data)
	if err != nil {
		return nil, err
	}
	if n := countLeaves(x.Parts); n != c.Leaves || x.Bytes() != c.Bytes {
		return nil, fmt.Errorf("it has %d leaves and %d bytes, and the offer says %d and %d", n, x.Bytes(), c.Leaves, c.Bytes)
	}
	if got := x.tree().Root(); got != c.Plain {
		return nil, fmt.Errorf("the root of its digests is %s, and the offer says %s", got.Short(), c.Plain.Short())
	}
	return x, nil
}

// CheckSealed checks that the encrypted file of a folder has the leaves that an offer commits to. A buyer calls it
// before it pays.
func CheckSealed(ctx context.Context, dir string, x *Index, c sale.Content) error {
	f, err := os.Open(filepath.Join(dir, FileSealed))
	if err != nil {
		return fault.OnDisk(err)
	}
	defer f.Close()
	_, err = sealedTree(ctx, f, x, c)
	return err
}

// sealedTree is the tree over the digests of the encrypted leaves, whose root is that of the offer.
func sealedTree(ctx context.Context, f *os.File, x *Index, c sale.Content) (*canon.Tree, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fault.OnDisk(err)
	}
	bad := &fault.Error{Code: fault.BadSealed, What: "the encrypted file is not that of the offer",
		Fix: "run the command again, which downloads it again; if that fails, the seller serves other bytes"}
	if uint64(info.Size()) != c.Bytes {
		bad.Err = fmt.Errorf("it has %d bytes, and the offer says %d", info.Size(), c.Bytes)
		return nil, bad
	}
	digests, err := sealedDigests(ctx, f, x.Parts)
	if err != nil {
		return nil, fault.OnDisk(err)
	}
	t := canon.NewTree(digests)
	if got := t.Root(); got != c.Sealed {
		bad.Err = fmt.Errorf("the root of its leaves is %s, and the offer says %s", got.Short(), c.Sealed.Short())
		return nil, bad
	}
	return t, nil
}

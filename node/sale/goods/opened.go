package goods

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/protocol/sale"
)

// CheckOpening checks the opening of a folder: the keys of these leaves follow from the key that an offer commits to,
// and each decrypts its leaf to the one whose digest is in the index. A buyer calls it before it pays.
func CheckOpening(dir string, x *Index, c sale.Content, leaves []uint64, v *opening.Verifier) error {
	data, err := os.ReadFile(filepath.Join(dir, FileOpening))
	if err != nil {
		return fault.OnDisk(err)
	}
	f, err := os.Open(filepath.Join(dir, FileSealed))
	if err != nil {
		return fault.OnDisk(err)
	}
	defer f.Close()
	if err := checkOpening(f, data, x, c, leaves, v); err != nil {
		return &fault.Error{Code: fault.BadOpening, What: "the drawn leaves are not shown to be those of the offer", Err: err,
			Fix: "name the verifying key of the setup that the seller used, or buy from another seller: nothing is paid"}
	}
	return nil
}

func checkOpening(sealed *os.File, data []byte, x *Index, c sale.Content, leaves []uint64,
	v *opening.Verifier) error {
	o, err := opening.Decode(data)
	if err != nil {
		return err
	}
	if err := v.Verify(c.Key, leaves, o); err != nil {
		return err
	}
	blocks := cut(x.Parts)
	for i, leaf := range leaves {
		data, err := sealedLeaf(sealed, blocks, int(leaf))
		if err != nil {
			return fmt.Errorf("leaf %d: %w", leaf, err)
		}
		if sale.OpenLeaf(o.Key(i), data, data); canon.Leaf(data) != x.digest(int(leaf)) {
			return fmt.Errorf("leaf %d: %w", leaf, errLeaf)
		}
	}
	return nil
}

// WriteOpening writes the opening of a folder, which appears when it is complete.
func WriteOpening(dir string, o opening.Opening) error {
	return fault.OnDisk(folder.WriteFile(filepath.Join(dir, FileOpening), o.Encode()))
}

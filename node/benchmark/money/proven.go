package money

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/protocol/sale"
)

// part is the number of leaves of the files for each that is opened: the least of a seller.
const part = 10

// proven seals files with a key for each leaf, opens drawn leaves with a proof, and checks them as a buyer does before
// it pays. The keys of proofs are made before.
func proven(ctx context.Context, dir string, leaves int) (p Proven, err error) {
	p.Leaves = leaves
	folder, sealed := filepath.Join(dir, "proven"), filepath.Join(dir, "proven-sealed")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return p, err
	}
	size := part * leaves * sale.LeafBytes
	if err := os.WriteFile(filepath.Join(folder, "model.safetensors"), make([]byte, size), 0o644); err != nil {
		return p, err
	}
	began := time.Now()
	data, pk, err := circuit.SetupOpening(leaves)
	if err != nil {
		return p, err
	}
	v, err := opening.NewVerifier(data)
	if err != nil {
		return p, err
	}
	opener, err := circuit.NewOpener(v, pk)
	if err != nil {
		return p, err
	}
	p.Setup = lap(&began)
	key, err := opening.NewKey()
	if err != nil {
		return p, err
	}
	content, err := goods.Seal(ctx, goods.Source{Folder: folder}, sealed, sale.LeafKeys, key.Bytes(), nil)
	if err != nil {
		return p, err
	}
	p.Seal = lap(&began)
	o := sale.Offer{ID: 1, Terms: sale.Terms{Content: content}}
	draw := o.Draw(canon.Sum("starling/bench/money/beacon"))
	o.Drawing = draw[:]
	made, err := opener.Open(key, o.Drawn(leaves))
	if err != nil {
		return p, err
	}
	if err := goods.WriteOpening(sealed, made); err != nil {
		return p, err
	}
	p.Open, p.Bytes = lap(&began), len(made.Encode())
	index, err := goods.Examine(sealed, content)
	if err != nil {
		return p, err
	}
	began = time.Now()
	err = goods.CheckOpening(sealed, index, content, o.Drawn(leaves), v)
	p.Check = lap(&began)
	return p, err
}

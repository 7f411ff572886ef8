package listings

import (
	"context"
	_ "embed" // the key and the proof

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/sim/random/draw"
)

// A verifying key, and a proof with it about an adapter and a base model that both have the files of all listings.
var (
	//go:embed testdata/verifying.key
	provenKey []byte
	//go:embed testdata/adapter.proof
	provenFile []byte
)

// prove registers the key, or proves that a listing adapts another, now and then with a parent that it does not have, a
// proof that does not hold, or the account of another.
func prove(ctx context.Context, d draw.Source, c *client.Client) (string, sdk.Msg, error) {
	if d.Often(20) {
		return c.Address(), &catalogpb.MsgRegisterKey{Sender: c.Address(), Key: provenKey}, nil
	}
	all, err := c.Catalog.Listings(ctx, 0)
	if err != nil || len(all) == 0 {
		return "", nil, err
	}
	l, key := draw.Pick(d, all), proof.KeyDigest(provenKey)
	m := &catalogpb.MsgProve{Sender: l.Owner, Listing: l.ID, Parent: draw.Pick(d, all).ID, Key: key[:], Proof: provenFile}
	if len(l.Parents) > 0 && !d.Often(10) {
		m.Parent = draw.Pick(d, l.Parents).Listing
	}
	if d.Often(10) {
		m.Proof = append([]byte(nil), provenFile...)
		m.Proof[len(m.Proof)-1-d.Intn(100)] ^= 1
	}
	if d.Often(10) {
		m.Sender = c.Address()
	}
	return m.Sender, m, nil
}

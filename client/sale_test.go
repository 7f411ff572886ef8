package client_test

import (
	"bytes"
	"testing"

	"github.com/starling-network/starling/canon"
	chainsale "github.com/starling-network/starling/chain/x/sale"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/sale"
)

// leaf is a file of one leaf, sealed by its seller; plain is the digest that the seller commits to.
func leaf(t *testing.T, name string, plain []byte) (key, sealed []byte, c sale.Content) {
	t.Helper()
	key, file := bytes.Repeat([]byte{name[0] & 0x1f}, sale.KeyBytes), []byte("weights of a model")
	x, err := sale.LeafKeys.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	sealed = make([]byte, len(file))
	x.Leaf(0, sealed, file)
	if plain == nil {
		plain = file
	}
	return key, sealed, sale.Content{Leaves: 1, Bytes: uint64(len(file)), Key: sale.LeafKeys.KeyDigest(key),
		Scheme: sale.LeafKeys, Index: canon.Leaf([]byte("index")),
		Plain:  canon.NewTree([]canon.Digest{canon.Leaf(plain)}).Root(),
		Sealed: canon.NewTree([]canon.Digest{canon.Leaf(sealed)}).Root()}
}

// after waits for the blocks of a window, and one more.
func (n *network) after(c *client.Client, window uint32) {
	n.t.Helper()
	for until := n.height(c) + int64(window) + 2; n.height(c) < until; {
	}
}

// Files are sold in three coins: an honest seller is paid after the window of complaints, one that does not answer is
// not, and one that lied loses its bond. The books are balanced at every step.
func TestFilesAreSold(t *testing.T) {
	t.Parallel()
	n := start(t, "seller", "buyer")
	n.holders("seller", "buyer")
	seller, buyer := n.clients["seller"], n.clients["buyer"]
	mask := bytes.Repeat([]byte{2}, sale.KeyBytes)
	for _, c := range []struct {
		name  string
		coin  coin.Registered
		plain []byte // committed to; nil: the file
		mute  bool
		turn  bool // away
		phase sale.Phase
		gains int64 // of the seller, in parts of the price
	}{
		{name: "honest", coin: dai, phase: sale.Settled, gains: 2},
		{name: "mute", coin: usdc, mute: true, phase: sale.Expired},
		{name: "full", coin: usdc, mute: true, turn: true, phase: sale.Rejected},
		{name: "liar", coin: coin.Zen(), plain: []byte("another file"), phase: sale.Refunded, gains: -1},
	} {
		key, sealed, content := leaf(t, c.name, c.plain)
		price, err := c.coin.Parse("2")
		n.must(err)
		had := n.has("seller", c.coin.Coin)
		id, err := seller.Sale.Create(n.ctx, sale.Terms{Name: c.name, Content: content, Price: price, Denom: c.coin.Denom,
			Bond: price / 2, Answer: sale.MinWindow, Complaint: sale.MinWindow, Seal: make([]byte, sale.SealKeyBytes),
			Locations: []string{"http://127.0.0.1:1/"}})
		n.must(err)
		order, err := buyer.Sale.Place(n.ctx, id, sale.MaskDigest(mask), make([]byte, sale.MaskBoxBytes))
		n.must(err)
		_, err = seller.Sale.Create(n.ctx, sale.Terms{Name: c.name, Content: content, Price: price, Denom: c.coin.Denom,
			Answer: sale.MinWindow, Complaint: sale.MinWindow, Seal: make([]byte, sale.SealKeyBytes),
			Locations: []string{"http://127.0.0.1:1/"}})
		n.refused(err, sale.ErrTwice, chainsale.Name, 12)
		_, err = buyer.Sale.Place(n.ctx, id, sale.MaskDigest(mask), make([]byte, sale.MaskBoxBytes))
		n.refused(err, sale.ErrTwice, chainsale.Name, 12)
		n.balanced(buyer)
		e := sale.Evidence{Leaf: sealed, Plain: canon.Leaf(c.plain), Path: canon.Proof{}, Sealed: canon.Proof{}}
		n.refused(buyer.Sale.Complain(n.ctx, order, mask, e), sale.ErrPhase, chainsale.Name, 5)
		n.refused(buyer.Sale.Answer(n.ctx, order, key), sale.ErrParty, chainsale.Name, 4)
		n.refused(buyer.Sale.Withdraw(n.ctx, id), sale.ErrParty, chainsale.Name, 4)
		n.refused(buyer.Sale.Reject(n.ctx, []uint64{order}), sale.ErrParty, chainsale.Name, 4)
		n.refused(seller.Sale.Reject(n.ctx, make([]uint64, sale.MaxRejected+1)), sale.ErrOrder, chainsale.Name, 6)
		if c.turn {
			n.must(seller.Sale.Reject(n.ctx, []uint64{order}))
		}
		if !c.mute {
			n.must(seller.Sale.Answer(n.ctx, order, sale.Unmask(key, mask)))
		}
		if c.plain != nil {
			n.must(buyer.Sale.Complain(n.ctx, order, mask, e))
		} else if !c.mute {
			e.Plain = canon.Leaf([]byte("weights of a model"))
			n.refused(buyer.Sale.Complain(n.ctx, order, mask, e), sale.ErrEvidence, chainsale.Name, 7)
		}
		n.balanced(buyer)
		n.after(buyer, sale.MinWindow)
		r, err := buyer.Sale.Order(n.ctx, order)
		n.must(err)
		if r.Phase != c.phase {
			t.Errorf("%s: %+v", c.name, r)
		}
		if c.plain == nil {
			n.must(seller.Sale.Withdraw(n.ctx, id))
		}
		if has, want := n.has("seller", c.coin.Coin), uint64(int64(had)+c.gains*int64(price)/2); has != want {
			t.Errorf("%s: the seller has %s, want %s", c.name, c.coin.Text(has), c.coin.Text(want))
		}
		n.balanced(buyer)
		_, err = buyer.Sale.Place(n.ctx, id, sale.MaskDigest(key), make([]byte, sale.MaskBoxBytes))
		n.refused(err, sale.ErrClosed, chainsale.Name, 3)
	}
	open, err := buyer.Sale.Offers(n.ctx, false)
	n.must(err)
	all, err := buyer.Sale.Offers(n.ctx, true)
	n.must(err)
	if len(open) != 0 || len(all) != 4 || all[3].Terms.Name != "honest" || all[3].Sold != 1 || !all[0].Lied {
		t.Errorf("open: %+v, all: %+v", open, all)
	}
	drawn := map[string]bool{}
	for _, o := range all {
		if drawn[string(o.Drawing)] = true; o.Draws() {
			t.Errorf("no leaves of offer %d are drawn", o.ID)
		}
	}
	if len(drawn) != len(all) {
		t.Errorf("%d draws of %d offers", len(drawn), len(all))
	}
}

package sale

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/protocol/sale"
)

// opener is a setup for openings of one leaf, of the 14 leaves of the files of tests.
type opener struct {
	*circuit.Opener
	verifier *opening.Verifier
}

func newOpener() (o opener) {
	data, pk, err := circuit.SetupOpening(1)
	if err == nil {
		o.verifier, err = opening.NewVerifier(data)
	}
	if err == nil {
		o.Opener, err = circuit.NewOpener(o.verifier, pk)
	}
	if err != nil {
		panic(err)
	}
	return o
}

var first, second = sync.OnceValue(newOpener), sync.OnceValue(newOpener)

// draw draws the leaf of the offer of a sale.
func (x *sold) draw(beacon string) sale.Offer {
	d := x.offers[0].Draw(canon.Leaf([]byte(beacon)))
	x.offers[0].Drawing = d[:]
	return x.offers[0]
}

// provenSale offers files with a key for each leaf, of which one is drawn and opened.
func provenSale(t *testing.T, cheat func(s *Seller)) *sold {
	t.Helper()
	x := newSaleOpened(t, first().Opener, cheat)
	if err := x.seller.Open(x.offers[0], first().Opener); code(err) != fault.OtherOffer {
		t.Fatalf("before the leaf is drawn: %v", err)
	}
	if err := x.seller.Open(x.draw("beacon"), first().Opener); err != nil {
		t.Fatal(err)
	}
	return x
}

func (x *sold) proven(t *testing.T, name string) Buyer {
	b := x.buyer(t, name)
	b.Openings = first().verifier
	return b
}

func TestProvenSale(t *testing.T) {
	x := provenSale(t, nil)
	for _, name := range []string{"buyer", "other"} {
		b := x.proven(t, name)
		if name == "other" {
			b.Openings = nil // it pays without a proof
		}
		out, err := b.Buy(t.Context())
		if err != nil || out.Kind != Bought {
			t.Fatalf("%s: %+v, %v", name, out, err)
		}
		x.equal(t, out.Folder)
		shown := map[string]int{"buyer": 1, "other": 0}[name]
		again := b
		again.Openings = x.proven(t, name).Openings // no proof after the payment counts
		for _, b := range []Buyer{b, again} {
			if again, err := b.Buy(t.Context()); err != nil || again.Kind != Bought || again.Opened != shown {
				t.Errorf("%s again: %+v, %v", name, again, err)
			}
		}
	}
	x.end()
	x.check(t, "two purchases", map[string]int64{"buyer": start - price, "other": start - price,
		"seller": start - bond + 2*price})
	name := filepath.Join(x.seller.dir, dirPublic, goods.FileOpening)
	made, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for what, data := range map[string][]byte{"open already": made, "cut off by a power failure": nil} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		err := x.seller.Open(x.offers[0], first().Opener)
		now, failed := os.ReadFile(name)
		if _, bad := opening.Decode(now); errors.Join(err, failed, bad) != nil || data != nil && !bytes.Equal(now, data) {
			t.Errorf("%s: %v", what, errors.Join(err, failed, bad))
		}
	}
}

// A seller that cheats in a way that a proof shows is found before the buyer orders: it has no order, and the buyer has
// all its coins.
func TestProofsShowCheats(t *testing.T) {
	public := func(x *sold, name string) string { return filepath.Join(x.seller.dir, dirPublic, name) }
	reopen := func(t *testing.T, x *sold, key []byte, leaf uint64, change func(*opening.Opening)) {
		t.Helper()
		k, err := opening.ParseKey(key)
		if err != nil {
			t.Fatal(err)
		}
		o, err := first().Opener.Open(k, []uint64{leaf})
		if err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(&o)
		}
		if err := goods.WriteOpening(filepath.Join(x.seller.dir, dirPublic), o); err != nil {
			t.Fatal(err)
		}
	}
	other, err := opening.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		before func(t *testing.T, s *Seller)
		after  func(t *testing.T, x *sold)
		code   string
	}{
		"garbage in the drawn leaf": {before: func(t *testing.T, s *Seller) {
			change(t, s, func(x *goods.Index) { // every leaf is another
				for i := range len(x.Digests) / 32 {
					x.Digests[32*i] ^= 1
				}
			})
		}},
		"a key of the leaf that decrypts it, and does not follow from the key": {after: func(t *testing.T, x *sold) {
			reopen(t, x, x.seller.secrets.Key, x.offers[0].Drawn(1)[0], func(o *opening.Opening) {
				k := other.Leaf(x.offers[0].Drawn(1)[0])
				o.Keys = k[:]
			})
		}},
		"a proof about another key": {after: func(t *testing.T, x *sold) {
			reopen(t, x, other.Bytes(), x.offers[0].Drawn(1)[0], nil)
		}},
		"a leaf that was not drawn": {after: func(t *testing.T, x *sold) {
			reopen(t, x, x.seller.secrets.Key, (x.offers[0].Drawn(1)[0]+1)%x.offers[0].Terms.Content.Leaves, nil)
		}},
		"a proof of before the draw": {after: func(_ *testing.T, x *sold) {
			for was := x.offers[0].Drawn(1)[0]; x.offers[0].Drawn(1)[0] == was; {
				x.draw(string(x.offers[0].Drawing))
			}
		}},
		"a proof by other keys of proofs": {after: func(t *testing.T, x *sold) {
			if err := errors.Join(os.Remove(public(x, goods.FileOpening)),
				x.seller.Open(x.offers[0], second().Opener)); err != nil {
				t.Fatal(err)
			}
		}},
		"points that are none": {after: func(t *testing.T, x *sold) {
			reopen(t, x, x.seller.secrets.Key, x.offers[0].Drawn(1)[0], func(o *opening.Opening) { o.Points[5] ^= 1 })
		}},
		"no proof": {after: func(t *testing.T, x *sold) {
			if err := os.Remove(public(x, goods.FileOpening)); err != nil {
				t.Fatal(err)
			}
		}},
		"a proof that is too long": {after: func(t *testing.T, x *sold) {
			if err := os.WriteFile(public(x, goods.FileOpening), make([]byte, opening.MaxOpening+1), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		"a leaf that is not drawn yet": {code: fault.BadOpening, after: func(_ *testing.T, x *sold) {
			x.offers[0].Drawing = nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			x := provenSale(t, func(s *Seller) {
				if c.before != nil {
					c.before(t, s)
				}
			})
			if c.after != nil {
				c.after(t, x)
			}
			if c.code == "" {
				c.code = fault.Unreachable
			}
			if out, err := x.proven(t, "buyer").Buy(t.Context()); code(err) != c.code || len(x.orders) > 0 {
				t.Errorf("%+v, %v, %d orders", out, err, len(x.orders))
			}
			x.end()
			x.check(t, name, map[string]int64{"buyer": start, "seller": start - bond})
		})
	}
}

// A seller with one key has no proof, and one with few leaves does not open them.
func TestOpeningsAreRefused(t *testing.T) {
	x := newSale(t, nil)
	if _, err := x.proven(t, "buyer").Buy(t.Context()); code(err) != fault.BadOpening || len(x.orders) > 0 {
		t.Errorf("a sale without a proof: %v", err)
	}
	if err := x.seller.Open(x.offers[0], first().Opener); code(err) != fault.OtherOffer {
		t.Errorf("files with one key: %v", err)
	}
	answer, err := http.Get(x.web.URL + "/" + goods.FileOpening)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusNotFound {
		t.Errorf("an opening that is not there: %d", answer.StatusCode)
	}
	dir := filepath.Join(t.TempDir(), "few")
	few := t.TempDir()
	if err := os.WriteFile(filepath.Join(few, "model.safetensors"), bytes.Repeat([]byte{1}, 9*sale.LeafBytes),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), goods.Source{Folder: few}, dir, first().Opener, nil); code(err) != fault.BadFolder {
		t.Errorf("one leaf of nine would be opened: %v", err)
	}
	if err := x.seller.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), goods.Source{Folder: x.goods}, x.seller.dir, first().Opener,
		nil); code(err) != fault.Exists {
		t.Errorf("an offer without a proof is continued with one: %v", err)
	}
}

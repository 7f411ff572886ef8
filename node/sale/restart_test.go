package sale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/protocol/sale"
)

var errKilled = errors.New("killed")

// killer ends a buyer at its n-th step: before the step, or when the network has done it.
type killer struct {
	account
	step, at int
	after    bool
	end      context.CancelFunc
}

func (k *killer) do(f func() error) error {
	k.step++
	if k.step == k.at && !k.after {
		return errKilled
	}
	err := f()
	if k.step == k.at {
		return errKilled
	}
	return err
}

func (k *killer) Offer(ctx context.Context, id uint64) (o sale.Offer, err error) {
	err = k.do(func() (err error) { o, err = k.account.Offer(ctx, id); return err })
	return o, err
}

func (k *killer) Order(ctx context.Context, id uint64) (o sale.Order, err error) {
	err = k.do(func() (err error) { o, err = k.account.Order(ctx, id); return err })
	return o, err
}

func (k *killer) Orders(ctx context.Context, offer uint64) (o []sale.Order, err error) {
	err = k.do(func() (err error) { o, err = k.account.Orders(ctx, offer); return err })
	if errors.Is(err, errKilled) {
		o = nil
	}
	return o, err
}

func (k *killer) Place(ctx context.Context, offer uint64, mask canon.Digest, box []byte) (id uint64, err error) {
	err = k.do(func() (err error) { id, err = k.account.Place(ctx, offer, mask, box); return err })
	return id, err
}

func (k *killer) Complain(ctx context.Context, order uint64, mask []byte, e sale.Evidence) error {
	return k.do(func() error { return k.account.Complain(ctx, order, mask, e) })
}

// say kills at progress.
func (k *killer) say(string, int64, int64) {
	if k.step++; k.step == k.at {
		k.end()
	}
}

// A buyer that is killed at any step continues when it is started again, orders once and pays once.
func TestBuyerIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		cheat func(t *testing.T, s *Seller)
		want  Kind
		gain  int64
	}{
		"honest": {want: Bought, gain: -price},
		"bad leaf": {want: Lied, gain: bond / 2, cheat: func(t *testing.T, s *Seller) {
			change(t, s, func(x *goods.Index) { x.Digests[0] ^= 1 })
		}},
	} {
		kills := 0
		for at, done := 1, false; !done; at++ {
			for _, after := range []bool{false, true} {
				x := newSale(t, func(s *Seller) {
					if c.cheat != nil {
						c.cheat(t, s)
					}
				})
				b := x.buyer(t, "buyer")
				ctx, cancel := context.WithCancel(t.Context())
				k := &killer{account: account{x.market, "buyer"}, at: at, after: after, end: cancel}
				first := b
				first.Market, first.Say = k, k.say
				first.Next = func(ctx context.Context) error { return k.do(func() error { return x.next(ctx) }) }
				out, err := first.Buy(ctx)
				cancel()
				done = k.step < at
				if err != nil {
					kills++
					out, err = b.Buy(t.Context())
				}
				step := fmt.Sprintf("%s: killed at step %d, after it %v", name, at, after)
				if err != nil || out.Kind != c.want || len(x.orders) != 1 {
					t.Fatalf("%s: %+v, %v, %d orders", step, out, err, len(x.orders))
				}
				if c.want == Bought {
					x.equal(t, out.Folder)
				} else if out.Amount != price+bond/2 || out.Leaf != 0 {
					t.Errorf("%s: %+v", step, out)
				}
				again, err := b.Buy(t.Context())
				if err != nil || again != out {
					t.Errorf("%s: once more: %+v, %v", step, again, err)
				}
				x.end()
				x.check(t, step, map[string]int64{"buyer": start + c.gain})
			}
		}
		if kills < 10 {
			t.Errorf("%s: %d kills", name, kills)
		}
	}
}

// An order that the network takes some blocks after the buyer sent it is found, and not sent again.
func TestOrderComesLate(t *testing.T) {
	x := newSale(t, nil)
	b := x.buyer(t, "buyer")
	late := &later{account: account{x.market, "buyer"}}
	first := b
	first.Market = late
	if _, err := first.Buy(t.Context()); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	blocks := 0
	b.Next = func(ctx context.Context) error {
		if blocks++; blocks == 3 {
			if err := late.take(); err != nil {
				return err
			}
		}
		return x.next(ctx)
	}
	out, err := b.Buy(t.Context())
	if err != nil || out.Kind != Bought || len(x.orders) != 1 || blocks < 3 {
		t.Fatalf("%+v, %v, %d orders, %d blocks", out, err, len(x.orders), blocks)
	}
}

type later struct {
	account
	take func() error
}

func (l *later) Place(ctx context.Context, offer uint64, mask canon.Digest, box []byte) (uint64, error) {
	l.take = func() error { _, err := l.account.Place(ctx, offer, mask, box); return err }
	return 0, errKilled
}

// A buyer that comes after the window of complaints says so, with the lie.
func TestBuyerComesTooLate(t *testing.T) {
	x := newSale(t, func(s *Seller) { change(t, s, func(x *goods.Index) { x.Digests[0] ^= 1 }) })
	b := x.buyer(t, "buyer")
	next := b.Next
	b.Next = func(ctx context.Context) error { return errors.Join(next(ctx), errKilled) }
	if _, err := b.Buy(t.Context()); !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	x.end()
	b.Next = next
	_, err := b.Buy(t.Context())
	if _, lie := errors.AsType[*goods.Lie](err); code(err) != fault.Late || !lie {
		t.Fatal(err)
	}
}

// Folders with other contents are refused before a payment, and nothing in them is removed.
func TestBuyerRefusesFolders(t *testing.T) {
	x := newSale(t, nil)
	b := x.buyer(t, "buyer")
	other := t.TempDir()
	mine := filepath.Join(other, goods.FileIndex)
	if err := os.WriteFile(mine, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	c := b
	c.Dir = other
	if _, err := c.Buy(t.Context()); code(err) != fault.Exists {
		t.Error(err)
	}
	c = b
	c.To = other
	if _, err := c.Buy(t.Context()); code(err) != fault.Exists {
		t.Error(err)
	}
	c = b
	c.To = x.goods
	if _, err := c.Buy(t.Context()); code(err) != fault.Exists {
		t.Error(err)
	}
	if got, _ := os.ReadFile(mine); string(got) != "mine" || len(x.orders) > 0 {
		t.Error("it is changed, or ordered")
	}
	if _, err := b.Buy(t.Context()); err != nil {
		t.Fatal(err)
	}
	y := newSale(t, nil)
	y.offers = append(y.offers, y.offers[0])
	y.offers[1].ID = 2
	c = b
	c.Offer, c.Market = 2, account{y.market, "buyer"}
	if _, err := c.Buy(t.Context()); code(err) != fault.OtherOffer {
		t.Error(err)
	}
	x.offers[0].Withdrawn = true
	if _, err := x.buyer(t, "other").Buy(t.Context()); code(err) != fault.Closed {
		t.Error(err)
	}
}

// Orders without a mask that fill the places of an offer are rejected, and close it to others for a few blocks only. An
// order with a mask is answered before any is rejected.
func TestOrdersWithoutAMaskAreRejected(t *testing.T) {
	x := newSale(t, nil)
	b := x.buyer(t, "buyer")
	junk := account{x.market, "other"}
	ctx, places := t.Context(), 0
	x.coins["other"] = 2000 * price
	for ; ; places++ {
		digest := canon.Leaf([]byte(fmt.Sprint("mask ", places)))
		if _, err := junk.Place(ctx, 1, digest, make([]byte, sale.MaskBoxBytes)); errors.Is(err, sale.ErrMany) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if err := x.next(ctx); err != nil || x.offers[0].Open != uint32(places-sale.MaxRejected) {
		t.Fatalf("%d of %d orders are open, %v", x.offers[0].Open, places, err)
	}
	if out, err := b.Buy(ctx); err != nil || out.Kind != Bought {
		t.Fatalf("%+v, %v", out, err)
	}
	for x.offers[0].Open > 0 {
		if err := x.next(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if x.height > 3*window || x.coins["other"] != 2000*price {
		t.Errorf("at block %d the other has %d, wanted %d", x.height, x.coins["other"], 2000*price)
	}
}

// A seller that is restarted at every block answers each order once. It rejects one that ends soon, and the log says
// why.
func TestSellerIsRestarted(t *testing.T) {
	x := newSale(t, nil)
	dir := x.seller.dir
	b := x.buyer(t, "buyer")
	b.Next = func(ctx context.Context) (err error) {
		if err := x.seller.Close(); err != nil {
			return err
		}
		if x.seller, err = OpenSeller(dir); err != nil {
			return err
		}
		return x.next(ctx)
	}
	if out, err := b.Buy(t.Context()); err != nil || out.Kind != Bought {
		t.Fatalf("%+v, %v", out, err)
	}
	m, box := mask(t, x, "other")
	if _, err := (account{x.market, "other"}).Place(t.Context(), 1, sale.MaskDigest(m), box); err != nil {
		t.Fatal(err)
	}
	for range window - margin + 1 {
		x.block()
	}
	x.offers[0].Withdrawn = true
	var log bytes.Buffer
	err := x.seller.Run(t.Context(), account{x.market, "seller"}, func(context.Context) (int64, error) {
		x.block()
		return x.height, nil
	}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || strings.Count(log.String(), "may be too late") != 1 || len(x.orders[1].Answer) > 0 {
		t.Errorf("%v: %s", err, log.String())
	}
	x.check(t, "the end", map[string]int64{"seller": start + price, "buyer": start - price, "other": start})
}

// Prepare that is cut off draws another key, and one that is done keeps its files.
func TestPrepare(t *testing.T) {
	x := newSale(t, nil)
	from := goods.Source{Folder: x.goods}
	dir := filepath.Join(t.TempDir(), "s")
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Prepare(ctx, from, dir, nil, func(int64, int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s, err := Prepare(t.Context(), from, dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), from, dir, nil, nil); !errors.Is(err, folder.ErrInUse) {
		t.Errorf("a second process: %v", err)
	}
	_ = s.Close()
	again, err := Prepare(t.Context(), from, dir, nil, func(int64, int64) { t.Error("it encrypts again") })
	if err != nil || again.secrets.Content != s.secrets.Content {
		t.Fatal(err)
	}
	if err := again.Offered(x.offers[0]); code(err) != fault.OtherOffer {
		t.Errorf("the offer of another folder: %v", err)
	}
	if err := again.Run(t.Context(), nil, nil, discard); code(err) != fault.OtherOffer {
		t.Errorf("no offer: %v", err)
	}
	_ = again.Close()
	if _, err := Prepare(t.Context(), goods.Source{Folder: t.TempDir()}, dir, nil, nil); code(err) != fault.Exists {
		t.Errorf("another folder: %v", err)
	}
	for _, place := range []string{x.goods, filepath.Join(x.goods, "s"), filepath.Dir(x.goods)} {
		if _, err := Prepare(t.Context(), from, place, nil, nil); code(err) != fault.BadFolder {
			t.Errorf("%s: %v", place, err)
		}
	}
	used := t.TempDir()
	mine := filepath.Join(used, "public", "page.html")
	if err := errors.Join(os.MkdirAll(filepath.Dir(mine), 0o755), os.WriteFile(mine, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := Prepare(t.Context(), from, used, nil, nil); code(err) != fault.Exists {
		t.Errorf("a folder with other files: %v", err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Error(err)
	}
	if _, err := OpenSeller(t.TempDir()); code(err) != fault.BadFolder {
		t.Errorf("no seller: %v", err)
	}
}

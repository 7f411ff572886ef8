package sale

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/proof/circuit"
	"github.com/starling-network/starling/protocol/sale"
)

const (
	price  = 50
	bond   = 30
	start  = 1000 // grains of every account
	window = 30   // blocks
)

// market plays the rules of protocol/sale in memory.
type market struct {
	height int64
	offers []sale.Offer // number i+1 at i
	orders []sale.Order
	coins  map[string]int64
}

func (m *market) offer(t *testing.T, seller string, terms sale.Terms) sale.Offer {
	t.Helper()
	if err := terms.Validate(); err != nil {
		t.Fatal(err)
	}
	o := sale.Offer{ID: uint64(len(m.offers) + 1), Seller: seller, Terms: terms}
	m.offers = append(m.offers, o)
	m.coins[seller] -= int64(terms.Bond)
	return o
}

func (m *market) pay(payments []sale.Payment) {
	for _, p := range payments {
		m.coins[p.To] += int64(p.Amount)
	}
}

// block makes a block.
func (m *market) block() {
	m.height++
	for i, order := range m.orders {
		var payments []sale.Payment
		o := &m.offers[order.Offer-1]
		*o, m.orders[i], payments = o.Expire(order, m.height)
		m.pay(payments)
	}
}

// check compares the coins of accounts; the network holds the rest.
func (m *market) check(t *testing.T, at string, want map[string]int64) {
	t.Helper()
	for account, coins := range want {
		if m.coins[account] != coins {
			t.Errorf("%s: %s has %d grains, wanted %d", at, account, m.coins[account], coins)
		}
	}
}

// account is the market as one account sees it.
type account struct {
	*market
	name string
}

func (a account) Offer(_ context.Context, id uint64) (sale.Offer, error) { return a.offers[id-1], nil }

func (a account) Order(_ context.Context, id uint64) (sale.Order, error) { return a.orders[id-1], nil }

func (a account) Orders(_ context.Context, offer uint64) ([]sale.Order, error) {
	return slices.DeleteFunc(slices.Clone(a.orders), func(o sale.Order) bool { return o.Offer != offer }), nil
}

func (a account) Place(_ context.Context, offer uint64, mask canon.Digest, box []byte) (uint64, error) {
	id := uint64(len(a.orders) + 1)
	o, order, err := a.offers[offer-1].Place(id, sale.Order{Buyer: a.name, Mask: mask, Box: box}, a.height)
	if err != nil {
		return 0, err
	}
	a.coins[a.name] -= price
	a.offers[offer-1], a.orders = o, append(a.orders, order)
	return id, nil
}

func (a account) Answer(_ context.Context, id uint64, answer []byte) (err error) {
	order := &a.orders[id-1]
	*order, err = a.offers[order.Offer-1].Reply(*order, a.name, answer, a.height)
	return err
}

func (a account) Reject(_ context.Context, ids []uint64) error {
	if len(ids) == 0 || len(ids) > sale.MaxRejected {
		return sale.ErrOrder
	}
	for _, id := range ids {
		order := &a.orders[id-1]
		o, next, payments, err := a.offers[order.Offer-1].Reject(*order, a.name)
		if err != nil {
			return err
		}
		a.offers[order.Offer-1], *order = o, next
		a.pay(payments)
	}
	return nil
}

func (a account) Complain(_ context.Context, id uint64, mask []byte, e sale.Evidence) error {
	e, err := sale.ParseEvidence(canon.MustMarshal(e))
	if err != nil {
		return err
	}
	order := &a.orders[id-1]
	o, next, payments, err := a.offers[order.Offer-1].Complain(*order, a.name, mask, e, a.height)
	a.offers[order.Offer-1], *order = o, next
	a.pay(payments)
	return err
}

// sold is a sale of a folder by the account seller.
type sold struct {
	*market
	seller *Seller
	web    *httptest.Server
	goods  string
	serve  http.Handler
	silent bool // it does not answer
}

// discard is a log for tests that do not read it.
var discard = slog.New(slog.DiscardHandler)

// newSale prepares a folder and offers it. cheat may change the seller before the offer.
func newSale(t *testing.T, cheat func(s *Seller)) *sold {
	t.Helper()
	return newSaleOpened(t, nil, cheat)
}

// newSaleOpened is newSale of a seller with an opener.
func newSaleOpened(t *testing.T, with *circuit.Opener, cheat func(s *Seller)) *sold {
	t.Helper()
	x := &sold{market: &market{height: 1, coins: map[string]int64{"seller": start, "buyer": start, "other": start}},
		goods: t.TempDir()}
	random := make([]byte, 40_005)
	_, _ = rand.Read(random)
	for name, n := range map[string]int{"model.safetensors": len(random), "config.json": 700,
		"tokenizer/vocab.json": 9000} {
		path := filepath.Join(x.goods, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, random[:n], 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	dir := filepath.Join(t.TempDir(), "s")
	if x.seller, err = Prepare(t.Context(), goods.Source{Folder: x.goods}, dir, with, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.seller.Close() })
	if cheat != nil {
		cheat(x.seller)
	}
	x.serve = x.seller.Handler()
	x.web = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { x.serve.ServeHTTP(w, r) }))
	t.Cleanup(x.web.Close)
	o := x.offer(t, "seller", x.seller.Terms(sale.Terms{Name: "model", Price: price, Bond: bond, Answer: window,
		Complaint: window, Locations: []string{x.web.URL}}))
	if err := x.seller.Offered(o); err != nil {
		t.Fatal(err)
	}
	return x
}

// next makes a block, in which the seller answers.
func (x *sold) next(ctx context.Context) error {
	x.block()
	if x.silent {
		return nil
	}
	_, err := x.seller.answer(ctx, account{x.market, "seller"}, x.height, discard)
	return err
}

func (x *sold) buyer(t *testing.T, name string) Buyer {
	dir := t.TempDir()
	return Buyer{Market: account{x.market, name}, Address: name, Offer: x.seller.Offer(), Dir: filepath.Join(dir, "work"),
		To: filepath.Join(dir, "files"), Next: x.next, retry: time.Nanosecond}
}

// end makes blocks until no order is open.
func (x *sold) end() {
	for range 3 * window {
		x.block()
	}
}

// equal checks that a folder has the files of the sale.
func (x *sold) equal(t *testing.T, dir string) {
	t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for root, files := range map[string]map[string]string{x.goods: want, dir: got} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			rel, _ := filepath.Rel(root, path)
			files[rel] = string(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d files, wanted %d", len(got), len(want))
	}
	for name, data := range want {
		if got[name] != data {
			t.Errorf("%s is not what was sold", name)
		}
	}
}

func code(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return e.Code
	}
	return ""
}

package client_test

import (
	"bytes"
	"testing"

	"github.com/starling-network/starling/canon"
	chaincatalog "github.com/starling-network/starling/chain/x/catalog"
	chainreward "github.com/starling-network/starling/chain/x/reward"
	chainsale "github.com/starling-network/starling/chain/x/sale"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/sale"
)

// work is a listing of a model.
func workOf(title string, royalty uint32, files canon.Digest, digests ...canon.Digest) catalog.Terms {
	return catalog.Terms{Kind: catalog.Model, Title: title, Licence: catalog.Licence{Name: "Apache-2.0"}, Files: files,
		Royalty: royalty, Digests: digests}
}

// held is the revenue of a work for a holder, in one coin.
func (n *network) held(work, holder string, c coin.Coin) (shares, due uint64) {
	n.t.Helper()
	m, err := n.clients[holder].Reward.Model(n.ctx, work, key(holder).Address())
	n.must(err)
	if c.Own() {
		return m.Shares, m.Due
	}
	for _, in := range m.Coins {
		if in.Coin == c {
			due = in.Due
		}
	}
	return m.Shares, due
}

// earns checks the revenue that holders may claim, in grains for a million shares.
func (n *network) earns(what string, c coin.Coin, whole map[string]uint64, holders ...string) {
	n.t.Helper()
	for work, revenue := range whole {
		all := uint64(0)
		for _, name := range holders {
			shares, due := n.held(work, name, c)
			if want := shares * (revenue / reward.Shares); due != want {
				n.t.Errorf("%s: %s has %d shares of %s, and may claim %d, want %d", what, name, shares, work, due, want)
			}
			all += shares
		}
		if all != reward.Shares {
			n.t.Errorf("%s: the holders have %d shares of %s", what, all, work)
		}
	}
}

// sold sells the files of a listing in a coin with a bond, withdraws the offer, and waits until the price is paid and
// the bond returned. It returns by how much the seller has more than before.
func (n *network) sold(seller, buyer string, listing uint64, part uint32, index canon.Digest, in coin.Registered,
	price uint64) uint64 {
	n.t.Helper()
	had := n.has(seller, in.Coin)
	secret, _, content := leaf(n.t, in.Symbol, nil)
	content.Index = index
	terms := sale.Terms{Name: "files", Content: content, Price: price, Denom: in.Denom, Answer: sale.MinWindow,
		Complaint: sale.MinWindow, Seal: make([]byte, sale.SealKeyBytes), Locations: []string{"http://127.0.0.1:1/"},
		Listing: listing, SellerPart: part, Bond: price / 4}
	s, b, mask := n.clients[seller], n.clients[buyer], bytes.Repeat([]byte{2}, sale.KeyBytes)
	_, err := b.Sale.Create(n.ctx, terms)
	n.refused(err, chainsale.ErrFiles, chainsale.Name, 13)
	terms.Content.Index = canon.Sum("other files")
	_, err = s.Sale.Create(n.ctx, terms)
	n.refused(err, chainsale.ErrFiles, chainsale.Name, 13)
	terms.Content.Index = index
	id, err := s.Sale.Create(n.ctx, terms)
	n.must(err)
	order, err := b.Sale.Place(n.ctx, id, sale.MaskDigest(mask), make([]byte, sale.MaskBoxBytes))
	n.must(err)
	n.must(s.Sale.Answer(n.ctx, order, sale.Unmask(secret, mask)))
	n.must(s.Sale.Withdraw(n.ctx, id))
	n.balanced(b)
	n.after(b, sale.MinWindow)
	if r, err := b.Sale.Order(n.ctx, order); err != nil || r.Phase != sale.Settled {
		n.t.Fatalf("%+v, %v", r, err)
	}
	n.balanced(b)
	return n.has(seller, in.Coin) - had
}

// A model is trained on a listed base that its order names, and whose owner listed it with a data set as its parent.
// The consumer lists the model with no parent, and owes the royalty all the same. Its files are sold in another coin,
// and two levels of parents have their royalties; shares change hands for a third coin, with revenue before, while and
// after they are offered. The books are balanced at every step.
func TestRoyaltiesOfTwoLevelsAndSharesForCoins(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0", "owner", "buyer")
	n.holders("consumer", "owner", "buyer")
	consumer, owner, buyer := n.clients["consumer"], n.clients["owner"], n.clients["buyer"]
	list := func(c *client.Client, w catalog.Terms, parents ...uint64) uint64 {
		t.Helper()
		id, err := c.Catalog.List(n.ctx, w, parents)
		n.must(err)
		return id
	}
	files := canon.Sum("files")
	data := workOf("texts", 200_000, files)
	data.Kind = catalog.Data
	list(owner, data)
	base := list(owner, workOf("base", 500_000, files, termsOf("job").Spec), 1)
	n.after(owner, catalog.MinAge)
	for _, name := range []string{"w0", "w1"} {
		n.enlist(name, crew.Worker, 500)
	}
	n.enlist("v0", crew.Verifier, 500)
	o := order("job")
	o.SharesPPM = 400_000
	n.must(consumer.Market.Order(n.ctx, o, nil))
	n.listingsAreRefused(base)
	n.finish("v0", "w0", "w1")
	if l, parents, err := buyer.Catalog.OfJob(n.ctx, "job"); err != nil || l.ID != 0 || len(parents) != 1 ||
		parents[0] != (catalog.Parent{Listing: base, Royalty: 500_000, Known: true}) {
		t.Errorf("the order names %+v, and is listed as %+v: %v", parents, l, err)
	}
	trained := workOf("model", 100_000, files)
	trained.Job = "job"
	_, err := owner.Catalog.List(n.ctx, trained, nil)
	n.refused(err, chaincatalog.ErrJob, chaincatalog.Name, 9)
	_, err = consumer.Catalog.List(n.ctx, trained, []uint64{1}) // not named by the order, and the workers have shares
	n.refused(err, catalog.ErrParents, chaincatalog.Name, 3)
	model := list(consumer, trained)
	_, err = consumer.Catalog.List(n.ctx, trained, nil)
	n.refused(err, chaincatalog.ErrJob, chaincatalog.Name, 9)
	if all, err := buyer.Catalog.Listings(n.ctx, base); err != nil || len(all) != 1 || all[0].ID != model {
		t.Errorf("made from the base: %+v, %v", all, err)
	}
	n.balanced(buyer)

	holders := []string{"consumer", "w0", "w1", "owner", "v0", "buyer"}
	const price = 40_000_000
	kept := n.sold("consumer", "buyer", model, 100_000, files, dai, price)
	want := map[string]uint64{"job": price / 2 / 10 * 9, "listing/2": price / 2 / 10 * 8, "listing/1": price / 2 / 10 * 2}
	n.earns("sold", dai.Coin, want, holders...)
	if kept != price/2/10 {
		t.Errorf("the seller keeps %d grains", kept)
	}
	if kept := n.sold("consumer", "buyer", model, 0, files, usdc, 10_000_000); kept != 0 {
		t.Errorf("a seller that keeps no part has %d grains more", kept)
	}
	had := n.has("owner", dai.Coin)
	for _, work := range []string{"listing/1", "listing/2"} {
		n.must(owner.Reward.ClaimRevenue(n.ctx, work))
	}
	if has := n.has("owner", dai.Coin); has != had+price/2 {
		t.Errorf("the owner of both parents claims %d of %d grains", has-had, price/2)
	}
	n.balanced(buyer)
	n.sharesForCoins(holders)
}

// listingsAreRefused lists what the rules refuse.
func (n *network) listingsAreRefused(base uint64) {
	n.t.Helper()
	consumer, files := n.clients["consumer"], canon.Sum("files")
	for _, c := range []struct {
		work    catalog.Terms
		parents []uint64
		rule    error
		code    uint32
	}{
		{work: workOf("", 0, files), rule: catalog.ErrListing, code: 2},
		{work: workOf("half", 500_001, files), rule: catalog.ErrListing, code: 2},
		{work: workOf("no files", 0, canon.Digest{}), rule: catalog.ErrListing, code: 2},
		{work: workOf("twice", 0, files), parents: []uint64{base, base}, rule: catalog.ErrParents, code: 3},
		{work: workOf("itself", 0, files), parents: []uint64{base + 1}, rule: chaincatalog.ErrNone, code: 8},
		{work: workOf("claimed", 0, files, termsOf("job").Spec), rule: catalog.ErrClaimed, code: 4},
		{work: catalog.Terms{Kind: catalog.Model, Title: "early", Licence: catalog.Licence{Name: "MIT"}, Files: files,
			Job: "job"}, rule: chaincatalog.ErrJob, code: 9},
	} {
		_, err := consumer.Catalog.List(n.ctx, c.work, c.parents)
		n.refused(err, c.rule, chaincatalog.Name, c.code)
	}
}

// sharesForCoins sells shares of the consumer, of which revenue was claimed by no account.
func (n *network) sharesForCoins(holders []string) {
	n.t.Helper()
	consumer, buyer := n.clients["consumer"], n.clients["buyer"]
	for name := range n.clients {
		if shares, _ := n.held("job", name, dai.Coin); shares > 0 {
			n.must(n.clients[name].Reward.ClaimRevenue(n.ctx, "job"))
		}
	}
	before, _ := n.held("job", "consumer", usdc.Coin)
	_, err := consumer.Catalog.OfferShares(n.ctx, "job", before+1, 10, usdc.Denom)
	n.refused(err, chaincatalog.ErrShares, chaincatalog.Name, 10)
	_, err = consumer.Catalog.OfferShares(n.ctx, "job", 0, 10, usdc.Denom)
	n.refused(err, catalog.ErrOffer, chaincatalog.Name, 5)
	_, err = consumer.Catalog.OfferShares(n.ctx, "none", 1, 10, usdc.Denom)
	n.refused(err, chainreward.ErrNoModel, chaincatalog.Name, 13)
	_, err = consumer.Catalog.OfferShares(n.ctx, "job", 1, 10, "none")
	n.refused(err, coin.ErrCoin, chaincatalog.Name, 12)
	for _, none := range []string{"none", "listing/3", "listing/9"} { // a job, that of a job, and one that does not exist
		n.refused(buyer.Reward.PayRevenue(n.ctx, none, "", 10), chainreward.ErrNoModel, chainreward.Name, 4)
	}
	n.refused(buyer.Reward.PayRevenue(n.ctx, "job", "none", 10), coin.ErrCoin, chainreward.Name, 9)
	n.refused(buyer.Reward.PayRevenue(n.ctx, "job", "", 1<<53), chainreward.ErrAmount, chainreward.Name, 6)
	offer, err := consumer.Catalog.OfferShares(n.ctx, "job", 200_000, 100, usdc.Denom)
	n.must(err)
	n.balanced(buyer)
	const revenue = 2_000_000 // half of it is royalties
	n.must(buyer.Reward.PayRevenue(n.ctx, "job", "", revenue))
	n.earns("offered", coin.Coin{}, map[string]uint64{"job": revenue / 2}, holders...)
	if shares, _ := n.held("job", "consumer", coin.Coin{}); shares != before {
		n.t.Errorf("the seller has %d shares, had %d", shares, before)
	}
	all, err := buyer.Reward.Holders(n.ctx, "job")
	n.must(err)
	if all[0].Who != consumer.Address() || all[0].Shares != before {
		n.t.Errorf("the holders are %+v", all)
	}
	_, err = consumer.Catalog.BuyShares(n.ctx, offer, 1)
	n.refused(err, catalog.ErrParty, chaincatalog.Name, 7)
	_, err = n.clients["v0"].Catalog.BuyShares(n.ctx, offer, 1)
	n.refused(err, chaincatalog.ErrFunds, chaincatalog.Name, 11)
	had := n.has("consumer", usdc.Coin)
	paid, err := buyer.Catalog.BuyShares(n.ctx, offer, 150_000)
	n.must(err)
	if has := n.has("consumer", usdc.Coin); paid != 15_000_000 || has != had+paid {
		n.t.Errorf("the buyer paid %d, the seller got %d", paid, has-had)
	}
	n.balanced(buyer)
	_, err = buyer.Catalog.BuyShares(n.ctx, offer, 50_001)
	n.refused(err, catalog.ErrClosed, chaincatalog.Name, 6)
	if _, due := n.held("job", "buyer", coin.Coin{}); due != 0 {
		n.t.Errorf("the buyer may claim %d of the revenue before it bought", due)
	}
	n.must(buyer.Reward.PayRevenue(n.ctx, "job", dai.Denom, 3*revenue))
	n.earns("bought in part", dai.Coin, map[string]uint64{"job": 3 * revenue / 2}, holders...)
	back, err := consumer.Catalog.WithdrawShares(n.ctx, offer)
	n.must(err)
	_, err = consumer.Catalog.WithdrawShares(n.ctx, offer)
	n.refused(err, catalog.ErrClosed, chaincatalog.Name, 6)
	_, err = consumer.Catalog.WithdrawShares(n.ctx, offer+1)
	n.refused(err, chaincatalog.ErrNone, chaincatalog.Name, 8)
	if shares, _ := n.held("job", "consumer", coin.Coin{}); back != 50_000 || shares != before-150_000 {
		n.t.Errorf("%d shares came back, the seller has %d", back, shares)
	}
	if _, due := n.held("job", "consumer", coin.Coin{}); due != before*(revenue/2/reward.Shares) {
		n.t.Errorf("the seller may claim %d of the revenue before it sold", due)
	}
	n.earns("withdrawn", dai.Coin, map[string]uint64{"job": 3 * revenue / 2}, holders...)
	n.must(consumer.Reward.ClaimRevenue(n.ctx, "job"))
	book, err := buyer.Reward.Book(n.ctx, reward.Model{Job: "job", Coin: dai.Coin}.Book(), 0, 0)
	n.must(err)
	if last := book[len(book)-1]; last.Who != consumer.Address() || last.Coin != dai.Coin ||
		last.Amount != (before-150_000)*(3*revenue/2/reward.Shares) {
		n.t.Errorf("the last receipt in %s: %+v", dai.Name(), last)
	}
	n.balanced(buyer)
	open, err := buyer.Catalog.ShareOffers(n.ctx, false)
	n.must(err)
	every, err := buyer.Catalog.ShareOffers(n.ctx, true)
	n.must(err)
	if len(open) != 0 || len(every) != 1 || every[0].Left != 0 || every[0].Shares != 200_000 {
		n.t.Errorf("open: %+v, all: %+v", open, every)
	}
}

package client_test

import (
	"crypto/ed25519"
	"errors"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/adapter/custody"
	chainhosting "github.com/starling-network/starling/chain/x/hosting"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/hosting"
	"github.com/starling-network/starling/protocol/run/crew"
)

// voucherKey is the key of the vouchers of a channel.
func voucherKey(name string) ed25519.PrivateKey {
	seed := canon.Sum("voucher", []byte(name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// trained plays a job until its model has shares.
func (n *network) trained() {
	n.t.Helper()
	for _, name := range []string{"worker-0", "worker-1"} {
		n.enlist(name, crew.Worker, 100)
	}
	n.enlist("verifier", crew.Verifier, 100)
	o := order("job")
	o.SharesPPM = 1_000_000
	n.must(n.clients["consumer"].Market.Order(n.ctx, o, nil))
	n.finish("worker-0", "worker-1", "verifier")
}

// A model is hosted in two coins, and paid by vouchers. A redeemed amount is divided exactly: the holders of the shares
// of its job have a part in each coin. Vouchers that are not right are refused by a code each, and
// the books are balanced at every step.
func TestModelsAreHosted(t *testing.T) {
	t.Parallel()
	names := []string{"consumer", "worker-0", "worker-1", "verifier", "provider", "other", "payer"}
	n := start(t, names...)
	n.holders("provider", "payer")
	n.trained()
	owner, provider, other, payer := n.clients["consumer"], n.clients["provider"], n.clients["other"], n.clients["payer"]
	m := hosting.Model{Name: "tiny", Files: canon.Sum("files"), Weights: canon.Sum("weights"), Job: "job",
		PartPPM: 200_000, Licence: "Apache-2.0"}
	id, err := owner.Hosting.Register(n.ctx, m)
	n.must(err)
	_, err = owner.Hosting.Register(n.ctx, m)
	n.refused(err, hosting.ErrTwice, chainhosting.Name, 14)
	_, err = owner.Hosting.Register(n.ctx, hosting.Model{Name: "tiny", Files: canon.Sum("other files")})
	n.refused(err, hosting.ErrModel, chainhosting.Name, 2)
	if found, err := owner.Hosting.Find(n.ctx, m.Files); err != nil || found != id {
		t.Errorf("model %d is found as %d: %v", id, found, err)
	}
	place := func(c coin.Registered) hosting.Place {
		return hosting.Place{Model: id, URL: "http://127.0.0.1:1/", Bond: 2_000_000,
			Prices: hosting.Prices{Denom: c.Denom, Input: 1000, Output: 5000}}
	}
	n.must(provider.Hosting.Host(n.ctx, place(coin.Zen())))
	n.must(other.Hosting.Host(n.ctx, place(usdc)))
	n.refused(provider.Hosting.Host(n.ctx, place(usdc)), hosting.ErrPlace, chainhosting.Name, 3)
	few := place(usdc)
	few.Bond = 1
	n.refused(payer.Hosting.Host(n.ctx, few), hosting.ErrBond, chainhosting.Name, 4)
	few.Prices.Denom = "none"
	few.Bond = 2_000_000
	n.refused(payer.Hosting.Host(n.ctx, few), coin.ErrCoin, chainhosting.Name, 17)
	n.refused(payer.Hosting.Leave(n.ctx, id), chainhosting.ErrNone, chainhosting.Name, 15)
	places, err := payer.Hosting.Places(n.ctx, id)
	n.must(err)
	if all, err := payer.Hosting.Places(n.ctx, 0); err != nil || len(all) != 2 || len(places) != 2 {
		t.Fatalf("%+v, %+v, %v", places, all, err)
	}
	n.balanced(payer)
	for _, p := range places {
		c := map[string]coin.Registered{"": coin.Zen(), usdc.Denom: usdc}[p.Prices.Denom]
		name := map[string]string{"": "provider", usdc.Denom: "other"}[p.Prices.Denom]
		n.pays(p, c, name)
	}
	held, err := owner.Reward.Model(n.ctx, "job", "")
	n.must(err)
	if held.Held != 190_000 {
		t.Errorf("the shares have %d uzen of revenue", held.Held)
	}
	n.must(provider.Hosting.Leave(n.ctx, id))
	n.refused(provider.Hosting.Leave(n.ctx, id), hosting.ErrClosed, chainhosting.Name, 5)
	_, err = payer.Hosting.Open(n.ctx, places[0], voucherKey("late").Public().(ed25519.PublicKey), 5)
	if left := places[0].Provider == provider.Address(); left {
		n.refused(err, hosting.ErrClosed, chainhosting.Name, 5)
	} else {
		n.must(err)
	}
	_, err = payer.Submit(n.ctx, &hostingpb.MsgUpdateParams{Authority: payer.Address()})
	n.refused(err, adapter.ErrAuthority, chainhosting.Name, 18)
	draftHasAll(n, payer, "hosting")
	n.balanced(payer)
}

// pays pays the provider of a place through a channel of a million grains and half a million more, of which it redeems
// a million.
func (n *network) pays(p hosting.Place, c coin.Registered, name string) {
	n.t.Helper()
	const locked = 1_000_000
	payer, provider, key := n.clients["payer"], n.clients[name], voucherKey(name)
	public := key.Public().(ed25519.PublicKey)
	before := map[string]uint64{"payer": n.has("payer", c.Coin), name: n.has(name, c.Coin),
		"consumer": n.has("consumer", c.Coin)}
	wrong := p
	wrong.Prices.Denom = dai.Denom
	_, err := payer.Hosting.Open(n.ctx, wrong, public, locked)
	n.refused(err, hosting.ErrChannel, chainhosting.Name, 8)
	_, err = provider.Hosting.Open(n.ctx, p, public, locked)
	n.refused(err, hosting.ErrParty, chainhosting.Name, 7)
	_, err = payer.Hosting.Open(n.ctx, p, public, 1<<50)
	n.refused(err, custody.ErrFunds, chainhosting.Name, 16)
	id, err := payer.Hosting.Open(n.ctx, p, public, locked)
	n.must(err)
	_, err = payer.Hosting.Open(n.ctx, p, public, locked)
	n.refused(err, hosting.ErrTwice, chainhosting.Name, 14)
	n.must(payer.Hosting.Fund(n.ctx, id, locked/2))
	n.refused(provider.Hosting.Fund(n.ctx, id, 5), hosting.ErrParty, chainhosting.Name, 7)
	n.balanced(payer)
	voucher := func(chain string, amount uint64) hosting.Voucher {
		return hosting.Voucher{Chain: chain, Channel: id, Amount: amount}.Sign(key)
	}
	good := voucher("test", locked)
	for _, x := range []struct {
		v     hosting.Voucher
		total uint64
		rule  error
		code  uint32
	}{
		{voucher("test-2", locked), locked, hosting.ErrChain, 9},
		{hosting.Voucher{Chain: "test", Channel: id, Amount: locked + 1, Signature: good.Signature}, locked,
			hosting.ErrForged, 10},
		{voucher("test", 2*locked), locked, hosting.ErrBeyond, 12},
		{good, locked + 1, hosting.ErrSpent, 11},
	} {
		_, err := provider.Hosting.Redeem(n.ctx, x.v, x.total)
		n.refused(err, x.rule, chainhosting.Name, x.code)
	}
	_, err = payer.Hosting.Redeem(n.ctx, good, locked)
	n.refused(err, hosting.ErrParty, chainhosting.Name, 7)
	s, err := provider.Hosting.Redeem(n.ctx, good, locked)
	n.must(err)
	if s != (hosting.Split{Fee: 50_000, Part: 190_000, Provider: 760_000}) {
		n.t.Errorf("%+v", s)
	}
	_, err = provider.Hosting.Redeem(n.ctx, good, locked)
	n.refused(err, hosting.ErrSpent, chainhosting.Name, 11)
	n.balanced(payer)
	n.must(payer.Hosting.Close(n.ctx, id))
	n.refused(payer.Hosting.Close(n.ctx, id), hosting.ErrChannel, chainhosting.Name, 8)
	if open, err := provider.Hosting.Channels(n.ctx, provider.Address(), true); err != nil || len(open) != 1 ||
		open[0].Until == 0 || open[0].Redeemed != locked {
		n.t.Errorf("%+v, %v", open, err)
	}
	n.must(provider.Hosting.Close(n.ctx, id))
	if _, err := payer.Hosting.Channel(n.ctx, id); !errors.Is(err, client.ErrNotFound) {
		n.t.Errorf("channel %d: %v", id, err)
	}
	n.refused(payer.Hosting.Close(n.ctx, id), chainhosting.ErrNone, chainhosting.Name, 15)
	if h, err := payer.Reward.Model(n.ctx, "job", ""); err != nil || c.Own() && h.Held != 190_000 ||
		!c.Own() && (len(h.Coins) != 1 || h.Coins[0].Coin != c.Coin || h.Coins[0].Held != 190_000) {
		n.t.Errorf("the holders of shares have %+v, %v", h, err)
	}
	for who, gain := range map[string]int64{"payer": -locked, name: 760_000, "consumer": 0} {
		if has, want := n.has(who, c.Coin), uint64(int64(before[who])+gain); has != want {
			n.t.Errorf("%s has %s, want %s", who, c.Text(has), c.Text(want))
		}
	}
	n.balanced(payer)
}

// An adapter is a model of its own over a base. The pay for its answers reaches the holders of the shares of its job,
// the owner of the base that the job was trained on, and that of the data of the base, in one redemption.
func TestAdaptersAreHosted(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0", "owner", "provider", "payer")
	n.holders("provider", "payer")
	consumer, owner := n.clients["consumer"], n.clients["owner"]
	provider, payer := n.clients["provider"], n.clients["payer"]
	data := workOf("texts", 200_000, canon.Sum("files"))
	data.Kind = catalog.Data
	_, err := owner.Catalog.List(n.ctx, data, nil)
	n.must(err)
	_, err = owner.Catalog.List(n.ctx, workOf("base", 500_000, canon.Sum("files"), termsOf("job").Spec), []uint64{1})
	n.must(err)
	n.after(owner, catalog.MinAge)
	for _, name := range []string{"w0", "w1"} {
		n.enlist(name, crew.Worker, 500)
	}
	n.enlist("v0", crew.Verifier, 500)
	o := order("job")
	o.SharesPPM = 400_000
	n.must(consumer.Market.Order(n.ctx, o, nil))
	n.finish("v0", "w0", "w1")

	whole := hosting.Model{Name: "base", Files: canon.Sum("files"), Weights: canon.Sum("weights")}
	base, err := owner.Hosting.Register(n.ctx, whole)
	n.must(err)
	tuned := hosting.Model{Name: "tuned", Files: canon.Sum("adapter"), Weights: canon.Sum("adapted"), Job: "job",
		PartPPM: 526_316, Base: base}
	id, err := consumer.Hosting.Register(n.ctx, tuned)
	n.must(err)
	if m, err := payer.Hosting.Model(n.ctx, id); err != nil || m.Base != base {
		t.Errorf("%+v, %v", m, err)
	}
	refused := func(of uint64, weights canon.Digest, rule error, code uint32) {
		t.Helper()
		_, err := consumer.Hosting.Register(n.ctx, hosting.Model{Name: "x", Files: canon.Sum("x"), Weights: weights,
			Base: of})
		n.refused(err, rule, chainhosting.Name, code)
	}
	refused(id, canon.Sum("x"), hosting.ErrModel, 2)
	refused(base, whole.Weights, hosting.ErrModel, 2)
	refused(99, canon.Sum("x"), chainhosting.ErrNone, 15)

	place := hosting.Place{Model: id, Provider: provider.Address(), URL: "http://127.0.0.1:1/", Bond: 2_000_000,
		Prices: hosting.Prices{Denom: usdc.Denom, Input: 1000, Output: 5000}}
	n.must(provider.Hosting.Host(n.ctx, place))
	const amount = 40_000_000
	key := voucherKey("payer")
	channel, err := payer.Hosting.Open(n.ctx, place, key.Public().(ed25519.PublicKey), amount)
	n.must(err)
	s, err := provider.Hosting.Redeem(n.ctx,
		hosting.Voucher{Chain: "test", Channel: channel, Amount: amount}.Sign(key), amount)
	n.must(err)
	if s.Part != 20_000_008 {
		t.Errorf("%+v", s)
	}
	royalty := s.Part / 2
	n.earns("hosted", usdc.Coin, map[string]uint64{"job": s.Part - royalty, "listing/2": royalty - royalty/5,
		"listing/1": royalty / 5}, "consumer", "w0", "w1", "owner", "v0", "payer")
	n.balanced(payer)
}

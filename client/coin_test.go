package client_test

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/chain"
	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry/coinstake"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Two coins of a test network: one with six decimals, and one whose base unit is 10^-18.
var (
	usdc = coin.Registered{Coin: coin.Coin{Denom: "ausdc", Symbol: "usdc", Exponent: 6}, Waiting: 1000}
	dai  = coin.Registered{Coin: coin.Coin{Denom: "adai", Symbol: "dai", Exponent: 18}, Waiting: 1_000_000}
)

// holders gives accounts of the genesis 50 of each coin.
func (n *network) holders(names ...string) {
	n.t.Helper()
	n.validator.Stop()
	n.config.Home = n.t.TempDir()
	all := n.config.Accounts
	for _, name := range names {
		for _, c := range []coin.Registered{usdc, dai} {
			grains, err := c.Parse("50")
			n.must(err)
			all = append(all, chain.Funded{Address: key(name).Address(), Amount: grains, Coin: c})
		}
	}
	n.config.Accounts = all
	var every []string
	for name := range n.clients {
		every = append(every, name)
	}
	n.open(every...)
}

// offers gives a participant an offer and a stake in a coin.
func (n *network) offers(name string, role crew.Role, own uint64, c coin.Registered, price, staked uint64) {
	n.t.Helper()
	n.enlist(name, role, own)
	m := n.clients[name]
	n.must(m.Market.OfferIn(n.ctx, marketpb.MsgOffer{Role: registrypb.Role(role), Price: own, Slots: 1,
		Asks: []marketpb.Ask{{Denom: c.Denom, Price: price}}}))
	n.must(m.Stakes.Add(n.ctx, "", c.Coin, staked))
}

func (n *network) has(name string, c coin.Coin) uint64 {
	n.t.Helper()
	has, err := n.clients[name].Coins.Holds(n.ctx, key(name).Address(), c)
	n.must(err)
	return has
}

// balanced counts all coins twice.
func (n *network) balanced(c *client.Client) {
	n.t.Helper()
	head, err := c.Ledger.Head(n.ctx)
	n.must(err)
	all, err := books.Count(n.ctx, c.At(head.Height))
	n.must(err)
	for _, b := range all {
		if !b.Balanced() {
			n.t.Errorf("height %d: the books are wrong: %+v", head.Height, b)
		}
	}
}

// Two jobs run side by side, each in another coin, whose decimals differ. Each pays, charges its fee and refunds in its
// coin, exactly; the other coin does not move, nor does the network's own.
func TestTwoCoinsInOneNetwork(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.holders("consumer", "w0", "w1", "v0")
	for name, role := range map[string]crew.Role{"w0": crew.Worker, "w1": crew.Worker, "v0": crew.Verifier} {
		n.offers(name, role, 900, dai, 100_000_000, 40_000_000_000)
	}
	c := n.clients["consumer"]
	o := order("job")
	o.Coin, o.Budget, o.PriceCap = dai.Coin, 20_000_000_000, 1_000_000_000 // 20 DAI: beyond 64 bits of base units
	e, err := c.Market.Estimate(n.ctx, owned(o, c))
	n.must(err)
	if e.Why != market.Matched || e.Lease.Members[0].Price != 100_000_000 {
		t.Fatalf("%q: %+v", e.Why, e.Passed)
	}
	n.must(c.Market.Order(n.ctx, o, nil))
	n.balanced(c)
	n.finish("w0", "w1", "v0")
	n.balanced(c)

	escrow, err := c.Market.Escrow(n.ctx, "job")
	n.must(err)
	receipts, err := c.Training.Receipts(n.ctx, "job")
	n.must(err)
	earned := map[string]uint64{}
	for _, r := range receipts {
		if r.Coin != dai.Coin {
			t.Errorf("a receipt in %+v: %+v", r.Coin, r)
		}
		earned[r.Who] += r.Amount
	}
	whole, err := dai.Parse("50")
	n.must(err)
	for _, name := range []string{"w0", "w1", "v0"} {
		if has, want := n.has(name, dai.Coin), whole-40_000_000_000+earned[key(name).Address()]; has != want {
			t.Errorf("%s has %s, want %s", name, dai.Text(has), dai.Text(want))
		}
		n.balance(name, funds-stake)
	}
	if has := n.has("consumer", dai.Coin); has != whole-escrow.Paid-escrow.Fee || escrow.Fee == 0 || escrow.Refunded == 0 {
		t.Errorf("the consumer has %s, and the escrow is %+v", dai.Text(has), escrow)
	}
	n.balance("consumer", funds)
	for _, name := range []string{"consumer", "w0", "w1", "v0"} {
		if has := n.has(name, usdc.Coin); has != 50_000_000 {
			t.Errorf("%s has %s", name, usdc.Text(has))
		}
	}
	left, err := n.clients["w0"].Stakes.Of(n.ctx, key("w0").Address())
	n.must(err)
	if len(left) != 1 || left[0].Amount != 40_000_000_000 || left[0].Slashed != 0 {
		t.Errorf("its stakes are %+v", left)
	}
}

// Attempts of strangers to mix two coins are refused, with a reason.
func TestCoinsAreNotMixed(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.holders("consumer", "w0")
	n.enlist("w0", crew.Worker, 500)
	c, w := n.clients["consumer"], n.clients["w0"]
	unknown := coin.Coin{Denom: "other", Symbol: "other", Exponent: 6}
	in := func(job string, of coin.Coin) market.Order {
		o := order(job)
		o.Coin = of
		return o
	}
	n.refused(c.Market.Order(n.ctx, in("a", unknown), nil), coin.ErrCoin, "market", 19)
	n.refused(c.Market.Order(n.ctx, in("a", coin.Coin{Denom: "model/a"}), nil), coin.ErrCoin, "market", 19)
	poor := in("a", dai.Coin)
	poor.Budget = dai.WaitingFee(0) - 1
	n.refused(c.Market.Order(n.ctx, poor, nil), market.ErrOrder, "market", 2)
	rich := in("a", dai.Coin)
	rich.Budget = 1 << 63
	n.refused(c.Market.Order(n.ctx, rich, nil), chainmarket.ErrFunds, "market", 10)

	n.must(c.Market.Order(n.ctx, in("a", usdc.Coin), nil))
	n.refused(c.Market.TopUpJob(n.ctx, "a", coin.Coin{}, 1000), coin.ErrCoin, "market", 19)
	n.refused(c.Market.TopUpJob(n.ctx, "a", dai.Coin, 1000), coin.ErrCoin, "market", 19)
	n.must(c.Market.TopUpJob(n.ctx, "a", usdc.Coin, 1000))
	before := n.has("consumer", usdc.Coin)
	n.must(c.Market.CancelOrder(n.ctx, "a"))
	if got := n.has("consumer", usdc.Coin) - before; got != 10_000_000+1000-usdc.WaitingFee(0) {
		t.Errorf("%s came back", usdc.Text(got))
	}
	n.balance("consumer", funds)
	n.balanced(c)

	for _, m := range []marketpb.MsgOffer{
		{Asks: []marketpb.Ask{{Denom: "other", Price: 1}}},
		{Asks: []marketpb.Ask{{Denom: "", Price: 1}}},
		{Asks: []marketpb.Ask{{Denom: usdc.Denom, Price: 1}, {Denom: usdc.Denom, Price: 2}}},
		{Foreign: true},
	} {
		m.Role, m.Slots = registrypb.Role(crew.Worker), 1
		n.refused(w.Market.OfferIn(n.ctx, m), coin.ErrCoin, "market", 19)
	}
	hourly := marketpb.MsgOffer{Role: registrypb.Role(crew.Worker), Slots: 1, Asks: []marketpb.Ask{{Denom: usdc.Denom,
		Hourly: 5}}}
	n.refused(w.Market.OfferIn(n.ctx, hourly), chainmarket.ErrRate, "market", 13)

	n.refused(w.Stakes.Add(n.ctx, "", unknown, 1), coin.ErrCoin, "registry", 25)
	n.refused(w.Stakes.Add(n.ctx, "", coin.Coin{}, 1), coinstake.ErrStake, "registry", 24)
	n.refused(w.Stakes.Add(n.ctx, "", usdc.Coin, 0), coinstake.ErrStake, "registry", 24)
	n.refused(w.Stakes.Add(n.ctx, "", usdc.Coin, 51_000_000), coinstake.ErrStake, "registry", 24)
	n.refused(c.Stakes.Add(n.ctx, "", usdc.Coin, 1), coinstake.ErrStake, "registry", 24) // takes no part
	n.refused(w.Stakes.Leave(n.ctx, "", usdc.Coin, 1), coinstake.ErrStake, "registry", 24)
	n.must(w.Stakes.Add(n.ctx, "", usdc.Coin, 7))
	n.refused(w.Stakes.Leave(n.ctx, "", usdc.Coin, 8), coinstake.ErrStake, "registry", 24)
	n.must(w.Stakes.Leave(n.ctx, "", usdc.Coin, 7))
	_, err := c.Submit(n.ctx, &registrypb.MsgUnstakeCoin{Sender: c.Address(), Participant: w.Address(), Denom: usdc.Denom,
		Amount: 7})
	n.refused(err, coinstake.ErrStake, "registry", 24)
	_, err = c.Submit(n.ctx, &marketpb.MsgRegisterCoin{Authority: c.Address(), Denom: "x", Symbol: "xx", Waiting: 1})
	if err == nil {
		t.Error("an account registers a coin")
	}
	n.balanced(c)
}

// A worker that lies in a job in another coin loses of its stake in this coin the part that deters a lie, and of its
// stake in the network's own the least that a conviction takes.
func TestALieCostsBothStakes(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.referee(false)
	n.holders("consumer", "w0", "w1", "v0")
	for name, role := range map[string]crew.Role{"w0": crew.Worker, "w1": crew.Worker, "v0": crew.Verifier} {
		n.offers(name, role, 900, usdc, 500, 40_000_000)
	}
	n.liar = key("w0").Address()
	c := n.clients["consumer"]
	o := order("job")
	o.Coin, o.Terms.AuditPPM, o.Workers.Min = usdc.Coin, 1_000_000, 1
	n.must(c.Market.Order(n.ctx, o, nil))
	n.finish("w0", "w1", "v0")
	n.balanced(c)
	receipts, err := c.Training.Receipts(n.ctx, "job")
	n.must(err)
	taken := map[coin.Coin]uint64{}
	for _, r := range receipts {
		if r.Kind == reward.Slash && r.Who == n.liar {
			taken[r.Coin] += r.Amount
		}
	}
	p, err := c.Registry.Participant(n.ctx, n.liar)
	n.must(err)
	stakes, err := c.Stakes.Of(n.ctx, n.liar)
	n.must(err)
	if len(taken) != 2 || p.Slashed != taken[coin.Coin{}] || stakes[0].Slashed != taken[usdc.Coin] || !p.Jailed ||
		p.Slashed < stake/10 || stakes[0].Slashed == 0 || stakes[0].Amount+stakes[0].Slashed != 40_000_000 {
		t.Errorf("taken %v, of stakes %d slashed %d, %+v", taken, p.Stake, p.Slashed, stakes)
	}
	if has := n.has("v0", usdc.Coin); has <= 10_000_000 {
		t.Errorf("the verifier has %s", usdc.Text(has))
	}
	if _, err := c.Market.Coin(n.ctx, "usdt"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("a coin that is not registered: %v", err)
	}
}

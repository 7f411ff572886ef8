package client_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	chainmarket "github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	chainregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/chain/x/registry/quotes"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/gov"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
)

// A consumer waits for a lower price, raises its budget, pauses and cancels; what is not spent comes back to the last
// uzen.
func TestConsumerSteersItsJob(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.enlist("w0", crew.Worker, 500)
	n.enlist("w1", crew.Worker, 900)
	n.enlist("v0", crew.Verifier, 400)
	c := n.clients["consumer"]
	o := order("job")
	o.Terms.Rounds, o.PriceCap, o.Budget = 4, 600, 5000
	e, err := c.Market.Estimate(n.ctx, owned(o, c))
	n.must(err)
	if e.Why != market.PriceAboveCap || len(e.Passed) != 1 || len(e.May) != 2 {
		t.Errorf("before the order: %+v", e)
	}
	n.must(c.Market.Order(n.ctx, o, nil))
	n.refused(c.Market.PauseJob(n.ctx, "job"), chainmarket.ErrState, "market", 9)
	n.must(n.clients["w1"].Market.Offer(n.ctx, crew.Worker, 600, 1))
	n.until(c, "job", func(s run.State) bool { return s.Phase == progress.Train })
	lots, err := c.Market.Lots(n.ctx)
	n.must(err)
	for _, l := range lots {
		if l.Slots != 0 {
			t.Errorf("%s works, and has %d slots left", l.ID, l.Slots)
		}
	}
	n.must(c.Market.TopUpJob(n.ctx, "job", coin.Coin{}, 1000))
	n.must(c.Market.PauseJob(n.ctx, "job"))
	placed, err := c.Market.PlacedOrder(n.ctx, "job")
	n.must(err)
	if placed.Status != "paused" || placed.Budget != 6000 {
		t.Errorf("%s, budget %d", placed.Status, placed.Budget)
	}
	n.refused(n.clients["w0"].Market.ResumeJob(n.ctx, "job"), chainmarket.ErrNotYours, "market", 8)
	n.must(c.Market.ResumeJob(n.ctx, "job"))
	n.must(c.Market.CancelOrder(n.ctx, "job"))
	n.refused(c.Market.TopUpJob(n.ctx, "job", coin.Coin{}, 1), chainmarket.ErrState, "market", 9)
	done := make(chan struct{})
	for _, name := range []string{"w0", "w1", "v0"} {
		go func() {
			defer func() { done <- struct{}{} }()
			n.play(name, "job")
		}()
	}
	for range 3 {
		<-done
	}
	s, err := c.Training.Run(n.ctx, "job")
	n.must(err)
	if s.Phase != progress.Halted || s.Why != reason.Cancelled || s.Round == 0 || s.Round >= 4 {
		t.Errorf("after cancelling: %s %s in round %d", s.Phase, s.Why, s.Round)
	}
	n.checkMoney(c, []string{"w0", "w1", "v0"})
}

// A job whose budget does not cover another round waits for more, if its consumer wants that, and continues when it is
// topped up.
func TestBudgetRunsOut(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "w0", "w1", "v0")
	n.enlist("w0", crew.Worker, 500)
	n.enlist("w1", crew.Worker, 600)
	n.enlist("v0", crew.Verifier, 400)
	c := n.clients["consumer"]
	o := order("job")
	o.Terms.Rounds, o.PriceCap, o.Budget, o.OnExceed = 3, 600, 5000, market.PauseExceeded
	n.must(c.Market.Order(n.ctx, o, nil))
	done := make(chan struct{})
	for _, name := range []string{"w0", "w1", "v0"} {
		go func() {
			defer func() { done <- struct{}{} }()
			n.play(name, "job")
		}()
	}
	var placed module.OrderStatus
	n.until(c, "job", func(run.State) (short bool) {
		var err error
		placed, err = c.Market.PlacedOrder(n.ctx, "job")
		n.must(err)
		return placed.Status == "paused"
	})
	s, err := c.Training.Run(n.ctx, "job")
	n.must(err)
	if placed.Why != reason.BudgetExhausted || s.Round == 0 || s.Round == 3 || len(s.Open) > 0 {
		t.Errorf("why: %q, in round %d, %d open", placed.Why, s.Round, len(s.Open))
	}
	n.refused(c.Market.ResumeJob(n.ctx, "job"), chainmarket.ErrState, "market", 9)
	n.must(c.Market.TopUpJob(n.ctx, "job", coin.Coin{}, 20_000))
	for range 3 {
		<-done
	}
	if s, err = c.Training.Run(n.ctx, "job"); err != nil || s.Phase != progress.Done {
		t.Errorf("with a higher budget: %s %s in round %d: %v", s.Phase, s.Why, s.Round, err)
	}
	n.checkMoney(c, []string{"w0", "w1", "v0"})
}

// owned is an order as the chain will date it.
func owned(o market.Order, c *client.Client) market.Order {
	o.Consumer, o.At = c.Address(), 1
	return o
}

// A machine is measured: the program is drawn, answered, checked by a verifier, and opened.
func TestMeasurement(t *testing.T) {
	t.Parallel()
	n := start(t, "w0", "v0")
	w, v := n.clients["w0"], n.clients["v0"]
	n.enlist("w0", crew.Worker, 500)
	n.enlist("v0", crew.Verifier, 500)
	n.refused(w.Market.OfferHourly(n.ctx, crew.Worker, 1000, 1), chainmarket.ErrRate, "market", 13)
	n.refused(w.Registry.AnswerMeasure(n.ctx, canon.Sum("x")), registry.ErrMeasure, "registry", 9)
	n.must(w.Registry.AskMeasure(n.ctx, 1<<10))
	n.refused(w.Registry.AskMeasure(n.ctx, 1), chainregistry.ErrMeasured, "registry", 12)
	m := n.measurement(func(m registry.Measurement) bool { return !m.Seed.IsZero() })
	var results []canon.Digest
	for i := range registry.Segments {
		results = append(results, canon.Sum("result", m.Seed[:], []byte{byte(i)}))
	}
	n.must(w.Registry.AnswerMeasure(n.ctx, registry.Root(w.Address(), m.Seed, results)))
	m = n.measurement(func(m registry.Measurement) bool { return len(m.Checks) > 0 })
	if !m.Owes(v.Address()) {
		t.Fatalf("%+v check", m.Checks)
	}
	n.refused(w.Registry.OpenMeasure(n.ctx, results), registry.ErrMeasure, "registry", 9)
	n.must(v.Registry.CheckMeasure(n.ctx, w.Address(),
		m.Sample(v.Address(), []canon.Digest{results[m.Picks[0]], results[m.Picks[1]]})))
	n.must(w.Registry.OpenMeasure(n.ctx, results))
	p, err := w.Registry.Participant(n.ctx, w.Address())
	n.must(err)
	params, err := w.Registry.Params(n.ctx)
	n.must(err)
	n.refused(w.Registry.AskMeasure(n.ctx, 1), chainregistry.ErrRests, "registry", 17)
	n.refused(v.Registry.AskMeasure(n.ctx, 1), registry.ErrStake, "registry", 3)
	if p.Rate == 0 || p.Class(params) != registry.Processor {
		t.Errorf("measured: %+v", p)
	}
	n.must(w.Market.OfferHourly(n.ctx, crew.Worker, 1000, 1))
	offers, err := w.Market.Offers(n.ctx)
	n.must(err)
	if want := cost.PerFlops(1000, p.Rate); offers[0].Price != want {
		t.Errorf("1000 uzen an hour are %d uzen per 10^15 operations, want %d", offers[0].Price, want)
	}
}

// measurement follows the blocks until the only measurement in progress satisfies a condition.
func (n *network) measurement(done func(registry.Measurement) bool) registry.Measurement {
	n.t.Helper()
	blocks, err := n.clients["w0"].Blocks(n.ctx)
	n.must(err)
	for range blocks {
		all, err := n.clients["w0"].Registry.Measurements(n.ctx)
		n.must(err)
		if len(all) == 1 && done(all[0]) {
			return all[0]
		}
	}
	n.t.Fatal("the blocks ended")
	return registry.Measurement{}
}

// Conditions reach the rules, a pool offers for the participants that named it, and a participant with a tier is
// counted.
func TestConditionsAndPools(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer", "pool", "w0", "w1", "v0")
	n.enlist("v0", crew.Verifier, 400)
	pool, c := n.clients["pool"], n.clients["consumer"]
	for i, name := range []string{"w0", "w1"} {
		n.must(n.clients[name].Registry.Register(n.ctx, registry.Participant{
			Roles: []crew.Role{crew.Worker}, PeerID: "peer-" + name, Stake: 10_000_000, Pool: pool.Address(),
			Tier: registry.Bronze,
			Hardware: registry.Hardware{Memory: 8192, Upload: 10_000, Region: []string{"eu", "us"}[i], Jurisdiction: "DE",
				Domain: name},
		}))
	}
	n.refused(pool.Market.OfferPool(n.ctx, 300, 1), chainmarket.ErrRole, "market", 4)
	n.must(pool.Registry.Register(n.ctx, registry.Participant{PeerID: "peer-pool", Stake: 2_000_000}))
	n.must(pool.Market.OfferPool(n.ctx, 300, 1))
	o := order("job")
	o.Workers = market.Workers{Min: 1, Target: 2, Max: 2}
	o.Conditions = market.Conditions{Machines: []market.Machine{{Memory: 8192}}, Regions: []string{"eu"},
		Tier: registry.Bronze}
	e, err := c.Market.Estimate(n.ctx, owned(o, c))
	n.must(err)
	if e.Why != market.ConditionsUnmet || len(e.Passed) != 2 || len(e.May) != 1 { // the verifier is in no region
		t.Errorf("%q, %+v", e.Why, e.Passed)
	}
	o.Conditions.Regions, o.Conditions.NotRegions = nil, []string{"us"}
	n.must(c.Market.Order(n.ctx, o, nil))
	s := n.until(c, "job", func(s run.State) bool { return true })
	if len(s.Members) != 2 || s.Members[0].Price+s.Members[1].Price != 700 {
		t.Errorf("members: %+v", s.Members)
	}
	if _, err := s.Member(key("w0").Address()); !err {
		t.Errorf("w0, in eu, is not taken: %+v", s.Members)
	}
	w0 := n.clients["w0"]
	n.must(w0.Registry.Heartbeat(n.ctx))
	u, _, err := c.Registry.Uptime(n.ctx, w0.Address())
	n.must(err)
	if u.Beats != 1 {
		t.Errorf("uptime %+v", u)
	}
	n.refused(c.Registry.Heartbeat(n.ctx), chainregistry.ErrNoTier, "registry", 13)
	if _, _, err := c.Registry.Uptime(n.ctx, c.Address()); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("uptime of who commits to none: %v", err)
	}
}

// Only governance may send governance messages.
func TestParametersAreGoverned(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	c := n.clients["consumer"]
	_, err := c.Submit(n.ctx, &marketpb.MsgUpdateParams{Authority: c.Address(),
		Params: marketpb.Params{FeePpm: 1, PauseBlocks: 1}})
	n.refused(err, adapter.ErrAuthority, "market", 15)
	_, err = c.Submit(n.ctx, &registrypb.MsgUpdateParams{Authority: c.Address(),
		Params: registrypb.FromParams(registry.DefaultParams())})
	n.refused(err, adapter.ErrAuthority, "registry", 11)
	_, err = c.Submit(n.ctx, &registrypb.MsgAttest{Authority: c.Address(), Participant: c.Address(), Attested: true})
	n.refused(err, quotes.ErrNoFlag, "registry", 28)
	_, err = c.Submit(n.ctx, &registrypb.MsgPinRoots{Authority: c.Address()})
	n.refused(err, adapter.ErrAuthority, "registry", 11)
	_, err = c.Submit(n.ctx, &trainingpb.MsgUpdateParams{Authority: c.Address(), Params: trainingpb.Params{SlashPpm: 1}})
	n.refused(err, adapter.ErrAuthority, "training", 29)
	_, err = c.Submit(n.ctx, &beaconpb.MsgUpdateParams{Authority: c.Address(), Params: beaconpb.Params{Keep: 1000}})
	n.refused(err, adapter.ErrAuthority, "beacon", 4)
	if p, err := c.Training.Penalty(n.ctx); err != nil || p != penalty.Default() {
		t.Errorf("%+v %v", p, err)
	}
	p, err := c.Market.Params(n.ctx)
	n.must(err)
	if p != market.DefaultParams() || p.FeePPM != market.FeePPM || penalty.DefaultSlashPPM == 0 {
		t.Errorf("%+v", p)
	}
	for _, module := range []string{"beacon", "market", "registry", "training"} {
		draftHasAll(n, c, module)
	}
}

// draftHasAll finds parameters that a draft would set to zero. A new network has none that is.
func draftHasAll(n *network, c *client.Client, module string) {
	n.t.Helper()
	text, err := gov.New(c).Draft(n.ctx, module)
	n.must(err)
	var draft struct {
		Messages []struct {
			Params map[string]any `json:"params"`
		} `json:"messages"`
	}
	n.must(json.Unmarshal(text, &draft))
	if len(draft.Messages) != 1 || len(draft.Messages[0].Params) == 0 {
		n.t.Fatalf("%s: a draft without parameters: %s", module, text)
	}
	for name, v := range draft.Messages[0].Params {
		if fmt.Sprint(v) == "0" || fmt.Sprint(v) == "" {
			n.t.Errorf("%s: the draft sets %s to zero", module, name)
		}
	}
}

package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	govtypes "github.com/cosmos/cosmos-sdk/x/gov/types"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	upgradetypes "github.com/cosmos/cosmos-sdk/x/upgrade/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	chainreward "github.com/starling-network/starling/chain/x/reward"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/chain/x/upgrade"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/sim/check"
	"github.com/starling-network/starling/sim/workload"
)

// The parties of the story.
const (
	slowOne = "worker-0" // a processor, honest, always there
	liar    = "worker-1" // a consumer's card, which computes wrong
	dear    = "worker-2" // of a data centre: dear, and away for a while
	citizen = "citizen"  // orders work, proposes, pays for a model
)

// TestMarket plays a market from its first block: machines are measured, governance sets the rules, an order is matched
// and its run goes through a lie, a change of the fee and an upgrade, another order waits until a worker is cheap
// enough, an epoch rewards the providers that kept their promise and slashes one that did not, a model earns for its
// makers, and the chain is exported and imported on the way. After every block every module accounts for all its coins.
func TestMarket(t *testing.T) {
	onlyLong(t)
	first := must(workload.New(workload.Size{Rounds: 6, Units: 2, Steps: 6, Segment: 3}))(t)
	c := small(t)
	c.Genesis, c.Registers, c.Workers, c.MaxBlocks = hasty, true, 3, 900
	c.Joins = []Newcomer{{Name: citizen, Role: crew.Worker, At: 24 * time.Hour}} // never; but it has coins
	c.Acts = one(liar, adversary.FlipsBit{Step: 1, Tensor: 0, Bit: 5})
	machine := func(kind registry.Kind, gib uint64, domain string) registry.Hardware {
		return registry.Hardware{Kind: kind, Memory: gib << 10, Upload: 10_000, Region: "eu", Jurisdiction: "DE",
			Domain: domain}
	}
	c.Machines = map[string]Machine{
		slowOne: {Link: c.Link, Unit: 2 * time.Second, Rate: 300_000_000, Price: 600e9, Tier: registry.Bronze,
			Hardware: machine(registry.CPU, 8, "home")},
		liar: {Link: c.Link, Unit: 2 * time.Second, Rate: 1_000_000_000, Price: 800e9, Hardware: machine(registry.GPU,
			12, "garage")},
		dear: {Link: c.Link, Unit: 2 * time.Second, Rate: 3_000_000_000, Price: 2000e9, Tier: registry.Bronze,
			Hardware: machine(registry.GPU, 80, "hall")},
		"verifier-0": {Link: c.Link, Unit: 2 * time.Second, Price: 300e9},
		"verifier-1": {Link: c.Link, Unit: 2 * time.Second, Price: 1100e9}, // measures, and is dearer than the order bears
	}
	c.Order = &market.Order{
		ID: c.Job.ID(), Budget: budget, PriceCap: 500e9, Workers: market.Workers{Min: 1, Target: 1, Max: 1}, Verifiers: 1,
		Terms: c.Terms(),
	}
	e := &economy{t: t, first: first}
	w := must(New(c, e, &check.Lineage{Honest: true}))(t)
	e.w = w
	for _, name := range []string{slowOne, liar, "verifier-0"} {
		w.at[address(name)].follow(first)
	}
	e.upgrades()
	if _, err := w.Play(); err != nil {
		t.Fatal(err)
	}
	if e.next < len(acts) {
		t.Errorf("the run was over in act %d", e.next)
	}
	e.compare()
}

// economy plays the story, one act after the other, and counts the coins.
type economy struct {
	t       *testing.T
	w       *Network
	first   *workload.Job // that is ordered first; that of the world waits for its price
	next    int           // act
	since   int64
	at      int64 // height of the upgrade
	applied int64
	other   *app.App // began with the state that was exported, and executes the same blocks since
	left    uint64   // to the liar, of its stake, which it takes back
	had     uint64   // by the liar before
	made    uint64   // by emission
	due     uint64   // that the citizen's shares have earned
}

// acts of the story. Each is tried after every block until it is over.
var acts = []func(e *economy) (over bool){
	(*economy).proposeRules, (*economy).voteForRules, (*economy).measured, (*economy).proposeChange,
	(*economy).voteForChange, (*economy).report, (*economy).reported, (*economy).migrate, (*economy).convicted,
	(*economy).repaid, (*economy).sell, (*economy).share, (*economy).earn,
	(*economy).claimed, (*economy).leave, (*economy).comeBack, (*economy).settled, (*economy).matched,
}

// Block implements Checker.
func (e *economy) Block(v check.World) error {
	w := v.(*Network)
	if err := e.count(); err != nil {
		return err
	}
	if e.other != nil {
		r := must(e.other.FinalizeBlock(w.ledger.Decided))(e.t)
		must(e.other.Commit())(e.t)
		if !bytes.Equal(canon.MustMarshal(outcomes(r)), canon.MustMarshal(outcomes(w.ledger.Done))) {
			return errors.New("the imported chain has other results")
		}
	}
	if e.next < len(acts) && acts[e.next](e) {
		w.trace("act", e.next)
		e.next, e.since = e.next+1, w.Height()
	}
	return nil
}

// End implements Checker.
func (e *economy) End(check.World) error { return nil }

// count compares the accounts of every module with its coins, and the supply with the coins of genesis and emission.
func (e *economy) count() error {
	balances, err := books.Count(e.t.Context(), e.w.Chain())
	if err != nil {
		return err
	}
	for _, ev := range e.w.ledger.Events {
		if ev.Type == "starling.reward.v1.EventEpoch" {
			e.made += must(strconv.ParseUint(said(ev)["made"], 10, 64))(e.t)
		}
	}
	for _, b := range balances {
		if !b.Balanced() {
			return fmt.Errorf("the books are wrong: %+v", b)
		}
	}
	genesis := e.w.minted + uint64(len(e.w.ledger.Validators))*identity.SelfStake
	if supply := balances[len(balances)-1].Owed; supply != genesis+e.made {
		return fmt.Errorf("there are %d uzen, genesis made %d and epochs %d", supply, genesis, e.made)
	}
	return nil
}

func said(e abci.Event) map[string]string {
	m := map[string]string{}
	for _, a := range e.Attributes {
		m[a.Key] = strings.Trim(a.Value, `"`)
	}
	return m
}

// as is the client of an account that no process uses. It does not wait for what becomes of its messages; they must be
// executed.
func (e *economy) as(name string) *client.Client {
	return client.NewWithSubmitter(e.w.ledger.Connection, keyOf(name), func(_ context.Context,
		msgs ...sdk.Msg) (transaction.Result, error) {
		e.w.send(e.t, keyOf(name), msgs...)
		return transaction.Result{}, nil
	})
}

func (e *economy) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Error(err)
	}
}

// let has a process say something on the chain.
func (e *economy) let(name string, do func(ctx context.Context, c client.Member) error) {
	p := e.w.at[address(name)]
	p.spawn(func(ctx context.Context) { e.must(do(ctx, p.chain)) })
}

func (e *economy) propose(about string, msgs ...sdk.Msg) sdk.Msg {
	from := keyOf(citizen).Address()
	return must(govv1.NewMsgSubmitProposal(msgs, adapter.Coins(10_000_000), from, "", about, about, false))(e.t)
}

// vote lets all validators agree to proposals.
func (e *economy) vote(proposals ...uint64) {
	for _, v := range e.w.ledger.Validators {
		var msgs []sdk.Msg
		for _, id := range proposals {
			msgs = append(msgs, govv1.NewMsgVote(sdk.AccAddress(v.Operator.PubKey().Address()), id, govv1.OptionYes, ""))
		}
		e.w.send(e.t, operator{v}, msgs...)
	}
}

var governance = authtypes.NewModuleAddress(govtypes.ModuleName).String()

// rules of the registry in the story: short epochs, and classes for the machines of a simulation.
func rules() registry.Params {
	p := registry.DefaultParams()
	p.EpochBlocks, p.BeatBlocks, p.ProcessorRate, p.Witnesses, p.UnstakeBlocks = 60, 5, 500_000_000, 1, 3
	for i, rate := range []uint64{1_500_000_000, 1_000_000_000, 500_000_000, 400_000_000} {
		p.Classes[i].Rate = rate
	}
	return p
}

const emission = 50_000_000

var slashes = penalty.Params{SlashPPM: 250_000, BountyPPM: 400_000}

func (e *economy) proposeRules() bool {
	s := reward.DefaultSchedule()
	e.w.send(e.t, keyOf(citizen), e.propose("the rules",
		&registrypb.MsgUpdateParams{Authority: governance, Params: registrypb.FromParams(rules())},
		&rewardpb.MsgUpdateParams{Authority: governance, Params: rewardpb.Params{PerEpoch: emission, Halving: s.Halving,
			BasePpm: s.BasePPM, WorkPpm: s.WorkPPM, BandwidthPpm: s.BandwidthPPM}},
		&trainingpb.MsgUpdateParams{Authority: governance, Params: trainingpb.Params{SlashPpm: slashes.SlashPPM,
			BountyPpm: slashes.BountyPPM}},
		&beaconpb.MsgUpdateParams{Authority: governance, Params: beaconpb.Params{Keep: 100, Turns: 6, TurnsWithin: 10_000,
			SlashPpm: 1000}}))
	return true
}

func (e *economy) voteForRules() bool { e.vote(1); return true }

// participant as the chain knows it.
func (e *economy) participant(name string) registry.Participant {
	return must(e.w.Chain().Registry.Participant(e.t.Context(), keyOf(name).Address()))(e.t)
}

// measured waits for the rules and the classes, and orders the first job.
func (e *economy) measured() bool {
	ctx := e.t.Context()
	params := must(e.w.Chain().Registry.Params(ctx))(e.t)
	// the first round is in one epoch
	if params.EpochBlocks != rules().EpochBlocks || e.w.Height()%params.EpochBlocks != 5 {
		return false
	}
	for name, class := range map[string]registry.Class{slowOne: registry.Processor, liar: registry.Consumer,
		dear: registry.Datacentre} {
		switch p := e.participant(name); {
		case p.Rate == 0:
			return false
		case p.Class(params) != class || p.Rate > e.w.config.Machines[name].Rate:
			e.t.Errorf("%s was measured at %d operations a second, and is %s", name, p.Rate, p.Class(params))
		}
	}
	if waits := must(e.w.Chain().Market.PlacedOrder(ctx,
		e.w.config.Job.ID()))(e.t); waits.Why != string(market.PriceAboveCap) {
		e.t.Errorf("the order waits because of %q", waits.Why)
	}
	cid, _, genesis, err := bundle.Ship(ctx, e.w.parties[0].store, e.first.ID(), e.first.Task, e.first.Genesis, "", nil)
	e.must(err)
	config := e.w.config
	config.Job = e.first
	o := market.Order{
		ID: e.first.ID(), Budget: budget, PriceCap: 1000e9, Workers: market.Workers{Min: 2, Target: 2, Max: 2}, Verifiers: 1,
		Terms:      config.Terms(),
		Conditions: market.Conditions{Classes: []registry.Class{registry.Processor, registry.Consumer}, Domains: 2},
		SharesPPM:  600_000,
	}
	o.Terms.SpecCID, o.Terms.Genesis = cid, genesis
	e.must(e.as(citizen).Market.Order(ctx, o, referee.Opening(e.first.Task.Spec, e.first.Task.Step,
		e.first.Task.Corpus.Manifest(bundle.ShardTokens))))
	return true
}

// run of the first job.
func (e *economy) run() (run.State, bool) {
	s, err := e.w.Chain().Training.Run(e.t.Context(), e.first.ID())
	return s, err == nil
}

// receipts of the first job.
func (e *economy) receipts() []reward.Receipt {
	return must(e.w.Chain().Training.Receipts(e.t.Context(), e.first.ID()))(e.t)
}

func paid(r reward.Receipt) bool {
	return (r.Kind == reward.Work || r.Kind == reward.Audit) && r.Amount > 0
}

const newFee = 100_000 // ppm

// proposeChange proposes another fee and an upgrade when the first work is paid.
func (e *economy) proposeChange() bool {
	if _, begun := e.run(); !begun || !slices.ContainsFunc(e.receipts(), paid) {
		return false
	}
	e.let("verifier-0", func(ctx context.Context, c client.Member) error { return c.Registry.Unstake(ctx, takenBack) })
	p := market.DefaultParams()
	p.FeePPM = newFee
	e.at = e.w.Height() + 14
	e.w.send(e.t, keyOf(citizen),
		e.propose("the fee", &marketpb.MsgUpdateParams{Authority: governance, Params: marketpb.FromParams(p)}),
		e.propose("the version", &upgradetypes.MsgSoftwareUpgrade{Authority: governance, Plan: upgradetypes.Plan{Name: "v2",
			Height: e.at}}))
	return true
}

func (e *economy) voteForChange() bool { e.vote(2, 3); return true }

// upgrades lets the chain continue with another version when one is asked for.
func (e *economy) upgrades() {
	l := e.w.ledger
	l.Config.Home = e.t.TempDir()
	e.t.Chdir(l.Config.Home) // where the first application, which has no folder, writes what it waits for
	l.Mend = func(err error) error {
		if !errors.Is(err, upgrade.ErrTooOld) {
			return err
		}
		l.Config.Upgrades = []app.Upgrade{{Name: "v2", Apply: func(ctx context.Context, _ *app.App) error {
			e.applied = sdk.UnwrapSDKContext(ctx).BlockHeight()
			return nil
		}}}
		if l.App, err = app.New(log.NewNopLogger(), l.DB, l.Config); err == nil {
		}
		return err
	}
}

// migrate exports the chain after the upgrade, in the middle of the run, and lets another application continue from it.
func (e *economy) migrate() bool {
	if e.w.Height() < e.at+2 {
		return false
	}
	if e.applied != e.at {
		e.t.Errorf("the upgrade was applied at height %d, not %d", e.applied, e.at)
	}
	if s, _ := e.run(); s.Phase == progress.Done || s.Phase == progress.Halted {
		e.t.Error("the run was over before the export")
	}
	e.other = imported(e.t, e.w.ledger)
	ctx := e.t.Context()
	if p := must(e.w.Chain().Training.Penalty(ctx))(e.t); p != slashes {
		e.t.Errorf("the penalty is %+v", p)
	}
	if _, err := e.w.Chain().Ledger.Beacon(ctx, e.w.Height()-100); e.w.Height() > 102 && !errors.Is(err,
		client.ErrNotFound) {
		e.t.Errorf("a beacon that is not to be kept: %v", err)
	}
	return true
}

// convicted waits for the end of the first run: the lie cost stake, the fee changed in the middle.
func (e *economy) convicted() bool {
	s, _ := e.run()
	if s.Phase != progress.Done && s.Phase != progress.Halted {
		if p := e.participant("verifier-0"); p.Leaving != takenBack {
			e.t.Errorf("of the stake of a worker in a run %d uzen are to leave, not %d", p.Leaving, takenBack)
		}
		return false
	}
	if root := must(e.first.Root(6))(e.t); s.Phase != progress.Done || s.Base.Root != root {
		e.t.Errorf("the first run ends in phase %s (%s), and its model is that of honest work: %v", s.Phase, s.Why,
			s.Base.Root == root)
	}
	e.explain(e.receipts())
	lost := map[reward.Kind]uint64{}
	var restored, vain uint64 // uzen that the liar lost in addition to the verdict, and that others were paid of them
	for _, r := range e.receipts() {
		switch {
		case r.Reason == reward.Restitution:
			restored += r.Amount
		case r.Payer == keyOf(liar).Address():
			vain += r.Amount + r.Fee
		default:
			lost[r.Kind] += r.Amount
		}
	}
	if p := e.participant(liar); !p.Jailed || p.Slashed != stake/4+vain || restored != vain || vain == 0 {
		e.t.Errorf("the liar paid %d uzen for work that its lie made void, of which others got %d: %+v", restored, vain, p)
	}
	if lost[reward.Slash] != stake/4 || lost[reward.Bounty] != stake/10 || lost[reward.Fee] != stake*15/100 {
		e.t.Errorf("the verdict takes %d uzen, gives %d, and the rest is %d", lost[reward.Slash], lost[reward.Bounty],
			lost[reward.Fee])
	}
	fees := map[uint32]bool{}
	for _, r := range e.receipts() {
		if paid(r) {
			fees[r.FeePPM] = true
			if gross := r.Amount + r.Fee; r.Fee != gross*uint64(r.FeePPM)/1_000_000 || r.Fee == 0 {
				e.t.Errorf("a fee of %d on %d uzen at %d ppm", r.Fee, gross, r.FeePPM)
			}
		}
	}
	if !fees[market.FeePPM] || !fees[newFee] {
		e.t.Errorf("fees of %v ppm were taken", fees)
	}
	e.left, e.had = e.participant(liar).Stake, must(e.w.Chain().Coins.Balance(e.t.Context(), keyOf(liar).Address()))(e.t)
	e.let(liar, func(ctx context.Context, c client.Member) error { return c.Registry.Unstake(ctx, e.left) })
	return true
}

// takenBack is the stake that a worker asks back during a run, in uzen.
const takenBack = 1_000_000

// repaid waits until stakes have left: the rest of a convicted one, and a part of that of a verifier after its run.
func (e *economy) repaid() bool {
	if e.participant(liar).Stake > 0 || e.participant("verifier-0").Leaving > 0 {
		return false
	}
	if has := must(e.w.Chain().Coins.Balance(e.t.Context(), keyOf(liar).Address()))(e.t); has != e.had+e.left {
		e.t.Errorf("who took %d uzen of its stake back had %d, and has %d", e.left, e.had, has)
	}
	return true
}

// model of the first job, and what an account has of it.
func (e *economy) model(name string) module.Held {
	return must(e.w.Chain().Reward.Model(e.t.Context(), e.first.ID(), keyOf(name).Address()))(e.t)
}

// sell pays for the use of the model that the run made. Its shares are the consumer's and the honest worker's.
func (e *economy) sell() bool {
	if a, b := e.model(citizen).Shares, e.model(slowOne).Shares; a < 400_000 || b == 0 || a+b > reward.Shares {
		e.t.Errorf("the consumer holds %d shares, the worker %d", a, b)
	}
	e.must(e.as(citizen).Reward.PayRevenue(e.t.Context(), e.first.ID(), "", 3_000_001))
	return true
}

// share gives shares away, between two payments.
func (e *economy) share() bool {
	e.due = e.model(citizen).Due
	if want := 3 * e.model(citizen).Shares; e.due != want {
		e.t.Errorf("the consumer is due %d uzen, want %d", e.due, want)
	}
	coins := sdk.NewCoins(sdk.NewInt64Coin(chainreward.Denom(e.first.ID()), 100_000))
	e.let(slowOne, func(ctx context.Context, c client.Member) error {
		_, err := c.Submit(ctx, &banktypes.MsgSend{FromAddress: c.Address(), ToAddress: keyOf(citizen).Address(),
			Amount: coins})
		return err
	})
	return true
}

func (e *economy) earn() bool {
	if e.w.Height() < e.since+3 {
		return false
	}
	e.must(e.as(citizen).Reward.PayRevenue(e.t.Context(), e.first.ID(), "", 2_000_000))
	e.due += 2 * e.model(citizen).Shares
	return true
}

// claimed takes what the shares earned, each for as long as it was held.
func (e *economy) claimed() bool {
	switch e.w.Height() - e.since {
	case 1:
		if m := e.model(citizen); m.Due != e.due || m.Carry != 1 {
			e.t.Errorf("the consumer is due %d uzen, want %d; %d are left over", m.Due, e.due, m.Carry)
		}
		e.must(e.as(citizen).Reward.ClaimRevenue(e.t.Context(), e.first.ID()))
		e.let(slowOne, func(ctx context.Context, c client.Member) error { return c.Reward.ClaimRevenue(ctx, e.first.ID()) })
		return false
	case 2, 3, 4:
		return false
	}
	if a, b := e.model(citizen), e.model(slowOne); a.Due != 0 || b.Due != 0 || a.Held > reward.Shares {
		e.t.Errorf("after the claims: %+v, %+v", a, b)
	}
	claims := e.book("model/" + e.first.ID())
	for _, r := range claims {
		if r.Who == keyOf(citizen).Address() && r.Amount != e.due || r.Kind != reward.Revenue {
			e.t.Errorf("of %d uzen that are due: %+v", e.due, r)
		}
	}
	if len(claims) != 2 {
		e.t.Errorf("the claims are %+v", claims)
	}
	return true
}

// book is the receipts of an epoch or a model, each explained.
func (e *economy) book(name string) []reward.Receipt {
	e.t.Helper()
	all := must(e.w.Chain().Reward.Book(e.t.Context(), name, 0, 0))(e.t)
	e.explain(all)
	for i, r := range all {
		if one := must(e.w.Chain().Reward.Book(e.t.Context(), name, uint64(i), 1))(e.t); r.Job != name ||
			r.Seq != uint64(i) || len(one) != 1 || one[0] != r {
			e.t.Errorf("receipt %d of %s is %+v, and asked for alone %+v", i, name, r, one)
		}
	}
	if len(all) == 0 {
		e.t.Errorf("%s has no receipts", name)
	}
	return all
}

// explain checks that receipts, which are all of their job, say how their amounts come about.
func (e *economy) explain(all []reward.Receipt) {
	e.t.Helper()
	for _, r := range all {
		text := strings.Join(reward.Arithmetic(r, all), "\n")
		if !strings.Contains(text, inZEN(r.Amount)) || strings.Contains(text, "does not add up") ||
			reward.Reason(r) == "of "+r.Reason {
			e.t.Errorf("%+v is explained by %q and %q", r, reward.Explain(r), text)
		}
	}
}

// leave switches the dear machine off early in an epoch.
func (e *economy) leave() bool {
	if in := e.w.Height() % rules().EpochBlocks; in < 3 || in > 12 {
		return false
	}
	e.w.at[address(dear)].crash()
	return true
}

func (e *economy) comeBack() bool {
	if e.w.Height() < e.since+30 {
		return false
	}
	e.w.at[address(dear)].restart()
	return true
}

// settled waits for the end of the epoch: who was away lost stake, who was there is rewarded. Then the dear machine
// becomes cheap enough for the order that waits.
func (e *economy) settled() bool {
	if e.w.Height()%rules().EpochBlocks != 0 {
		return false
	}
	ctx := e.t.Context()
	if p := e.participant(dear); p.Slashed != stake/100 || p.Jailed {
		e.t.Errorf("who was away: %+v", p)
	}
	got := map[reward.Kind]uint64{}
	for _, r := range must(e.w.Chain().Reward.Earnings(ctx, keyOf(slowOne).Address()))(e.t) {
		if r.OfEpoch() {
			got[r.Kind] += r.Amount
			if reward.Explain(r) == "" {
				e.t.Errorf("a receipt without explanation: %+v", r)
			}
		}
	}
	whole := e.book(fmt.Sprintf("epoch/%d", e.w.Height()/rules().EpochBlocks-1))
	for _, r := range must(e.w.Chain().Reward.Earnings(ctx, keyOf(dear).Address()))(e.t) {
		if r.OfEpoch() && r.Height == e.w.Height() && !slices.Contains(whole, r) {
			e.t.Errorf("the receipts of the epoch lack %+v", r)
		}
	}
	if got[reward.Base] == 0 || got[reward.WorkReward] == 0 || got[reward.Bandwidth] == 0 || got[reward.Slash] != 0 {
		e.t.Errorf("the epochs paid who was there: %v", got)
	}
	away := must(e.w.Chain().Reward.Earnings(ctx, keyOf(dear).Address()))(e.t)
	if !slices.ContainsFunc(away, func(r reward.Receipt) bool {
		return r.Kind == reward.Base && r.Amount == 0 && r.Reason == reward.Downtime
	}) {
		e.t.Errorf("the receipts of the absent worker: %+v", away)
	}
	e.let(dear, func(ctx context.Context, c client.Member) error { return c.Market.Offer(ctx, crew.Worker, 450e9, 1) })
	return true
}

func (e *economy) matched() bool {
	s, err := e.w.State()
	if errors.Is(err, client.ErrNotFound) {
		if e.w.Height() > e.since+20 {
			e.t.Error("the order is not matched")
			e.w.over = true
		}
		return false
	}
	e.must(err)
	if m, ok := s.Member(keyOf(dear).Address()); !ok || m.Price != 450e9 {
		e.t.Errorf("members: %+v", s.Members)
	}
	return true
}

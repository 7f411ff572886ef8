package delegation

import (
	"context"
	"errors"
	"fmt"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter/custody"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/chain/x/delegation/delegationpb"
	xregistry "github.com/starling-network/starling/chain/x/registry"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/delegation"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
)

const zen = 1_000_000

var (
	worker = named(1)
	usdc   = coin.Coin{Denom: "ibc/usdc", Symbol: "usdc", Exponent: 6}
)

func named(n byte) string { return sdk.AccAddress(append(make([]byte, 19), n)).String() }

// around is a chain with one participant, and accounts that have all coins.
type around struct {
	t       *testing.T
	k       *Keeper
	ctx     sdk.Context
	member  registry.Participant
	held    map[string]uint64 // by the module, by denomination
	paid    map[string]uint64 // by account and denomination; "": the community pool
	broke   bool              // payments to accounts fail
	receipt []reward.Receipt
}

func chainOf(t *testing.T) *around {
	t.Helper()
	store, ctx := storetest.Open(t, Name)
	a := &around{t: t, ctx: ctx.WithBlockHeight(1), held: map[string]uint64{}, paid: map[string]uint64{},
		member: registry.Participant{ID: worker, Roles: []crew.Role{crew.Worker}, Stake: 1000 * zen}}
	var err error
	if a.k, err = NewKeeper(store, a, a); err != nil {
		t.Fatal(err)
	}
	a.k.Connect(custody.Custody{Module: Name, Account: sdk.AccAddress(Name), Bank: a, Pool: a, Coins: a}, a)
	return a
}

func (a *around) Get(_ context.Context, id string) (registry.Participant, error) {
	if id != a.member.ID {
		return registry.Participant{}, xregistry.ErrUnknown
	}
	return a.member, nil
}

func (a *around) Params(context.Context) (registry.Params, error) {
	return registry.DefaultParams(), nil
}

func (a *around) Issue(_ context.Context, r reward.Receipt) error {
	a.receipt = append(a.receipt, r)
	return nil
}

func (a *around) move(c sdk.Coins, to string) error {
	for _, one := range c {
		a.held[one.Denom] -= one.Amount.Uint64()
		a.paid[to+one.Denom] += one.Amount.Uint64()
	}
	return nil
}

func (a *around) SendCoinsFromAccountToModule(_ context.Context, _ sdk.AccAddress, _ string, c sdk.Coins) error {
	a.held[c[0].Denom] += c[0].Amount.Uint64()
	return nil
}

func (a *around) SendCoinsFromModuleToModule(_ context.Context, _, _ string, c sdk.Coins) error {
	a.held[c[0].Denom] += c[0].Amount.Uint64()
	return nil
}

func (a *around) SendCoinsFromModuleToAccount(_ context.Context, _ string, to sdk.AccAddress, c sdk.Coins) error {
	if a.broke {
		return errors.New("the account takes none")
	}
	return a.move(c, to.String())
}

func (a *around) FundCommunityPool(_ context.Context, c sdk.Coins, _ sdk.AccAddress) error {
	return a.move(c, "")
}

func (a *around) Find(_ context.Context, denom string) (coin.Registered, error) {
	if denom == usdc.Denom {
		return coin.Registered{Coin: usdc}, nil
	}
	return coin.Zen(), nil
}

func (a *around) Open(ctx context.Context, denom string) (coin.Registered, error) {
	return a.Find(ctx, denom)
}

// at goes to the end of a block.
func (a *around) at(height int64) {
	a.t.Helper()
	a.ctx = a.ctx.WithBlockHeight(height)
	if err := a.k.EndBlock(a.ctx); err != nil {
		a.t.Fatal(err)
	}
}

func (a *around) opens(commission uint32) {
	a.t.Helper()
	m := &delegationpb.MsgSetTerms{Sender: worker, CommissionPpm: commission}
	if _, err := (messages{a.k}).SetTerms(a.ctx, m); err != nil {
		a.t.Fatal(err)
	}
}

func (a *around) delegates(who string, uzen uint64) error {
	_, err := messages{a.k}.Delegate(a.ctx, &delegationpb.MsgDelegate{Sender: who, Participant: worker, Amount: uzen})
	return err
}

// owed is what the module has written down that it holds.
func (a *around) owed() map[string]uint64 {
	a.t.Helper()
	r, err := Queries{a.k}.Pool(a.ctx, &delegationpb.QueryPoolRequest{Participant: worker})
	if err != nil {
		a.t.Fatal(err)
	}
	var v delegation.View
	if err := canon.Unmarshal(r.Pool, &v); err != nil {
		a.t.Fatal(err)
	}
	sums := map[string]uint64{"": v.Tokens + v.Joining}
	for _, u := range v.Purses {
		sums[u.Coin.Denom] += u.Held
	}
	return sums
}

func (a *around) balanced() {
	a.t.Helper()
	owed := a.owed()
	if a.held["uzen"] != owed[""] || a.held[usdc.Denom] != owed[usdc.Denom] {
		a.t.Fatalf("held %v, owed %v", a.held, owed)
	}
}

// Pay in two coins is kept apart, and a delegator that leaves is paid all of it with the last of its stake.
func TestPayInTwoCoins(t *testing.T) {
	a := chainOf(t)
	a.opens(0)
	if err := errors.Join(a.delegates(named(2), 100*zen), a.delegates(named(3), 400*zen)); err != nil {
		t.Fatal(err)
	}
	pay := func(c coin.Coin, grains, want uint64) {
		t.Helper()
		rest, err := a.k.share(a.ctx, "market", worker, c, grains)
		if err != nil || rest != want {
			t.Errorf("%d are left of %d, want %d: %v", rest, grains, want, err)
		}
		a.balanced()
	}
	pay(usdc, 3000, 3000) // what joins earns nothing
	a.at(3601)
	pay(coin.Coin{}, 3000, 2000)
	pay(usdc, 6000, 4000)
	if _, err := (messages{a.k}).Undelegate(a.ctx, &delegationpb.MsgUndelegate{Sender: named(3),
		Participant: worker}); err != nil {
		t.Fatal(err)
	}
	pay(usdc, 11_000, 10_000) // only the other one earns
	if err := a.k.slash(a.ctx, worker, 500*zen, 1000*zen); err != nil {
		t.Fatal(err)
	}
	a.at(3601 + 20_000)
	a.balanced()
	if a.paid[named(3)+"uzen"] != 200*zen+799 || a.paid[named(3)+usdc.Denom] != 1599 || a.paid["uzen"] != 250*zen {
		t.Errorf("%v", a.paid) // each payment rounded down
	}
	if n := len(a.receipt); n != 5 || a.receipt[n-1].Kind != reward.Delegated || a.receipt[n-1].Seq != 4 {
		t.Errorf("%+v", a.receipt)
	}
	if _, err := (messages{a.k}).Claim(a.ctx, &delegationpb.MsgClaim{Sender: named(3), Participant: worker}); !errors.Is(
		err, delegation.ErrNone) {
		t.Errorf("%v", err)
	}
	if _, err := (messages{a.k}).Claim(a.ctx, &delegationpb.MsgClaim{Sender: named(2),
		Participant: worker}); err != nil || a.paid[named(2)+usdc.Denom] != 1399 {
		t.Errorf("%v, %v", a.paid, err)
	}
}

// Stake that joins comes back if its participant is convicted, or becomes a machine, before it joined.
func TestJoinsOnlyWhoIsTaken(t *testing.T) {
	for name, change := range map[string]func(*registry.Participant){
		"jailed":   func(p *registry.Participant) { p.Jailed = true },
		"machine":  func(p *registry.Participant) { p.Machine.Owner = named(9) },
		"unstaked": func(p *registry.Participant) { p.Leaving = p.Stake },
	} {
		a := chainOf(t)
		a.opens(0)
		if err := a.delegates(named(2), 100*zen); err != nil {
			t.Fatal(err)
		}
		change(&a.member)
		if err := a.delegates(named(3), zen); err == nil {
			t.Errorf("%s: it takes stake", name)
		}
		a.at(3601)
		a.balanced()
		if a.paid[named(2)+"uzen"] != 100*zen {
			t.Errorf("%s: %v", name, a.paid)
		}
	}
}

// A delegator that cannot be paid stands in the way of no other, and is tried again.
func TestAPaymentThatFailsIsTriedAgain(t *testing.T) {
	a := chainOf(t)
	a.opens(0)
	if err := a.delegates(named(2), 100*zen); err != nil {
		t.Fatal(err)
	}
	a.at(3601)
	if _, err := (messages{a.k}).Undelegate(a.ctx, &delegationpb.MsgUndelegate{Sender: named(2),
		Participant: worker}); err != nil {
		t.Fatal(err)
	}
	a.broke = true
	a.at(23_601)
	a.broke = false
	a.at(23_602)
	if a.paid[named(2)+"uzen"] != 0 {
		t.Errorf("%v", a.paid)
	}
	a.at(23_601 + postponed)
	a.balanced()
	if a.paid[named(2)+"uzen"] != 100*zen {
		t.Errorf("%v", a.paid)
	}
}

// Stake that could not be paid out waits longer, with the stake that its account asks for meanwhile.
func TestALaterHeightHolds(t *testing.T) {
	a := chainOf(t)
	a.opens(0)
	if err := a.delegates(named(2), 100*zen); err != nil {
		t.Fatal(err)
	}
	a.at(3601)
	leaves := func(uzen uint64) int64 {
		t.Helper()
		r, err := messages{a.k}.Undelegate(a.ctx, &delegationpb.MsgUndelegate{Sender: named(2), Participant: worker,
			Amount: uzen})
		if err != nil {
			t.Fatal(err)
		}
		return r.Height
	}
	first := leaves(10 * zen)
	a.broke = true
	a.at(first)
	a.broke = false
	second := leaves(90 * zen)
	a.at(first + postponed)
	if a.paid[named(2)+"uzen"] != 0 {
		t.Errorf("%v is paid before height %d", a.paid, second)
	}
	a.at(second)
	a.balanced()
	if a.paid[named(2)+"uzen"] != 100*zen {
		t.Errorf("%v", a.paid)
	}
}

// A block pays out a bounded number of delegations, and the next block the others.
func TestABlockIsBounded(t *testing.T) {
	a := chainOf(t)
	a.opens(0)
	for i := range maxDue + 1 {
		if err := a.delegates(sdk.AccAddress(fmt.Appendf(nil, "%020d", i)).String(), zen); err != nil {
			t.Fatal(err)
		}
	}
	a.at(3601)
	pool, err := a.k.pool(a.ctx, worker)
	if err != nil || pool.Shares != maxDue*zen || pool.Joining != zen {
		t.Errorf("%+v, %v", pool, err)
	}
	a.at(3602)
	if pool, err = a.k.pool(a.ctx, worker); err != nil || pool.Shares != (maxDue+1)*zen {
		t.Errorf("%+v, %v", pool, err)
	}
	r, err := Queries{a.k}.Delegators(a.ctx, &delegationpb.QueryDelegatorsRequest{Participant: worker, Limit: 10})
	if err != nil || len(r.Delegations) != 10 {
		t.Errorf("%d, %v", len(r.Delegations), err)
	}
}

// A machine has no pool, and neither has an account without a role or a stranger.
func TestWhoHasAPool(t *testing.T) {
	a := chainOf(t)
	for name, change := range map[string]func(*registry.Participant){
		"machine": func(p *registry.Participant) { p.Machine.Owner = named(9) },
		"idle":    func(p *registry.Participant) { p.Roles = nil },
		"earns":   func(p *registry.Participant) { p.Earning = true },
	} {
		had := a.member
		change(&a.member)
		if _, err := (messages{a.k}).SetTerms(a.ctx, &delegationpb.MsgSetTerms{Sender: worker}); !errors.Is(err,
			delegation.ErrParty) {
			t.Errorf("%s: %v", name, err)
		}
		a.member = had
	}
	if _, err := (messages{a.k}).SetTerms(a.ctx, &delegationpb.MsgSetTerms{Sender: named(7)}); !errors.Is(err,
		delegation.ErrParty) {
		t.Error(err)
	}
	if err := a.delegates(named(2), zen); !errors.Is(err, delegation.ErrNoPool) {
		t.Error(err)
	}
}

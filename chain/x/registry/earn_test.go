package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/earning"
)

// chainless is a bank that remembers what was paid, a beacon, and runs in which the accounts of in have a part.
type chainless struct {
	still
	paid map[string]uint64
	in   map[string]bool
}

func (c chainless) At(_ context.Context, height int64) (canon.Digest, error) {
	return canon.Sum("beacon", []byte(fmt.Sprint(height))), nil
}
func (c chainless) Part(_ context.Context, id string) (bool, error) { return c.in[id], nil }
func (c chainless) Withdraw(context.Context, string) error          { return nil }
func (c chainless) BlockedAddr(a sdk.AccAddress) bool               { return a.String() == module }
func (c chainless) SendCoinsFromModuleToAccount(_ context.Context, _ string, to sdk.AccAddress,
	amount sdk.Coins) error {
	c.paid[to.String()] += amount[0].Amount.Uint64()
	return nil
}
func (c chainless) SendCoinsFromModuleToModule(_ context.Context, _, to string, amount sdk.Coins) error {
	c.paid[to] += amount[0].Amount.Uint64()
	return nil
}

var module = sdk.AccAddress("a module------------").String()

func named(i int) string { return sdk.AccAddress(fmt.Sprintf("earner-%013d", i)).String() }

// places returns a keeper at height 1000, in which the given number of workers may earn their stake at a time.
func places(t *testing.T, most uint32) (*Keeper, chainless, sdk.Context) {
	t.Helper()
	service, ctx := storetest.Open(t, Name)
	ctx = ctx.WithBlockHeight(1000)
	around := chainless{paid: map[string]uint64{}, in: map[string]bool{}}
	k, err := NewKeeper(service, nil, "", around, around, around)
	if err != nil {
		t.Fatal(err)
	}
	k.Connect(around)
	p := registry.DefaultParams()
	p.Earning.Most, p.Earning.Bits = most, 0
	if err := k.params.Set(ctx, p); err != nil {
		t.Fatal(err)
	}
	return k, around, ctx
}

// joins registers a worker without a stake, with a proof that has a number of zero bits.
func joins(k *Keeper, ctx sdk.Context, id string, bits uint32) error {
	m := &registrypb.MsgRegister{Sender: id, PeerId: "peer", Roles: []registrypb.Role{registrypb.Role_ROLE_WORKER},
		Earns: true, ProofHeight: ctx.BlockHeight()}
	beacon, _ := k.beacon.At(ctx, m.ProofHeight)
	for !earning.Proves(id, beacon, bits, m.Proof) {
		m.Proof++
	}
	_, err := messages{k}.Register(ctx, m)
	return err
}

// As many workers as have a place register, each with a harder proof than the one before. The next gets the place of
// one that was idle for long and works in no run; a convicted one keeps its own as long.
func TestPlacesAreBounded(t *testing.T) {
	k, around, ctx := places(t, 4)
	for i := range 4 {
		if err := joins(k, ctx, named(i), 8); err != nil {
			t.Fatal(err)
		}
	}
	if err := joins(k, ctx, named(4), 8); !errors.Is(err, earning.ErrRefused) {
		t.Errorf("a fifth worker: %v", err)
	}
	if err := joins(k, ctx, named(0), 8); !errors.Is(err, earning.ErrRefused) {
		t.Errorf("one that is registered: %v", err)
	}
	around.in[named(0)] = true
	if err := k.Jail(ctx, named(1), "job", 0); err != nil {
		t.Fatal(err)
	}
	params, _ := k.Params(ctx)
	later := ctx.WithBlockHeight(1000 + params.Earning.IdleBlocks/12 + 1)
	if err := joins(k, later, named(4), 8); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false, true, true} {
		if p, err := k.Get(later, named(i)); err != nil || earning.Placed(p) != want {
			t.Errorf("worker %d: %+v, %v", i, p, err)
		}
	}
	if err := joins(k, later, named(2), 8); err != nil { // it takes the place of worker 3
		t.Errorf("one whose place was taken registers again: %v", err)
	}
	if err := joins(k, later, named(1), 8); !errors.Is(err, earning.ErrRefused) {
		t.Errorf("a convicted one: %v", err)
	}
}

// Proofs are for recent blocks, and of the account.
func TestProofsAreChecked(t *testing.T) {
	k, _, ctx := places(t, 4)
	params, _ := k.Params(ctx)
	params.Earning.Bits = 12
	if err := k.params.Set(ctx, params); err != nil {
		t.Fatal(err)
	}
	m := registrypb.MsgRegister{Sender: named(0), PeerId: "peer", Roles: []registrypb.Role{registrypb.Role_ROLE_WORKER},
		Earns: true, ProofHeight: 1000}
	beacon, _ := k.beacon.At(ctx, 1000)
	for !earning.Proves(named(0), beacon, 12, m.Proof) {
		m.Proof++
	}
	for name, change := range map[string]func(*registrypb.MsgRegister, *sdk.Context){
		"another account": func(m *registrypb.MsgRegister, _ *sdk.Context) { m.Sender = named(1) },
		"another number":  func(m *registrypb.MsgRegister, _ *sdk.Context) { m.Proof++ },
		"another block":   func(m *registrypb.MsgRegister, _ *sdk.Context) { m.ProofHeight-- },
		"a later block":   func(m *registrypb.MsgRegister, _ *sdk.Context) { m.ProofHeight++ },
		"too late": func(_ *registrypb.MsgRegister, ctx *sdk.Context) {
			*ctx = ctx.WithBlockHeight(1001 + earning.ProofBlocks)
		},
		"a stake":    func(m *registrypb.MsgRegister, _ *sdk.Context) { m.Stake = 1 },
		"a verifier": func(m *registrypb.MsgRegister, _ *sdk.Context) { m.Roles[0] = registrypb.Role_ROLE_VERIFIER },
	} {
		m, ctx := m, ctx
		m.Roles = []registrypb.Role{registrypb.Role_ROLE_WORKER}
		change(&m, &ctx)
		if _, err := (messages{k}).Register(ctx, &m); !errors.Is(err, earning.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (messages{k}).Register(ctx, &m); err != nil {
		t.Error(err)
	}
}

// The pay of a worker is its stake until it has enough, and then goes to it, or to its payee, which also gets the
// stake.
func TestPayOfAWorkerWithoutAStake(t *testing.T) {
	k, around, ctx := places(t, 4)
	if err := joins(k, ctx, named(0), 8); err != nil {
		t.Fatal(err)
	}
	params, _ := k.Params(ctx)
	pays := Paying{k}
	for range params.Earning.Audits {
		err := errors.Join(k.Audited(ctx, named(0), true),
			pays.Pay(ctx, "market", named(0), coin.Coin{}, params.Earning.Stake))
		if err != nil {
			t.Fatal(err)
		}
	}
	p, _ := k.Get(ctx, named(0))
	want := params.Earning.Stake * uint64(params.Earning.Audits-1)
	if p.Earning || p.Stake != want || around.paid[Name] != want {
		t.Errorf("%+v, with %d in the module", p, around.paid[Name])
	}
	if n, _, err := k.Earners.Count(ctx, params); n != 0 || err != nil {
		t.Errorf("%d earn theirs: %v", n, err)
	}
	if around.paid[named(0)] != params.Earning.Stake {
		t.Errorf("it is paid itself after its last audit: %v", around.paid)
	}
	around.paid[named(0)] = 0
	cold, set := named(7), func(payee string) error {
		_, err := messages{k}.SetPayee(ctx, &registrypb.MsgSetPayee{Sender: named(0), Participant: named(0), Payee: payee})
		return err
	}
	err := errors.Join(pays.Pay(ctx, "market", named(0), coin.Coin{}, 5), set(cold),
		pays.Pay(ctx, "market", named(0), coin.Coin{}, 7))
	if err != nil {
		t.Fatal(err)
	}
	if around.paid[named(0)] != 5 || around.paid[cold] != 7 {
		t.Errorf("paid were %v", around.paid)
	}
	stolen := &registrypb.MsgSetPayee{Sender: named(0), Participant: named(0), Payee: named(8)}
	answer := &registrypb.MsgSetPayee{Sender: cold, Participant: named(0), Payee: named(9)}
	if k.Duty(ctx, cold, answer) || !Owed(answer) {
		t.Error("without a fee, a payee makes a change to which it answers none")
	}
	if _, err := (messages{k}).SetPayee(ctx, stolen); err != nil || !k.Duty(ctx, cold, answer) ||
		k.Duty(ctx, named(0), stolen) || k.Duty(ctx, named(8), answer) {
		t.Errorf("the payee answers a change without a fee, and no other account: %v", err)
	}
	if _, err := (messages{k}).SetPayee(ctx, answer); err != nil || k.Duty(ctx, cold, answer) ||
		k.Duty(ctx, named(9), answer) {
		t.Errorf("once: %v", err)
	}
	for _, bad := range []string{module, "starling1qq", "x", strings.ToUpper(named(6))} {
		if err := set(bad); !errors.Is(err, registry.ErrPayee) {
			t.Errorf("%q is named: %v", bad, err)
		}
	}
	if err := k.put(ctx, registry.Participant{ID: named(3), Payee: registry.Payee{ID: module}}); err != nil {
		t.Fatal(err)
	}
	if err := pays.Pay(ctx, "market", named(3), coin.Coin{}, 9); err != nil || around.paid[named(3)] != 9 {
		t.Errorf("a payee that became the account of a module: %v, %v", around.paid, err)
	}
	p.Leaving, p.LeavesAt = 100, 1000
	p.Payee.ID = cold
	if err := errors.Join(k.put(ctx, p), k.plan(ctx, registry.Participant{}, p), k.release(ctx)); err != nil ||
		around.paid[cold] != 107 {
		t.Errorf("the stake went to %v: %v", around.paid, err)
	}
}

package registry

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/earning"
)

// The pay of a worker stays until its audits, and no later registration ends that: it is not paid coins, and takes
// nothing out.
func TestLaterRegistrationsEndNoEarning(t *testing.T) {
	k, around, ctx := places(t, 4)
	id, does := named(0), messages{k}
	if err := errors.Join(joins(k, ctx, id, 8), (Paying{k}).Pay(ctx, "market", id, coin.Coin{}, 1_000_000)); err != nil {
		t.Fatal(err)
	}
	worker := []registrypb.Role{registrypb.Role_ROLE_WORKER}
	for name, c := range map[string]struct {
		m    registrypb.MsgRegister
		want error
	}{
		"no role":  {registrypb.MsgRegister{}, nil},
		"again":    {registrypb.MsgRegister{Roles: worker, Device: "another"}, nil},
		"a pool":   {registrypb.MsgRegister{Roles: worker, Pool: named(3)}, earning.ErrRefused},
		"a tier":   {registrypb.MsgRegister{Roles: worker, Tier: registrypb.Tier_TIER_BRONZE}, earning.ErrRefused},
		"verifier": {registrypb.MsgRegister{Roles: []registrypb.Role{registrypb.Role_ROLE_VERIFIER}}, earning.ErrRefused},
		"both": {registrypb.MsgRegister{Roles: []registrypb.Role{registrypb.Role_ROLE_WORKER,
			registrypb.Role_ROLE_VERIFIER}}, earning.ErrRefused},
	} {
		each, _ := ctx.CacheContext()
		c.m.Sender, c.m.PeerId = id, "peer"
		if _, err := does.Register(each, &c.m); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	bare := &registrypb.MsgRegister{Sender: id, PeerId: "peer"}
	for range 2 {
		if _, err := does.Register(ctx, bare); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := does.Unstake(ctx, &registrypb.MsgUnstake{Sender: id, Amount: 1}); !errors.Is(err, registry.ErrUnstake) {
		t.Errorf("its pay leaves without an audit: %v", err)
	}
	if err := (Paying{k}).Pay(ctx, "market", id, coin.Coin{}, 5); err != nil || around.paid[id] > 0 {
		t.Errorf("it is paid coins: %v, %v", around.paid, err)
	}
	back := &registrypb.MsgRegister{Sender: id, PeerId: "peer", Roles: worker}
	if _, err := does.Register(ctx, back); !errors.Is(err, earning.ErrRefused) {
		t.Errorf("it takes a place without a proof: %v", err)
	}
	if err := joins(k, ctx, id, 8); err != nil {
		t.Errorf("with a proof: %v", err)
	}
}

// A place stays taken while its worker has a part in a run, and after a conviction.
func TestPlacesAreNotGivenUp(t *testing.T) {
	k, around, ctx := places(t, 1)
	bare := &registrypb.MsgRegister{Sender: named(0), PeerId: "peer"}
	gives := func() error {
		_, err := messages{k}.Register(ctx, bare)
		return err
	}
	if err := joins(k, ctx, named(0), 8); err != nil {
		t.Fatal(err)
	}
	around.in[named(0)] = true
	if err := gives(); !errors.Is(err, earning.ErrRefused) {
		t.Errorf("while it has a part in a run: %v", err)
	}
	around.in[named(0)] = false
	if err := k.Jail(ctx, named(0), "job", 0); err != nil {
		t.Fatal(err)
	}
	if err := gives(); !errors.Is(err, earning.ErrRefused) {
		t.Errorf("after a conviction: %v", err)
	}
	if err := joins(k, ctx, named(1), 8); !errors.Is(err, earning.ErrRefused) {
		t.Errorf("another has its place: %v", err)
	}
}

// Pay that reaches a worker after its conviction leaves after the audits, too.
func TestPayAfterAConviction(t *testing.T) {
	k, _, ctx := places(t, 1)
	id := named(0)
	err := errors.Join(joins(k, ctx, id, 8), k.Jail(ctx, id, "job", 0),
		(Paying{k}).Pay(ctx, "market", id, coin.Coin{}, 7))
	if err != nil {
		t.Fatal(err)
	}
	params, _ := k.Params(ctx)
	ctx = ctx.WithBlockHeight(1000 + params.JailBlocks)
	p, _ := k.Get(ctx, id)
	if err := k.put(ctx, p.Rated(params.Earning.Rate, 1001)); err != nil {
		t.Fatal(err)
	}
	if _, err := (messages{k}).Unjail(ctx, &registrypb.MsgUnjail{Sender: id}); err != nil {
		t.Fatal(err)
	}
	p, _ = k.Get(ctx, id)
	if _, err := p.Unstake(7, params, 1); !errors.Is(err, registry.ErrUnstake) || earning.Placed(p) {
		t.Errorf("%v: %+v", err, p)
	}
	if n, _, _ := k.Earners.Count(ctx, params); n > 0 {
		t.Error("it has a place")
	}
}

// A registration that fails in its own rules is refused before its signature is verified, and a proof serves once.
func TestProofsServeOnce(t *testing.T) {
	k, _, ctx := places(t, 2)
	m := &registrypb.MsgRegister{Sender: named(0), PeerId: "peer", Roles: []registrypb.Role{registrypb.Role_ROLE_WORKER},
		Earns: true, ProofHeight: 1000}
	if err := errors.Join(k.Earners.Early(ctx, m), k.Earners.Spend(ctx, m)); err != nil {
		t.Fatal(err)
	}
	if err := k.Earners.Spend(ctx, m); !errors.Is(err, earning.ErrRefused) {
		t.Errorf("a proof serves twice: %v", err)
	}
	if m.ProofHeight++; k.Earners.Spend(ctx, m) != nil {
		t.Error("a proof for a later block is refused")
	}
	m.ProofHeight--
	if m.PeerId = ""; !errors.Is(k.Earners.Early(ctx, m), registry.ErrInvalid) {
		t.Error("a registration without a peer passes")
	}
	if m.PeerId, m.Pool = "peer", named(3); !errors.Is(k.Earners.Early(ctx, m), earning.ErrRefused) {
		t.Error("a registration with a pool passes")
	}
}

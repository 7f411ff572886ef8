package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/coinstakes"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/fleet"
	"github.com/starling-network/starling/protocol/run/crew"
)

// keyed is a key of an invitation.
func keyed(name string) *secp256k1.PrivKey { return secp256k1.GenPrivKeyFromSecret([]byte(name)) }

// admission is the message by which an account uses the invitation of a key of the first owner.
func admission(ctx sdk.Context, key *secp256k1.PrivKey, sender string) *registrypb.MsgEnrol {
	return admissionTo(ctx, key, sender, named(1))
}

func admissionTo(ctx sdk.Context, key *secp256k1.PrivKey, sender, owner string) *registrypb.MsgEnrol {
	signature, err := key.Sign(fleet.Text(ctx.ChainID(), sender, owner))
	if err != nil {
		panic(err)
	}
	return &registrypb.MsgEnrol{Sender: sender, Key: key.PubKey().Bytes(), Signature: signature, Owner: owner}
}

// enrolled returns a keeper with a machine of an owner that works and verifies.
func enrolled(t *testing.T) (*Keeper, chainless, sdk.Context, string, string) {
	t.Helper()
	k, around, ctx := places(t, 4)
	ctx = ctx.WithChainID("chain")
	owner, machine, key := named(1), named(2), keyed("a")
	if _, err := served(k).Invite(ctx, &registrypb.MsgInvite{Owner: owner, Key: key.PubKey().Bytes(),
		Stake: 2_000_000, Until: 2000}); err != nil {
		t.Fatal(err)
	}
	if _, err := served(k).Enrol(ctx, admission(ctx, key, machine)); err != nil {
		t.Fatal(err)
	}
	register := &registrypb.MsgRegister{Sender: machine, PeerId: "peer", Roles: []registrypb.Role{
		registrypb.Role_ROLE_WORKER, registrypb.Role_ROLE_VERIFIER}}
	if _, err := (messages{k}).Register(ctx, register); err != nil {
		t.Fatal(err)
	}
	return k, around, ctx, owner, machine
}

// A revoked machine is drawn no more, and its stake leaves to its owner, as its pay and its bounties do.
func TestTheOwnerOfAMachineIsPaid(t *testing.T) {
	k, around, ctx, owner, machine := enrolled(t)
	if err := errors.Join((Paying{k}).Pay(ctx, "market", machine, coin.Coin{}, 7),
		k.Take(ctx, machine, machine, 3)); err != nil {
		t.Fatal(err)
	}
	if around.paid[owner] != 10 || around.paid[machine] != 0 {
		t.Errorf("paid: %v", around.paid)
	}
	if o, err := (Paying{k}).Owner(ctx, machine); o != owner || err != nil {
		t.Errorf("it works for %s, %v", o, err)
	}
	self := registry.Participant{ID: machine, Machine: registry.Machine{Owner: owner}}
	if lead, err := (Paying{k}).Lead(ctx, self); err != nil || lead.ID != owner {
		t.Errorf("its owner, which is no participant: %+v, %v", lead, err)
	}
	last, _ := k.tree.Last(ctx)
	if total, _ := k.tree.Total(ctx, last); total != 2_000_000-3 {
		t.Errorf("verifiers weigh %d", total)
	}
	around.in[machine] = true
	r, err := served(k).Revoke(ctx, &registrypb.MsgRevoke{Owner: owner, Machine: machine})
	if err != nil {
		t.Fatal(err)
	}
	if total, _ := k.tree.Total(ctx, last); total != 0 {
		t.Errorf("a revoked verifier weighs %d", total)
	}
	// while it has a part in a run its stake answers for it
	later := ctx.WithBlockHeight(r.Height)
	if err := k.release(later); err != nil || around.paid[owner] != 10 {
		t.Errorf("its stake left: %v, %v", around.paid, err)
	}
	around.in[machine] = false
	later = ctx.WithBlockHeight(r.Height + coinstakes.Postponed)
	if err := k.release(later); err != nil || around.paid[owner] != 2_000_007 {
		t.Errorf("its stake did not leave: %v, %v", around.paid, err)
	}
}

// Messages that an owner, a machine and a stranger may not send.
func TestRefusalsOfFleets(t *testing.T) {
	k, around, ctx, owner, machine := enrolled(t)
	does, key, fresh := served(k), keyed("b"), named(9)
	invite := func(change func(m *registrypb.MsgInvite)) error {
		m := &registrypb.MsgInvite{Owner: owner, Key: key.PubKey().Bytes(), Stake: 2_000_000, Until: 2000}
		if change != nil {
			change(m)
		}
		_, err := does.Invite(ctx, m)
		return err
	}
	if err := invite(nil); err != nil {
		t.Fatal(err)
	}
	if err := invite(func(m *registrypb.MsgInvite) { m.Owner = machine }); !errors.Is(err, fleet.ErrMachine) {
		t.Errorf("a machine invites: %v", err)
	}
	if err := invite(func(m *registrypb.MsgInvite) { m.Key = m.Key[1:] }); !errors.Is(err, fleet.ErrInvitation) {
		t.Errorf("a short key: %v", err)
	}
	if err := invite(nil); !errors.Is(err, fleet.ErrInvitation) {
		t.Errorf("a key that was used in an open invitation: %v", err)
	}
	enrol := func(m *registrypb.MsgEnrol) error { _, err := does.Enrol(ctx, m); return err }
	for name, m := range map[string]*registrypb.MsgEnrol{
		"the owner": admission(ctx, key, owner),
		"a machine": admission(ctx, key, machine),
		"another's": {Sender: fresh, Key: key.PubKey().Bytes(), Owner: owner,
			Signature: admission(ctx, key, machine).Signature},
		"another chain's": {Sender: fresh, Key: key.PubKey().Bytes(), Owner: owner,
			Signature: admission(ctx.WithChainID("x"), key, fresh).Signature},
		"another owner's": admissionTo(ctx, key, fresh, named(7)),
		"no invitation":   admission(ctx, keyed("c"), fresh),
		"no address":      {Sender: "x", Key: key.PubKey().Bytes(), Signature: make([]byte, 64), Owner: owner},
	} {
		if err := enrol(m); !errors.Is(err, fleet.ErrInvitation) {
			t.Errorf("%s enrols: %v", name, err)
		}
	}
	// a stranger that sees the key of an invitation invites with it, first
	copied := keyed("e")
	for _, from := range []string{named(5), owner} {
		if err := invite(func(m *registrypb.MsgInvite) { m.Owner, m.Key = from, copied.PubKey().Bytes() }); err != nil {
			t.Errorf("the key that another copied: %v", err)
		}
	}
	if err := enrol(admission(ctx, copied, named(11))); err != nil {
		t.Errorf("an invitation whose key another copied: %v", err)
	}
	if err := k.Fleets.Claim(ctx, admission(ctx, key, fresh)); err != nil {
		t.Fatal(err)
	}
	if err := enrol(admission(ctx, key, named(8))); !errors.Is(err, fleet.ErrInvitation) {
		t.Errorf("an invitation that another began to use: %v", err)
	}
	if err := enrol(admission(ctx, key, fresh)); err != nil {
		t.Errorf("the first that used it: %v", err)
	}
	// an invitation that an account began to use keeps its stake for a while, and admits it no more
	begun := keyed("d")
	if _, err := does.Invite(ctx, &registrypb.MsgInvite{Owner: owner, Key: begun.PubKey().Bytes(), Stake: 2_000_000,
		Until: 2000}); err != nil {
		t.Fatal(err)
	}
	if err := k.Fleets.Claim(ctx, admission(ctx, begun, named(10))); err != nil {
		t.Fatal(err)
	}
	paid := around.paid[owner]
	place := sdk.AccAddress(fleet.Place(owner, begun.PubKey().Bytes())).String()
	if r, err := does.Revoke(ctx, &registrypb.MsgRevoke{Owner: owner, Machine: place}); err != nil ||
		r.Height <= ctx.BlockHeight() || around.paid[owner] != paid {
		t.Errorf("taken back: %v, %v", r, err)
	}
	if err := enrol(admission(ctx, begun, named(10))); !errors.Is(err, fleet.ErrInvitation) {
		t.Errorf("an invitation that was taken back: %v", err)
	}
	stranger := named(5)
	for name, err := range map[string]error{
		"changes":        second(does.ChangeMachine(ctx, &registrypb.MsgChangeMachine{Owner: stranger, Machine: machine})),
		"revokes":        second(does.Revoke(ctx, &registrypb.MsgRevoke{Owner: stranger, Machine: machine})),
		"revokes itself": second(does.Revoke(ctx, &registrypb.MsgRevoke{Owner: machine, Machine: machine})),
		"none":           second(does.Revoke(ctx, &registrypb.MsgRevoke{Owner: owner, Machine: stranger})),
	} {
		if !errors.Is(err, fleet.ErrNotOwner) {
			t.Errorf("a stranger %s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"unstakes": second(does.Unstake(ctx, &registrypb.MsgUnstake{Sender: machine, Amount: 1})),
		"names a payee": second(does.SetPayee(ctx, &registrypb.MsgSetPayee{Sender: machine, Participant: machine,
			Payee: stranger})),
		"joins a pool": second(does.Register(ctx, &registrypb.MsgRegister{Sender: machine, PeerId: "p", Pool: stranger})),
	} {
		if err == nil {
			t.Errorf("a machine %s", name)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The checks of a measurement are drawn from other owners than that of the machine, and each from another.
func TestAFleetChecksNoneOfItsMeasurements(t *testing.T) {
	k, _, ctx, owner, machine := enrolled(t)
	add := func(i int, owner string) string {
		p := registry.Participant{ID: named(i), Roles: []crew.Role{crew.Verifier}, Stake: 50_000_000,
			Machine: registry.Machine{Owner: owner}}
		if err := k.put(ctx, p); err != nil {
			t.Fatal(err)
		}
		return p.ID
	}
	for i := range 5 {
		add(20+i, owner)
	}
	other := []string{add(30, named(40)), add(31, named(40))}
	for i := range 20 {
		seed, _ := k.beacon.At(ctx, int64(i))
		ids, err := measuring{k}.checkers(ctx, machine)(seed, 2, nil)
		if err != nil || len(ids) > 1 || len(ids) == 1 && ids[0] != other[0] && ids[0] != other[1] {
			t.Fatalf("drawn: %v, %v", ids, err)
		}
	}
}

// An export holds the fleets; a genesis of a chain that had none is read.
func TestGenesisOfFleets(t *testing.T) {
	k, _, ctx, owner, machine := enrolled(t)
	state := map[string]*bytes.Buffer{}
	m := adapter.Module{State: k.Schema}
	if err := m.ExportGenesis(ctx, func(field string) (io.WriteCloser, error) {
		state[field] = new(bytes.Buffer)
		return closing{state[field]}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(state["fleets"].Bytes()) || !bytes.Contains(state["fleets"].Bytes(), []byte(machine)) {
		t.Fatalf("exported: %s", state["fleets"])
	}
	for _, with := range []bool{true, false} {
		next, _, fresh := places(t, 4)
		if err := (adapter.Module{State: next.Schema}).InitGenesis(fresh, func(field string) (io.ReadCloser, error) {
			if field == "fleets" && !with {
				return nil, nil
			}
			return io.NopCloser(bytes.NewReader(state[field].Bytes())), nil
		}); err != nil {
			t.Fatal(err)
		}
		p, err := next.Get(fresh, machine)
		owns, failed := next.Fleets.Owns(fresh, owner)
		if err != nil || failed != nil || p.Machine.Owner != owner || owns != with {
			t.Errorf("imported: %+v, %v, %v, %v", p, owns, err, failed)
		}
	}
}

type closing struct{ io.Writer }

func (closing) Close() error { return nil }

// An enrolment without a signature of the invitation is refused.
func FuzzEnrol(f *testing.F) {
	f.Add([]byte("key"), []byte("signature"), "sender")
	f.Add(keyed("a").PubKey().Bytes(), make([]byte, 64), named(3))
	f.Fuzz(func(t *testing.T, key, signature []byte, sender string) {
		k, _, ctx := places(t, 1)
		open := keyed("a")
		if _, err := served(k).Invite(ctx, &registrypb.MsgInvite{Owner: named(1), Key: open.PubKey().Bytes(),
			Stake: 2_000_000, Until: 2000}); err != nil {
			t.Fatal(err)
		}
		if _, err := served(k).Enrol(ctx, &registrypb.MsgEnrol{Sender: sender, Key: key,
			Signature: signature, Owner: named(1)}); err == nil {
			t.Fatalf("%x admits %q by %x", key, sender, signature)
		}
	})
}

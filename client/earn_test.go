package client_test

import (
	"errors"
	"testing"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/earning"
	"github.com/starling-network/starling/protocol/run/crew"
)

// On a chain whose validator asks for the price of gas, an account that never had coins registers without a stake,
// offers its work and has its machine measured, and pays nothing. It has no more free transactions than a newcomer
// with a stake, and then one in a while.
func TestAnAccountWithoutCoinsJoins(t *testing.T) {
	t.Parallel()
	n := &network{t: t, ctx: t.Context(), config: chain.Config{
		Home: t.TempDir(), ChainID: "test", BlockTime: 50 * time.Millisecond, Log: t.Output(), GasPrice: chain.Governed,
		Accounts: []chain.Funded{{Address: key("friend").Address(), Amount: funds}},
	}}
	n.open("friend", "stranger", "spammer", "cold")
	t.Cleanup(func() { n.validator.Stop() })
	stranger, spammer := n.clients["stranger"], n.clients["spammer"]

	self := registry.Participant{Roles: []crew.Role{crew.Worker}, PeerID: "peer", Earning: true,
		Payee: registry.Payee{ID: key("cold").Address()}}
	offer := market.Offer{Role: crew.Worker, Price: 10, Slots: 1}
	n.must(stranger.Registry.Enlist(n.ctx, self, offer))
	p, err := stranger.Registry.Participant(n.ctx, stranger.Address())
	n.must(err)
	if !p.Earning || p.Stake != 0 || p.Payee.ID != key("cold").Address() {
		t.Errorf("it registered as %+v", p)
	}
	n.must(stranger.Registry.AskMeasure(n.ctx, 1))
	refused := 0
	for i := range app.FreeTransactions {
		err := stranger.Market.Offer(n.ctx, crew.Worker, uint64(11+i), 1)
		if e, ok := errors.AsType[*transaction.Error](err); ok && err != nil {
			refused++
			t.Logf("transaction %d: %v", i+2, e)
		} else {
			n.must(err)
		}
	}
	if refused == 0 || refused > 3 {
		t.Errorf("%d of %d transactions after the first two are refused", refused, app.FreeTransactions)
	}
	blocks, err := stranger.Blocks(n.ctx)
	n.must(err)
	for range registry.DefaultParams().BeatBlocks {
		<-blocks
	}
	n.must(stranger.Registry.Enlist(n.ctx, self)) // another start says where it is

	// Without a proof there is no account.
	wrong := &registrypb.MsgRegister{Sender: spammer.Address(), PeerId: "peer", Earns: true, ProofHeight: 1,
		Roles: []registrypb.Role{registrypb.Role_ROLE_WORKER}}
	if _, err := spammer.Submit(n.ctx, wrong); err == nil {
		t.Error("an account begins without a proof")
	}
	if _, _, err := spammer.Sequence(n.ctx); !errors.Is(err, client.ErrNoAccount) {
		t.Errorf("it exists: %v", err)
	}
	// An account that got coins before it registers has an ordinary number, and registers all the same.
	_, err = n.clients["friend"].Coins.Send(n.ctx, spammer.Address(), coin.Coin{}, 1, "")
	n.must(err)
	n.must(spammer.Registry.Enlist(n.ctx, registry.Participant{Roles: []crew.Role{crew.Worker}, PeerID: "peer",
		Earning: true}, offer))
}

// A proof serves one free transaction, also if that fails in its block, and one of few messages.
func TestAProofServesOneFreeTransaction(t *testing.T) {
	t.Parallel()
	n := &network{t: t, ctx: t.Context(), config: chain.Config{
		Home: t.TempDir(), ChainID: "test", BlockTime: 50 * time.Millisecond, Log: t.Output(), GasPrice: chain.Governed,
		Accounts: []chain.Funded{{Address: key("friend").Address(), Amount: funds}},
	}}
	n.open("friend", "spammer")
	t.Cleanup(func() { n.validator.Stop() })
	s := n.clients["spammer"]
	m := proven(n, s.Address())
	fails := &marketpb.MsgOffer{Sender: s.Address(), Price: 1, Slots: 1} // no role
	many := []sdk.Msg{m, fails, fails, fails, fails}
	if _, err := s.SubmitAsync(n.ctx, many...); err == nil {
		t.Errorf("%d messages are free", len(many))
	}
	p, err := s.SubmitAsync(n.ctx, m, fails)
	n.must(err)
	if r, err := p.Wait(n.ctx); err == nil {
		t.Errorf("an offer without a role succeeds: %+v", r)
	}
	for range 3 {
		if _, err := s.SubmitAsync(n.ctx, m); err == nil {
			t.Error("the proof serves once more")
		}
	}
	m = proven(n, s.Address())
	_, err = s.Submit(n.ctx, m)
	n.must(err)
	if q, err := s.Registry.Participant(n.ctx, s.Address()); err != nil || !q.Earning {
		t.Errorf("with another proof: %+v, %v", q, err)
	}
}

// proven is the registration of an account without a stake, with a proof.
func proven(n *network, id string) *registrypb.MsgRegister {
	n.t.Helper()
	for {
		b, err := beaconpb.NewQueryClient(n.clients["friend"]).Beacon(n.ctx, &beaconpb.QueryBeaconRequest{})
		if err != nil { // the first blocks have none
			blocks, err := n.clients["friend"].Blocks(n.ctx)
			n.must(err)
			<-blocks
			continue
		}
		beacon, err := runpb.Digest(b.Value)
		n.must(err)
		m := &registrypb.MsgRegister{Sender: id, PeerId: "peer", Earns: true, ProofHeight: b.Height,
			Roles: []registrypb.Role{registrypb.Role_ROLE_WORKER}}
		for !earning.Proves(id, beacon, registry.DefaultEarning().Bits+1, m.Proof) {
			m.Proof++
		}
		return m
	}
}

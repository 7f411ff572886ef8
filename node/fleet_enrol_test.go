package node_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/fleet"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// A machine joins the fleet that its invitation names: not another one, and not by an invitation that was used.
func TestEnrol(t *testing.T) {
	t.Parallel()
	owner, thief := wallet.KeyFromSeed([32]byte{1}), wallet.KeyFromSeed([32]byte{2})
	v, err := chain.Start(t.Context(), chain.Config{Home: t.TempDir(), ChainID: "test", BlockTime: 50 * time.Millisecond,
		Log: t.Output(), GasPrice: chain.Governed, Accounts: []chain.Funded{{Address: owner.Address(), Amount: 100_000_000},
			{Address: thief.Address(), Amount: 100_000_000}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Stop() })
	connect := func(key *wallet.Key) *client.Client {
		c := client.New(v.Client(), key)
		t.Cleanup(c.Close)
		return c
	}
	add := func(key *wallet.Key) fleet.Invitation {
		t.Helper()
		c := connect(key)
		if err := c.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		made, err := fleet.Add(t.Context(), c, fleet.Offer{Machines: 1, Stake: 2_000_000, DailyFees: 1000, Valid: time.Hour,
			Network: "http://127.0.0.1:1"}, 50*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		return made[0]
	}
	enrol := func(seed byte, i fleet.Invitation) (*client.Client, error) {
		c := connect(wallet.KeyFromSeed([32]byte{seed}))
		return c, fleet.Enrol(t.Context(), c, i.String(), func(string) {}, registry.Participant{PeerID: "peer",
			Roles: []crew.Role{crew.Worker}}, market.Offer{Role: crew.Worker, Price: 1, Slots: 1})
	}
	right := add(owner)
	machine, err := enrol(3, right)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enrol(4, right); !errors.Is(err, fleet.ErrInvitation) || !strings.Contains(err.Error(), "was used") {
		t.Errorf("an invitation that was used: %v", err)
	}
	forged := add(thief)
	forged.Owner = owner.Address()
	if _, err := enrol(5, forged); !errors.Is(err, fleet.ErrInvitation) ||
		!strings.Contains(err.Error(), owner.Address()) {
		t.Errorf("an invitation of a thief in the name of an owner: %v", err)
	}
	other := add(owner)
	other.Chain = "another"
	if _, err := enrol(6, other); !errors.Is(err, fleet.ErrInvitation) {
		t.Errorf("an invitation of another chain: %v", err)
	}
	list, err := fleet.Machines(t.Context(), machine, owner.Address())
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, m := range list {
		want := fleet.Invited
		if m.ID == machine.Address() {
			want = fleet.Waiting
		}
		if m.State != want || m.Stake != 2_000_000 {
			t.Errorf("%+v, want %s", m, want)
		}
	}
}

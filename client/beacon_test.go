package client_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/x/beacon"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/internal/nowork"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/protocol/run/crew"
)

func TestBeaconOfEveryBlock(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	c := n.clients["consumer"]
	seen := map[canon.Digest]bool{}
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	blocks, err := c.Blocks(ctx)
	n.must(err)
	keys := n.validator.Keys()
	for b := range blocks {
		value, err := c.Ledger.Beacon(n.ctx, b.Height)
		n.must(err)
		if value.IsZero() || seen[value] {
			t.Errorf("block %d has the beacon %s", b.Height, value)
		}
		seen[value] = true
		if b.Height < 4 || b.Height > 8 { // from the ninth block on, the group of the validator signs
			if len(seen) >= 15 {
				return
			}
			continue
		}
		before, err := c.Ledger.Beacon(n.ctx, b.Height-2)
		n.must(err)
		last, err := c.Ledger.Beacon(n.ctx, b.Height-1)
		n.must(err)
		// The votes for the last block, each over the beacon of the block before it.
		alpha := beacon.Alpha("test", b.Height-1, before)
		beta, ok := beacon.Verify(keys.VRF[32:], alpha, beacon.Prove(keys.VRF, alpha))
		output := beacon.Output{Validator: keys.Consensus.PubKey().Address(), Beta: beta}
		if !ok || beacon.Combine("test", b.Height, last, []beacon.Output{output}) != value {
			t.Errorf("the beacon of block %d is not what the validator's output makes", b.Height)
		}
	}
}

// operator signs for the operator of a validator.
type operator struct{ identity.Keys }

func (o operator) PublicKey() []byte { return o.Operator.PubKey().Bytes() }

func (o operator) Sign(message []byte) ([]byte, error) { return o.Operator.Sign(message) }

func TestSetVRFKey(t *testing.T) {
	t.Parallel()
	n := start(t, "consumer")
	keys := n.validator.Keys()
	c := client.New(n.validator.Client(), operator{keys})
	defer c.Close()
	stranger := n.clients["consumer"]
	_, err := stranger.Submit(n.ctx, &beaconpb.MsgSetVRFKey{Sender: stranger.Address(), PublicKey: keys.VRF[32:]})
	n.refused(err, beacon.ErrNotValidator, "beacon", 2)
	_, err = c.Submit(n.ctx, &beaconpb.MsgSetVRFKey{Sender: c.Address(), PublicKey: []byte("short")})
	n.refused(err, beacon.ErrKey, "beacon", 3)

	// Under a key that it does not have, the only validator adds nothing: there are blocks, but no beacon. The votes for
	// the second block after the message are the first under the new key, and make the beacon of the block after them.
	for _, public := range [][]byte{make([]byte, 32), keys.VRF[32:]} {
		r, err := c.Submit(n.ctx, &beaconpb.MsgSetVRFKey{Sender: c.Address(), PublicKey: public})
		n.must(err)
		for n.height(c) < r.Height+3 {
		}
		before, err := c.Ledger.Beacon(n.ctx, r.Height+2)
		n.must(err)
		after, err := c.Ledger.Beacon(n.ctx, r.Height+3)
		n.must(err)
		if own := bytes.Equal(public, keys.VRF[32:]); before.IsZero() != own || after.IsZero() == own {
			t.Errorf("after the key %x: beacons %s and %s", public[:4], before, after)
		}
	}
}

// TestTwoValidators runs a job over two validators that both have to agree on every block. Each checks the other's part
// of every beacon before it counts the vote.
func TestTwoValidators(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	n := &network{t: t, ctx: ctx, clients: map[string]*client.Client{}}
	names := []string{"consumer", "w0", "w1", "v0"}
	var accounts []chain.Funded
	for _, name := range names {
		accounts = append(accounts, chain.Funded{Address: key(name).Address(), Amount: funds})
	}
	seeds := [2]canon.Digest{canon.Sum("seed 0"), canon.Sum("seed 1")}
	keys := []identity.Keys{identity.NewKeys(seeds[0]), identity.NewKeys(seeds[1])}
	listen := []string{porttest.Address(t), porttest.Address(t)}
	doc, err := chain.Genesis("test", time.Now(), keys, accounts)
	n.must(err)
	for i := range keys {
		v, err := chain.Start(ctx, chain.Config{
			Home: t.TempDir(), Referee: nowork.Open, BlockTime: 50 * time.Millisecond, Log: t.Output(), Seed: seeds[i][:],
			Genesis: doc,
			Listen:  listen[i], Peers: []string{keys[1-i].NodeID() + "@" + listen[1-i]},
		})
		n.must(err)
		defer v.Stop()
		n.validator = v
		for j, name := range names {
			if j%2 == i {
				n.clients[name] = client.New(v.Client(), key(name))
				defer n.clients[name].Close()
			}
		}
	}
	for _, c := range n.clients {
		n.height(c)
	}
	n.enlist("w0", crew.Worker, 1)
	n.enlist("w1", crew.Worker, 1)
	n.enlist("v0", crew.Verifier, 1)
	n.must(n.clients["consumer"].Market.Order(ctx, order("job"), nil))
	n.finish(names[1:]...)
	n.outputs(2)
}

// outputs checks how many validators have added to the beacon of the last block.
func (n *network) outputs(want int) {
	n.t.Helper()
	r, err := n.validator.Client().BlockResults(n.ctx, nil)
	n.must(err)
	for _, e := range r.FinalizeBlockEvents {
		for _, a := range e.Attributes {
			if e.Type == "starling.beacon.v1.EventBeacon" && a.Key == "outputs" {
				if a.Value != fmt.Sprint(want) {
					n.t.Errorf("%s validators are in the beacon of block %d, want %d", a.Value, r.Height, want)
				}
				return
			}
		}
	}
	n.t.Errorf("block %d has no beacon", r.Height)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/retire"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	protocol "github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
)

// releases makes stakes leave after 20 blocks, by a proposal.
func (l *ledger) releases() {
	l.t.Helper()
	draft := l.says("", "network", "gov", "params", "registry", "--network", l.network)
	file := filepath.Join(l.dir, "stakes.json")
	draft = strings.Replace(draft, `"unstake_blocks": "20000"`, `"unstake_blocks": "20"`, 1)
	l.must(os.WriteFile(file, []byte(draft), 0o600))
	l.says("1\n", l.as("consumer", "network", "gov", "propose", file, "--deposit", "10", "-o", "name")...)
	l.says("voted yes", l.as("validator", "network", "gov", "vote", "1", "yes")...)
	l.blocks(func(ctx context.Context) bool {
		p, err := l.clients["consumer"].Registry.Params(ctx)
		l.must(err)
		return p.UnstakeBlocks == 20
	})
}

// mostRest is more than is kept for the fee of a transfer, in uzen.
const mostRest = 20_000

// starling worker retire drains the process of a worker, ends its tier, takes its stake back and sends its coins.
func TestRetireDrainsAProcess(t *testing.T) {
	l := startLedger(t, "consumer", "worker", "owner")
	l.releases()
	c := command(t, l.as("worker", "worker", "up", "--stake", "11000000", "--measure=false", "--tier", "bronze",
		"--memory", "4096", "--upload", "5000")...)
	says(t, news(t, c), "offers its work")
	l.refuses(2, "is the account itself", l.as("worker", "worker", "retire", "--to", l.clients["worker"].Address())...)
	l.refuses(2, "ADDRESS_INVALID", l.as("worker", "worker", "retire", "--to", "starling1qq")...)
	var part session.Account
	l.must(json.Unmarshal([]byte(l.says("", l.as("worker", "account", "stake", "remove", "0.000001", "-o",
		"json")...)), &part))
	if part.LeavesIn <= 0 || part.LeavesIn > 600 { // of 20 blocks; the first block has the time of the genesis
		t.Errorf("%+v", part)
	}
	r := l.retires("worker")
	if err := c.Wait(); err != nil {
		t.Errorf("the process that drained: %v", err)
	}
	if !r.Drained || len(r.Left) > 0 || r.Unstaked != 11_000_000 || r.Hash == "" ||
		r.Balance > mostRest || r.Sent != 100_000_000-r.Balance {
		t.Errorf("%+v", r)
	}
	if b, err := l.clients["owner"].Coins.Balance(t.Context(), r.To); err != nil || b != 100_000_000+r.Sent {
		t.Errorf("the owner has %d uzen, %v", b, err)
	}
	p, err := l.clients["worker"].Registry.Participant(t.Context(), r.Account)
	if err != nil || p.Stake != 0 || p.Tier != registry.NoTier {
		t.Errorf("%+v, %v", p, err)
	}
	if r := l.retires("worker"); r.Drained || r.Unstaked != 0 || r.Sent > mostRest { // nothing is left to do
		t.Errorf("once more: %+v", r)
	}
}

// retires runs the command, and gives the coins to the owner.
func (l *ledger) retires(name string) (r retire.Retired) {
	l.t.Helper()
	l.must(json.Unmarshal([]byte(l.says("", l.as(name, "worker", "retire", "--to", l.clients["owner"].Address(), "-o",
		"json")...)), &r))
	return r
}

// An account whose process has ended leaves its runs, so that others do its units.
func TestRetireHandsBackWork(t *testing.T) {
	l := startLedger(t, "consumer", "worker", "other", "owner")
	l.releases()
	ctx, c := t.Context(), l.clients["consumer"]
	for _, name := range []string{"worker", "other"} {
		w := l.clients[name]
		l.must(w.Registry.Enlist(ctx, registry.Participant{Roles: []crew.Role{crew.Worker}, PeerID: name,
			Stake: 10_000_000}, market.Offer{Role: crew.Worker, Price: 700, Slots: 1}))
	}
	d := canon.Sum("work")
	l.must(c.Market.Order(ctx, market.Order{
		ID: "job", Budget: 10_000_000, PriceCap: 1000, Workers: market.Workers{Min: 2, Target: 2, Max: 2},
		Terms: terms.Terms{
			Job: "job", Spec: d, SpecCID: "spec", Genesis: terms.Checkpoint{Root: d, CID: "genesis"}, Rounds: 1, Units: 2,
			Segments: 2, UnitFlops: 1e15,
			Deadlines: terms.Deadlines{Train: 5000, Audit: 500, Attest: 500, Challenge: 1}, Window: 1,
		},
	}, nil))
	var s protocol.State
	units := func(name string) int { return len(s.Work(l.clients[name].Address())) }
	follow := func(until func() bool) {
		l.blocks(func(ctx context.Context) (ok bool) {
			var err error
			s, err = c.Training.Run(ctx, "job")
			return err == nil && until()
		})
	}
	follow(func() bool { return units("worker") == 1 && units("other") == 1 })
	r := l.retires("worker")
	if r.Drained || fmt.Sprint(r.Left) != "[job]" || r.Unstaked != 10_000_000 || r.Balance > mostRest ||
		r.Sent != 100_000_000-r.Balance {
		t.Errorf("%+v", r)
	}
	follow(func() bool { return units("other") == 2 })
}

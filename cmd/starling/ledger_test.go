package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/gov"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/internal/nowork"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// ledger is a chain of one validator in this process, whose governance decides within seconds, and folders of its
// accounts.
type ledger struct {
	t       *testing.T
	dir     string
	network string
	clients map[string]*client.Client
	stop    func() // ends the chain
}

func startLedger(t *testing.T, names ...string) *ledger {
	t.Helper()
	l := &ledger{t: t, dir: t.TempDir(), clients: map[string]*client.Client{}}
	keys, err := identity.MakeKeys(l.home("validator"))
	l.must(err)
	var accounts []chain.Funded
	signers := map[string]*wallet.Key{}
	for _, name := range names {
		h, _, err := home.Open(l.home(name))
		l.must(err)
		signers[name] = h.Account()
		accounts = append(accounts, chain.Funded{Address: h.Account().Address(), Amount: 100_000_000})
	}
	doc, err := chain.Genesis("ledger", time.Now().Add(-24*time.Hour), []identity.Keys{keys}, accounts)
	l.must(err)
	for before, after := range map[string]string{`"voting_period":"172800s"`: `"voting_period":"2s"`,
		`"expedited_voting_period":"86400s"`: `"expedited_voting_period":"1s"`} {
		if !bytes.Contains(doc.AppState, []byte(before)) {
			t.Fatalf("the genesis has no %s", before)
		}
		doc.AppState = bytes.Replace(doc.AppState, []byte(before), []byte(after), 1)
	}
	rpc := porttest.Address(t)
	v, err := chain.Start(t.Context(),
		chain.Config{Home: l.home("validator"), Referee: nowork.Open, ChainID: "ledger", BlockTime: 50 * time.Millisecond,
			Genesis: doc, RPC: rpc, Log: t.Output()})
	l.must(err)
	l.stop = sync.OnceFunc(v.Stop)
	t.Cleanup(l.stop)
	l.network = "http://" + rpc
	for name, signer := range signers {
		c := client.New(v.Client(), signer)
		t.Cleanup(c.Close)
		l.clients[name] = c
	}
	return l
}

func (l *ledger) home(name string) string { return filepath.Join(l.dir, name) }

func (l *ledger) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// says runs a command, which must succeed, and checks what it prints.
func (l *ledger) says(want string, args ...string) string {
	l.t.Helper()
	code, stdout, stderr := answer(l.t, args...)
	if code != 0 || !strings.Contains(stdout, want) {
		l.t.Fatalf("%v: exit %d, wanted %q\n%s%s", args, code, want, stdout, stderr)
	}
	return stdout
}

// refuses runs a command, which must fail.
func (l *ledger) refuses(code int, want string, args ...string) {
	l.t.Helper()
	if got, stdout, stderr := answer(l.t, args...); got != code || !strings.Contains(stderr, want) {
		l.t.Errorf("%v: exit %d, wanted %d and %q\n%s%s", args, got, code, want, stdout, stderr)
	}
}

// blocks follows the chain until something holds.
func (l *ledger) blocks(holds func(ctx context.Context) bool) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), 2*time.Minute)
	defer cancel()
	blocks, err := l.clients["consumer"].Blocks(ctx)
	l.must(err)
	for range blocks {
		if holds(ctx) {
			return
		}
	}
	l.t.Fatal("the blocks ended")
}

// as adds the folder of an account and the network to a command.
func (l *ledger) as(name string, args ...string) []string {
	return append(args, "--home", l.home(name), "--network", l.network)
}

// Commands exist for the messages of the chain: users change its parameters, offer by the hour and for others, own
// models, and see the reason of each payment.
func TestLedgerCommands(t *testing.T) {
	l := startLedger(t, "consumer", "worker", "pool")
	l.governs()
	l.offers()
	l.trains()
	l.owns()
	l.explains()
	l.lists()
	l.proves()
}

// governs makes epochs of ten blocks, by a proposal from a file.
func (l *ledger) governs() {
	on := []string{"--network", l.network}
	draft := l.says(`"epoch_blocks": "3600"`, append(on, "network", "gov", "params", "registry")...)
	for _, module := range gov.Governed() {
		message := "MsgUpdateParams"
		if module == "attestation" { // its parameters are roots
			message = "MsgPinRoots"
		}
		l.says(message, append(on, "network", "gov", "params", module)...)
	}
	l.refuses(2, "there is no module", append(on, "network", "gov", "params", "weather")...)
	file := filepath.Join(l.dir, "epochs.json")
	draft = strings.NewReplacer(`"epoch_blocks": "3600"`, `"epoch_blocks": "10"`, `"beat_blocks": "15"`,
		`"beat_blocks": "5"`).Replace(draft)
	l.must(os.WriteFile(file, []byte(draft), 0o600))
	l.says("gas", l.as("consumer", "network", "gov", "propose", file, "--dry-run")...)
	l.refuses(3, "NOT_FOUND", append(on, "network", "gov", "show", "1")...) // nothing was proposed
	l.says("1\n", l.as("consumer", "network", "gov", "propose", file, "--deposit", "4", "-o", "name")...)
	l.says("deposit", append(on, "network", "gov", "list")...)
	l.refuses(2, "unknown flag: --dry-run", l.as("worker", "network", "gov", "deposit", "1", "6", "--dry-run")...)
	l.says("are deposited", l.as("worker", "network", "gov", "deposit", "1", "6")...)
	l.says("the network would take it", l.as("validator", "network", "gov", "vote", "1", "yes", "--dry-run")...)
	l.says("voted yes", l.as("validator", "network", "gov", "vote", "1", "yes")...)
	l.says(`"yes":"100000000"`, append(on, "network", "gov", "show", "1", "-o", "json")...)
	l.refuses(2, "no vote", l.as("validator", "network", "gov", "vote", "1", "perhaps")...)
	l.must(os.WriteFile(file, []byte(strings.ReplaceAll(draft, gov.Governance(), l.clients["pool"].Address())), 0o600))
	l.refuses(2, "PROPOSAL_INVALID", l.as("consumer", "network", "gov", "propose", file)...)
	l.blocks(func(ctx context.Context) bool {
		p, err := l.clients["consumer"].Registry.Params(ctx)
		l.must(err)
		return p.EpochBlocks == 10
	})
	l.says("passed", append(on, "network", "gov", "show", "1")...)
}

func (l *ledger) offers() {
	w := l.clients["worker"]
	l.must(w.Registry.Register(l.t.Context(), registry.Participant{
		Roles: []crew.Role{crew.Worker}, PeerID: "peer", Stake: 10_000_000, Tier: registry.Bronze,
		Pool:     l.clients["pool"].Address(),
		Hardware: registry.Hardware{Memory: 4096, Upload: 5000},
	}))
	l.refuses(1, "measure", l.as("worker", "market", "offer", "--hourly", "0.4")...)
	l.says("0.0007", l.as("worker", "market", "offer", "--price", "700")...)
	l.refuses(2, "one of them is the price", l.as("worker", "market", "offer", "--price", "700", "--hourly", "1")...)
	l.says("nothing of it can be matched", l.as("worker", "market", "offer", "--slots", "0")...)
	l.must(l.clients["pool"].Registry.Register(l.t.Context(),
		registry.Participant{Roles: []crew.Role{crew.Worker}, PeerID: "pool", Stake: 1_000_000}))
	l.says(w.Address(), l.as("pool", "market", "offer", "--pool", "--price", "300", "--slots", "2", "-o", "name")...)
	l.says("0.0003", "market", "offers", "--network", l.network)
}

// trains orders a job that grants shares, and lets the worker do it.
func (l *ledger) trains() {
	ctx, c, w := l.t.Context(), l.clients["consumer"], l.clients["worker"]
	d := canon.Sum("work")
	l.must(c.Market.Order(ctx, market.Order{
		ID: "job", Budget: 10_000_000, PriceCap: 1000, Workers: market.Workers{Min: 1, Target: 1, Max: 1}, SharesPPM: 600_000,
		Terms: terms.Terms{
			Job: "job", Spec: d, SpecCID: "spec", Genesis: terms.Checkpoint{Root: d, CID: "genesis"}, Rounds: 1, Units: 1,
			Segments: 2, UnitFlops: 1e15,
			Deadlines: terms.Deadlines{Train: 500, Audit: 500, Attest: 500, Challenge: 1}, Window: 1,
		},
	}, nil))
	l.blocks(func(ctx context.Context) bool {
		s, err := c.Training.Run(ctx, "job")
		switch {
		case err != nil:
			return false
		case len(s.Work(w.Address())) > 0:
			u := s.Work(w.Address())[0]
			l.must(w.Work.Commit(ctx, "job", u.ID(s.Round),
				work.Commitment{Segments: []canon.Digest{d, d, d}[:s.Terms.Segments+1], Update: d, UpdateCID: "update",
					Bytes: 1, HiddenRoots: d}))
		case s.Phase == progress.Attest && len(s.Votes) == 0:
			l.must(w.Work.Attest(ctx, s.Attestation(terms.Checkpoint{Round: s.Round + 1, Root: d, CID: "checkpoint"})))
		}
		return s.Phase == progress.Done
	})
}

func (l *ledger) owns() {
	on := []string{"--network", l.network}
	worker, consumer := l.clients["worker"].Address(), l.clients["consumer"].Address()
	var o ownedModel
	l.must(json.Unmarshal([]byte(l.says(worker, append(on, "model", "shares", "job", "-o", "json")...)), &o))
	if len(o.Holders) != 2 || o.Holders[0].Account != worker || o.Holders[0].Shares != 600_000 ||
		o.Holders[1].Account != consumer || o.Holders[1].Shares != 400_000 {
		l.t.Fatalf("%+v", o)
	}
	l.refuses(3, "no such thing: reward: no account holds shares of such a model\n",
		append(on, "model", "shares", "other")...)
	l.says("are paid", l.as("consumer", "model", "pay", "job", "3")...)
	l.says("100000 shares", l.as("worker", "model", "transfer", "job", "100000", consumer)...)
	l.refuses(2, "no number of shares", l.as("worker", "model", "transfer", "job", "many", consumer)...)
	l.says("are paid", l.as("consumer", "model", "pay", "job", "2")...)
	l.says("2.80 ZEN", append(on, "model", "shares", "job")...)
	l.says("2.80 ZEN are claimed", l.as("worker", "model", "claim", "job")...)
	l.says("nothing is due", l.as("worker", "model", "claim", "job")...)
}

func (l *ledger) explains() {
	on := []string{"--network", l.network}
	worker := l.clients["worker"].Address()
	l.says("1.80 ZEN from before the number of shares last changed + 500000 shares x 0.000002 ZEN that each earned "+
		"since = 2.80 ZEN", append(on, "explain", "0", "--job", "model/job")...)
	l.says("floating-point operations x 0.0003 ZEN", append(on, "explain", "0", "--job", "job")...)
	var epoch string
	l.blocks(func(ctx context.Context) bool { // until one that began with the worker's commitment is over
		all, err := l.clients["worker"].Reward.Rewarded(ctx, worker)
		l.must(err)
		for _, r := range all {
			if r.OfEpoch() && r.Reason == "downtime" {
				epoch = r.Job
			}
		}
		return epoch != ""
	})
	l.says("it was there less than its tier promises", append(on, "explain", worker[:14], "--job", epoch)...)
	l.says("% of the stake at the time, to the community pool", append(on, "explain", "--job", epoch)...)
	l.says("of the revenue of", append(on, "worker", "earnings", "--account", worker)...)
	l.refuses(3, "NO_SUCH_RECEIPT", append(on, "explain", "999", "--job", epoch)...)
}

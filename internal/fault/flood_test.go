package fault

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/protocol/market"
)

// TestFloods runs a job while unregistered processes flood the interfaces of all validators, send transactions at the
// default gas price (which the transactions of the job pay as well), and hold the upload slots of all workers, as a
// registered peer and as unknown peers. Blocks are made, the job ends with the model that it determines, and no
// account loses stake. A member whose memory is too small for the job leaves it at no cost, and the consumer reaches
// the chain through a full node alone.
func TestFloods(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, false, nil)
	n.ask = n.fullNode()
	n.newcomer.start(0) // gives the slow readers an identity that members give blobs to
	n.newcomer.ready()
	n.newcomer.signal(syscall.SIGTERM)
	n.newcomer.end()
	tiny := &process{t: t, name: "tiny"}
	n.all = append(n.all, tiny)
	tiny.args = []string{"worker", "up", "--home", filepath.Join(n.dir, "tiny"), "--network", n.rpc[1], "--threads", "1",
		"--memory", "1"}
	tiny.start(0)
	said := tiny.says(`starling account send (starling1\w+) ([0-9.]+)`)
	send := exec.Command(program, "account", "send", said[1], said[2], "--network", n.ask, "--home",
		filepath.Join(n.dir, "consumer"))
	if out, err := send.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", send, err, out)
	}
	tiny.ready()
	n.set = []string{"--set", "strategy.workers.target=5", "--set", "training.global_batch_size=10"}

	ctx, end := context.WithCancel(t.Context())
	hostile := n.attack()
	longest := n.longestBlock(ctx)
	begun := time.Now()
	n.judge("floods", 5, nil)
	took := time.Since(begun)
	end()
	hostile.end()
	t.Logf("spammers have %d transactions in blocks, for %d uzen", hostile.sent, hostile.paid)
	if hostile.sent < 100 || hostile.paid < hostile.sent*leastFee {
		t.Errorf("%d transactions for %d uzen: wanted 100, each for %d", hostile.sent, hostile.paid, leastFee)
	}
	tiny.says(`MEMORY_TOO_SMALL: left `)
	t.Logf("%.0f s, %d answers to the flood, %d uploads held, the longest block took %v", took.Seconds(),
		hostile.answers, hostile.uploads, time.Duration(longest.Load()))
	if hostile.answers < 100 || hostile.uploads == 0 {
		t.Errorf("%d answers and %d uploads are no flood", hostile.answers, hostile.uploads)
	}
	if d := time.Duration(longest.Load()); d > 20*blockTime {
		t.Errorf("a block took %v", d)
	}
}

// fullNode starts a full node, and returns its HTTP interface once it follows the chain.
func (n *network) fullNode() string {
	n.t.Helper()
	p := &process{t: n.t, name: "full"}
	n.all = append(n.all, p)
	dir := filepath.Join(n.dir, p.name)
	join := exec.Command(program, "validator", "join", "--home", dir, "--full", "--network", n.rpc[0], "--port",
		fmt.Sprint(porttest.Ports(n.t, 10*validators)),
		"--block-time", blockTime.String(), "--snapshot-every", "0", "-o", "json")
	out, err := join.Output()
	var made struct {
		RPC, Operator, Phrase string
	}
	if err != nil || json.Unmarshal(out, &made) != nil || made.Operator+made.Phrase != "" {
		n.t.Fatalf("%s: %v\n%s", join, err, out)
	}
	p.args = []string{"validator", "up", "--home", dir}
	p.start(0)
	p.says(`full node of`)
	if seeds, err := filepath.Glob(filepath.Join(dir, "config", "validator.seed*")); err != nil || len(seeds) > 0 {
		n.t.Errorf("a full node has keys of a validator: %v, %v", seeds, err)
	}
	n.blocks("the full node to follow", func(int64) bool {
		said, err := exec.Command(program, "network", "status", "--network", made.RPC, "-o", "json").CombinedOutput()
		var s struct {
			Height     int64
			CatchingUp bool `json:"catching_up"`
			Validators []struct{}
		}
		return err == nil && json.Unmarshal(said, &s) == nil && s.Height > 0 && !s.CatchingUp &&
			len(s.Validators) == validators
	})
	return made.RPC
}

// leastFee is what a transaction of any kind pays at the default price of gas: it takes more than 40,000 units.
const leastFee = 40_000 * market.GasPrice / 1_000_000

// attackers are processes that attack the network from outside until end stops them.
type attackers struct {
	n                *network
	floods, holds    *process
	spammers         []*process
	coins            uint64 // of the spammers, in uzen, before they began
	sent, paid       uint64 // transactions of spammers in blocks, and their cost
	answers, uploads uint64
}

// attack starts one process that floods all validators, one that holds uploads of all workers with the identity of a
// registered participant, and one at every validator that sends transactions.
func (n *network) attack() *attackers {
	n.t.Helper()
	a := &attackers{n: n}
	a.floods = a.start("floods", strings.Join(n.rpc, ","), "")
	a.holds = a.start("holds", n.rpc[0], filepath.Join(n.dir, n.newcomer.name))
	for i, at := range n.rpc {
		a.spammers = append(a.spammers, a.start("spams", at, filepath.Join(n.dir, fmt.Sprintf("verifier-%d", 2+i))))
		a.coins += n.balance(n.account(a.spammers[i]))
	}
	return a
}

func (a *attackers) start(act, at, dir string) *process {
	a.n.t.Helper()
	p := &process{t: a.n.t, name: filepath.Base(dir)}
	a.n.all = append(a.n.all, p)
	p.args = []string{"dev", "stranger", "--act", act, "--network", at, "-o", "json"}
	if dir != "" {
		p.args = append(p.args, "--home", dir)
	}
	p.start(0)
	return p
}

// end stops the attacks, and sums what they did.
func (a *attackers) end() {
	a.n.t.Helper()
	for _, p := range append(a.spammers, a.floods, a.holds) {
		if !p.running() {
			a.n.t.Fatalf("%v ended with code %d:\n%s", p.args, p.code, p.tail(20))
		}
		p.signal(syscall.SIGTERM)
		p.end()
		var done struct{ Answers, Held uint64 }
		if err := json.Unmarshal(p.stdout.Bytes(), &done); err != nil || p.code != 0 {
			a.n.t.Fatalf("%v ended with code %d, %v:\n%s", p.args, p.code, err, p.tail(20))
		}
		a.answers, a.uploads = a.answers+done.Answers, a.uploads+done.Held
	}
	left := uint64(0)
	for _, p := range a.spammers {
		account := a.n.account(p)
		made, err := a.n.chain.Coins.Transactions(a.n.t.Context(), account)
		if err != nil {
			a.n.t.Fatal(err)
		}
		a.sent += made
		left += a.n.balance(account)
	}
	a.paid = a.coins - left
}

// balance is how many uzen an account has.
func (n *network) balance(account string) uint64 {
	n.t.Helper()
	has, err := n.chain.Coins.Balance(n.t.Context(), account)
	if err != nil {
		n.t.Fatal(err)
	}
	return has
}

// longestBlock measures the longest time between the arrival of two blocks, until the context ends.
func (n *network) longestBlock(ctx context.Context) *atomic.Int64 {
	n.t.Helper()
	longest := new(atomic.Int64)
	blocks, err := n.chain.Blocks(ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	go func() {
		last := time.Time{}
		for b := range blocks {
			if !last.IsZero() {
				longest.Store(max(longest.Load(), int64(b.Time.Sub(last))))
			}
			last = b.Time
		}
	}()
	return longest
}

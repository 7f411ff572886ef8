package server

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/server/spending"
	"github.com/starling-network/starling/protocol/coin"
)

// Jobs begin in their order, as the coins of the account allow: one whose budget comes back holds back those after it,
// one whose budget is more than all coins does not, and one that the network has needs none.
func TestWhichJobBegins(t *testing.T) {
	zen := func(n uint64) uint64 { return n * 1_000_000 }
	task := func(budget uint64, at stage, begun bool) *queuedJob {
		j := &job.Job{Spec: spec.Spec{Budget: spec.Budget{MaxCost: quantity.Amount(budget)}}}
		return &queuedJob{stage: at, begun: begun, job: j}
	}
	usdc := coin.Coin{Denom: "ibc/A", Symbol: "usdc", Exponent: 6}
	in := func(c coin.Coin, t *queuedJob) *queuedJob {
		t.asked.Coin = c
		return t
	}
	chain := client.NewWithSubmitter(nil, wallet.KeyFromSeed([32]byte{}), nil)
	for name, c := range map[string]struct {
		free  spending.Amounts
		begun []*queuedJob
		queue []*queuedJob
		want  int
		why   []string // of those that wait
	}{
		"enough": {spending.Amounts{"": zen(30)}, nil, []*queuedJob{task(zen(25), preparing, false)}, 0, nil},
		"fees":   {spending.Amounts{"": zen(25)}, nil, []*queuedJob{task(zen(25), preparing, false)}, -1, []string{"budget"}},
		"reserved": {spending.Amounts{"": zen(30)}, []*queuedJob{task(zen(20), ordering, true)},
			[]*queuedJob{task(zen(20), preparing, false)}, -1, []string{"budget"}},
		"ordered others": {spending.Amounts{"": zen(30)}, []*queuedJob{task(zen(20), ordered, true)},
			[]*queuedJob{task(zen(20), preparing, false)}, 0, nil},
		"holds back": {spending.Amounts{"": zen(10)}, []*queuedJob{task(zen(20), ordered, true)},
			[]*queuedJob{task(zen(25), preparing, false), task(zen(5), preparing, false)}, -1, []string{"budget", "queued"}},
		"never covered": {spending.Amounts{"": zen(10)}, nil,
			[]*queuedJob{task(zen(25), preparing, false), task(zen(5), preparing, false)}, 1, []string{"budget"}},
		"on the network": {nil, nil,
			[]*queuedJob{task(zen(25), preparing, false), task(zen(25), ordered, false)}, 1, []string{"budget"}},
		"another coin": {spending.Amounts{"": zen(1), "usdc": zen(25)}, nil,
			[]*queuedJob{in(usdc, task(zen(25), preparing, false))}, 0, nil},
		"no ZEN for fees": {spending.Amounts{"usdc": zen(25)}, nil,
			[]*queuedJob{in(usdc, task(zen(25), preparing, false))}, -1, []string{"budget"}},
		"reserved in its coin": {spending.Amounts{"": zen(30), "usdc": zen(30)},
			[]*queuedJob{in(usdc, task(zen(20), ordering, true))},
			[]*queuedJob{in(usdc, task(zen(20), preparing, false)), task(zen(20), preparing, false)}, 1, []string{"budget"}},
		"held back in its coin": {spending.Amounts{"": zen(30), "usdc": zen(10)},
			[]*queuedJob{in(usdc, task(zen(20), ordered, true))},
			[]*queuedJob{in(usdc, task(zen(25), preparing, false)), in(usdc, task(zen(5), preparing, false)),
				task(zen(5), preparing, false)}, 2, []string{"budget", "queued"}},
	} {
		l := &jobQueue{payer: &payer{Wallet: spending.Wallet{Chain: chain}}, tasks: map[string]*queuedJob{}, queue: c.queue}
		for i, x := range slices.Concat(c.begun, c.queue) {
			l.tasks[string(rune('a'+i))] = x
		}
		if got := l.covered(c.free); got != c.want {
			t.Errorf("%s: job %d begins, wanted %d", name, got, c.want)
		}
		var why []string
		for _, x := range c.queue {
			if x.why != nil {
				why = append(why, x.why.Code)
			}
		}
		if !slices.Equal(why, c.why) {
			t.Errorf("%s: those that wait say %q, wanted %q", name, why, c.why)
		}
	}
}

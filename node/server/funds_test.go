package server

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/account"
)

// Jobs begin in their order, as the coins of the account allow: one whose budget comes back holds back those after it,
// one whose budget is more than all coins does not, and one that the network has needs none.
func TestWhichJobBegins(t *testing.T) {
	zen := func(n uint64) uint64 { return n * 1_000_000 }
	task := func(budget uint64, at stage, begun bool) *queuedJob {
		j := &job.Job{Spec: spec.Spec{Budget: spec.Budget{MaxCost: quantity.Amount(budget)}}}
		return &queuedJob{stage: at, begun: begun, job: j}
	}
	chain := client.NewWithSubmitter(nil, wallet.KeyFromSeed([32]byte{}), nil)
	for name, c := range map[string]struct {
		free  uint64
		begun []*queuedJob
		queue []*queuedJob
		want  int
		why   []string // of those that wait
	}{
		"enough": {zen(30), nil, []*queuedJob{task(zen(25), preparing, false)}, 0, nil},
		"fees":   {zen(25), nil, []*queuedJob{task(zen(25), preparing, false)}, -1, []string{"budget"}},
		"reserved": {zen(30), []*queuedJob{task(zen(20), ordering, true)},
			[]*queuedJob{task(zen(20), preparing, false)}, -1, []string{"budget"}},
		"ordered others": {zen(30), []*queuedJob{task(zen(20), ordered, true)},
			[]*queuedJob{task(zen(20), preparing, false)}, 0, nil},
		"holds back": {zen(10), []*queuedJob{task(zen(20), ordered, true)},
			[]*queuedJob{task(zen(25), preparing, false), task(zen(5), preparing, false)}, -1, []string{"budget", "queued"}},
		"never covered": {zen(10), nil,
			[]*queuedJob{task(zen(25), preparing, false), task(zen(5), preparing, false)}, 1, []string{"budget"}},
		"on the network": {0, nil,
			[]*queuedJob{task(zen(25), preparing, false), task(zen(25), ordered, false)}, 1, []string{"budget"}},
	} {
		l := &jobQueue{payer: &payer{account: &account.Account{Chain: chain}}, tasks: map[string]*queuedJob{}, queue: c.queue}
		for i, x := range slices.Concat(c.begun, c.queue) {
			l.tasks[string(rune('a'+i))] = x
		}
		if got := l.covered(funds{c.free}); got != c.want {
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

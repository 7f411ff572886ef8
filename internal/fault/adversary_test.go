package fault

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
)

// liar is a process that breaks the rules. It starts like any other, with its own key and coins.
type liar struct {
	*process
	act, role string
	slashed   bool     // it loses stake
	out       bool     // it has to leave the run
	more      []string // arguments
}

// lies are the workers that break the rules in each way that a single worker can.
func lies() []liar {
	return append(convicts("skips", "poisons", "flips-bit", "wrong-data", "trains-less", "copies-changed"),
		liar{act: "misattests", role: "worker", out: true}, liar{act: "silent", role: "worker", out: true})
}

// convicts are workers that break the rules in some ways, lose stake and have to leave the run.
func convicts(acts ...string) (list []liar) {
	for _, act := range acts {
		list = append(list, liar{act: act, role: "worker", slashed: true, out: true})
	}
	return list
}

// TestAdversaries runs, in one job on the default terms, a worker for every way to break the rules, verifiers that do
// not execute units, and a validator that leaves out the dispute moves of challengers. Each loses what the rules say,
// no other account loses stake, and the model is the one that the job determines.
func TestAdversaries(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	verifier := func(act string) liar { return liar{act: act, role: "verifier", slashed: true, out: true} }
	liars := append(lies(), verifier("stamps"), verifier("copies-seal"))
	const censor = 3
	n.deviate(censor, "censors", "--against", n.account(n.verifier), "--against", n.account(n.second))
	n.invite(liars)
	n.judge("adversaries", 6, liars) // a silent worker is dealt fewer units with each miss, and is out after three
	n.punished(censor)
}

// TestCollusion gives a quarter of all stake to one party: one validator that withholds its part of the beacon, two
// workers that fake their units, and a verifier that shields them, all at the lowest price. In the same network one
// pair of a worker and a verifier tries to be paid for nothing, another to be paid for rollbacks, and a verifier
// accuses all workers.
func TestCollusion(t *testing.T) {
	t.Parallel()
	n := drawNetwork(t, false, nil)
	n.deviate(2, "withholds")
	more := fmt.Sprint(registry.DefaultStake * 123 / 100) // so that 3 of 14 parties have a quarter of it
	liars := n.circle("quarter", []string{"fakes", "fakes"}, "shields", "--stake", more)
	liars = append(liars, n.circle("pair", []string{"fakes"}, "shields")...)
	liars = append(liars, n.circle("pump", []string{"pumps"}, "springs")...)
	liars = append(liars, liar{act: "accuses", role: "verifier", slashed: true, out: true})
	n.invite(liars)
	n.judge("collusion", 5, liars)
	n.drawn()
}

// lyingReducer plays a job with a member that fabricates the slices that it is drawn to reduce, and stops that member
// and the second verifier afterwards. The job asks for slices, which a job of few workers does not have by default:
// without slices no member is drawn as reducer.
func (n *network) lyingReducer() {
	n.t.Helper()
	n.second.start(0)
	liars := []liar{{act: "fakes-slices", role: "worker", out: true}}
	n.enlist(liars)
	n.second.ready()
	n.set = append(n.set, "--set", "strategy.aggregation.slices=4")
	n.judge("reducer", 5, liars)
	for _, p := range []*process{n.second, liars[0].process} {
		p.signal(syscall.SIGTERM)
		p.end()
	}
}

// circle returns workers and a verifier of one owner, which ask the lowest price and do not declare that they have
// one owner.
func (n *network) circle(name string, workers []string, verifier string, more ...string) (list []liar) {
	more = append([]string{"--circle", filepath.Join(n.dir, name), "--price", "1"}, more...)
	for _, act := range workers {
		list = append(list, liar{act: act, role: "worker", slashed: true, out: true, more: more})
	}
	return append(list, liar{act: verifier, role: "verifier", more: more})
}

// deviate makes a validator break the rules.
func (n *network) deviate(validator int, act string, more ...string) {
	v := n.validators[validator]
	v.args = append([]string{"dev", "deviant", "--home", filepath.Join(n.dir, v.name), "--act", act}, more...)
}

// account returns the account of a participant, which may not be started yet.
func (n *network) account(p *process) string {
	n.t.Helper()
	h, err := home.Read(filepath.Join(n.dir, p.name))
	if err != nil {
		n.t.Fatal(err)
	}
	return h.Account().Address()
}

// invite starts the network with two honest verifiers and with those who break the rules.
func (n *network) invite(liars []liar) {
	n.t.Helper()
	n.start()
	n.second.start(0)
	n.enlist(liars)
	n.second.ready()
}

// enlist starts processes that break the rules in ways that catalog.Named knows, each on a key with coins. Without
// further arguments a process asks a little less than all others. The jobs that follow have as many units as there
// are workers, so that all of them work.
func (n *network) enlist(liars []liar) {
	n.t.Helper()
	target := workers
	for i := range liars {
		l := &liars[i]
		next := &n.invited[0]
		if l.role == "worker" {
			next = &n.invited[1]
			target++
		}
		first := map[string]int{"worker": workers + 1, "verifier": 2}[l.role]
		l.process = &process{t: n.t, name: fmt.Sprintf("%s-%d", l.role, first+*next)}
		*next++
		n.all = append(n.all, l.process)
		l.args = append([]string{"dev", "adversary", "--act", l.act, "--role", l.role,
			"--home", filepath.Join(n.dir, l.name), "--network", n.rpc[len(n.all)%validators],
			"--price", fmt.Sprint(market.DefaultPrice - 1), "--threads", "1"}, l.more...)
		l.start(0)
	}
	for _, l := range liars {
		l.ready()
	}
	n.set = []string{
		"--set", fmt.Sprintf("strategy.workers.target=%d", target), "--set",
		fmt.Sprintf("training.global_batch_size=%d", 2*target),
	}
}

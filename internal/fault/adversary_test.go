package fault

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/node"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
)

// liar is a process that breaks the rules: started as anybody would, with a key and coins of its own.
type liar struct {
	*process
	act     string
	slashed bool // it loses stake
}

// adversary starts a process that breaks the rules in a way that adversary.Named knows, and asks a little less than all others.
func (n *network) adversary(act, role string, slashed bool) liar {
	n.t.Helper()
	p := &process{t: n.t, name: act}
	n.all = append(n.all, p)
	p.args = []string{"dev", "adversary", "--act", act, "--role", role, "--home", filepath.Join(n.dir, act), "--network", n.rpc[len(n.all)%validators],
		"--price", fmt.Sprint(node.DefaultPrice - 1), "--threads", "1"}
	p.start(0)
	said := p.says(`starling account send (starling1\w+) ([0-9.]+)`)
	send := exec.Command(program, "account", "send", said[1], said[2], "--network", n.rpc[0], "--home", filepath.Join(n.dir, "consumer"))
	if out, err := send.CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v\n%s", send, err, out)
	}
	p.ready()
	return liar{p, act, slashed}
}

// Workers that break the rules in every way that one of them can, all in one job on the terms that a job has if nobody says
// otherwise: each loses what the rules say, nobody else loses anything, and the model is the one that the job determines.
func TestAdversaries(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, false, nil)
	liars := []liar{n.adversary("skips", "worker", true), n.adversary("poisons", "worker", true)}
	if *whole {
		for _, act := range []string{"flips-bit", "wrong-data", "trains-less", "copies-changed"} {
			liars = append(liars, n.adversary(act, "worker", true))
		}
		liars = append(liars, n.adversary("misattests", "worker", false))
	}
	target := workers + len(liars)
	n.set = []string{"--set", fmt.Sprintf("strategy.workers.target=%d", target), "--set", fmt.Sprintf("training.global_batch_size=%d", 2*target)}
	n.judge("adversaries", 6, liars)
}

// judge plays a job in which some break the rules, and checks what comes of it.
func (n *network) judge(name string, rounds int, liars []liar) {
	n.t.Helper()
	j := n.submit(name, rounds)
	j.consumer.end()
	if j.consumer.code != 0 {
		j.t.Fatalf("the consumer ended with code %d:\n%s", j.consumer.code, j.consumer.tail(20))
	}
	var summary struct {
		Rounds    int    `json:"rounds"`
		StateRoot string `json:"state_root"`
	}
	if err := json.Unmarshal(j.consumer.stdout.Bytes(), &summary); err != nil {
		j.t.Fatalf("%v: %s", err, j.consumer.stdout.Bytes())
	}
	j.check(func() error { return j.model(summary.StateRoot) })
	receipts, err := j.chain.Receipts(j.t.Context(), j.id)
	if err != nil {
		j.t.Fatal(err)
	}
	participants, err := j.chain.Participants(j.t.Context())
	if err != nil {
		j.t.Fatal(err)
	}
	for _, p := range participants {
		at := slices.IndexFunc(liars, func(l liar) bool { return l.address == p.ID })
		if at < 0 {
			if p.Slashed > 0 || p.Jailed {
				j.t.Errorf("%s kept the rules, and lost %d uzen of its stake", p.ID, p.Slashed)
			}
			continue
		}
		l, state := liars[at], j.run(j.id)
		member, seated := state.Member(p.ID)
		if (p.Slashed > 0) != l.slashed && seated {
			j.t.Errorf("%s lost %d uzen of its stake", l.act, p.Slashed)
		}
		var earned uint64
		for _, r := range receipts {
			if r.Who == p.ID && (r.Kind == reward.Work || r.Kind == reward.Audit) {
				earned += r.Amount
			}
		}
		j.t.Logf("%s: seated: %v, out: %q, slashed %d uzen, earned %d", l.act, seated, member.Why, p.Slashed, earned)
		if l.slashed && earned > p.Slashed {
			j.t.Errorf("%s gained: it earned %d uzen, and lost %d", l.act, earned, p.Slashed)
		}
	}
	if s := j.run(j.id); s.Phase != run.Done {
		j.t.Errorf("the run ends in phase %s: %s", s.Phase, s.Why)
	}
	j.t.Log(j.pace())
}

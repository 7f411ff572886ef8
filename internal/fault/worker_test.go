package fault

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// TestWorkers kills workers at every stage of a round and starts them again, and adds workers during a run. All
// others continue, even without the consumer.
func TestWorkers(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, false, nil)
	n.suffer("kill", 24, fault{"kill_mid-unit", n.killMidUnit}, fault{"kill_the_only_holder", n.killOnlyHolder},
		fault{"kill_mid-upload", n.killMidUpload})
	n.suffer("damage", 24, fault{"kill_mid-aggregation", n.killMidAggregation},
		fault{"kill_the_verifier", n.killVerifier}, fault{"corrupt_blobs", func(j *job) {
			w := n.workers[3]
			j.strike()
			w.kill()
			corrupt(j.t, filepath.Join(n.dir, w.name, "blobs"))
			w.start(0)
			j.back("restarted with every blob on its disk corrupt", w)
		}})
	n.suffer("restart", 10, fault{"restart_everything", func(j *job) {
		for _, p := range n.all {
			p.kill()
		}
		n.start()
		n.consumer.args = append(n.consumer.args, "--resume")
		n.consumer.start(0)
		j.strike() // from here on the checkpoint has a holder that continues the run
		j.back("everything was killed and started", n.members()...)
	}})
	n.set = []string{"--set", "strategy.workers.max=5"}
	n.suffer("newcomer", 18, fault{"kill_the_consumer", func(j *job) {
		n.consumer.kill()
		j.alone = true
	}}, fault{"join", n.join})
}

// TestSlices runs a job whose rounds are reduced in slices: a member fabricates the slices that are drawn for it, and
// workers are paused, killed while they owe a slice, and stopped.
func TestSlices(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, false, nil)
	n.lyingReducer()
	n.set = []string{"--set", "strategy.aggregation.slices=2"}
	n.suffer("slices", 22, fault{"pause_20_s", func(j *job) {
		w := n.workers[2]
		j.catch(w, "a unit in training", func(s run.State) bool { return trains(s, w) }, nil)
		j.pass(20 * time.Second)
		w.resume()
		j.back("paused for 20 s", w)
	}}, fault{"kill_a_reducer", n.killReducer}, fault{"interrupt", n.interrupt})
}

// restart starts a process again that was killed, when the round of the fault is over, and waits until it takes part.
func (j *job) restart(what string, p *process) {
	j.t.Helper()
	j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
	p.start(0)
	j.back(what, p)
}

// killMidUnit kills a worker while it computes a unit, which another worker then computes.
func (n *network) killMidUnit(j *job) {
	w := n.workers[1]
	j.catch(w, "a unit in training", func(s run.State) bool { return trains(s, w) },
		func(run.State) bool { return j.doing(w, "train") > 0 })
	w.kill()
	j.expect(w, reward.MissedDeadline)
	j.restart("killed in training", w)
}

// killOnlyHolder kills a worker that has committed to a unit and has sent its update to no peer, because another unit
// is not committed. No peer can fetch the update, and the unit is assigned again.
func (n *network) killOnlyHolder(j *job) {
	slow, w := n.workers[2], n.workers[3]
	alone := func(s run.State) bool {
		return s.Round == j.hurt && s.Phase == progress.Train && has(s, w, work.Committed) && len(j.holders(s, w)) == 0
	}
	for tries := 1; ; tries++ {
		j.catch(slow, "a unit in training", func(s run.State) bool { return trains(s, slow) }, nil)
		j.until("a commitment", func(s run.State) bool {
			return s.Round > j.hurt || s.Phase != progress.Train ||
				has(s, w, work.Committed)
		})
		w.pause()
		if s := j.after(1); alone(s) {
			j.note("%s: alone with its update after %d tries", w.name, tries)
			j.strikes(s)
			break
		}
		w.resume()
		slow.resume()
	}
	w.kill()
	slow.resume()
	j.expect(w, reward.Unavailable)
	j.restart("killed with the only copy of its update", w)
}

// killMidUpload kills a worker when some have its update and some have not: all but the verifier, which sleeps when the
// others fetch it. The verifier fetches it from those, without whom there is no quorum, and the worker is paid.
func (n *network) killMidUpload(j *job) {
	w, late := n.workers[0], n.verifier
	some := func(s run.State) bool {
		have := j.holders(s, w)
		return s.Phase == progress.Attest && !s.Voted(w.address) && slices.Contains(have, w) && len(have) > 1 &&
			!slices.Contains(have, late)
	}
	for tries := 1; ; tries++ {
		begun := j.until("units in training", func(s run.State) bool { return s.Phase == progress.Train })
		late.pause()
		s := j.until("updates to fetch",
			func(s run.State) bool { return s.Round > begun.Round || s.Phase == progress.Attest })
		if s.Round == begun.Round && j.soon(func() bool { return some(s) }) {
			w.pause()
			if s = j.after(2); s.Round == begun.Round && some(s) {
				j.note("%s: %d of %d others have its update after %d tries", w.name, len(j.holders(s, w))-1, len(n.members())-1,
					tries)
				j.strikes(s)
				break
			}
			w.resume()
		}
		late.resume()
	}
	w.kill()
	late.resume()
	j.expect(w, reward.Verified)
	j.restart("killed when others fetched its update", w)
}

// killMidAggregation kills a worker while it fetches or combines the updates of a round, after its own update has
// been fetched by others.
func (n *network) killMidAggregation(j *job) {
	w := n.workers[1]
	j.catch(w, "a checkpoint in the making",
		func(s run.State) bool { return s.Phase == progress.Attest && !s.Voted(w.address) }, func(run.State) bool {
			return j.doing(w, "advance") > 0
		})
	w.kill()
	j.restart("killed while it combined updates", w)
}

// killVerifier kills the only verifier while it executes a unit again.
func (n *network) killVerifier(j *job) {
	v := n.verifier
	j.catch(v, "an audit", func(s run.State) bool { return len(s.Audits(v.address)) > 0 },
		func(run.State) bool { return j.doing(v, "check") > 0 })
	v.kill()
	j.after(10)
	v.start(0)
	j.back("killed while it audited", v)
}

// killReducer kills a worker that owes a slice of the next checkpoint. Another member is drawn for the slice.
func (n *network) killReducer(j *job) {
	w := n.workers[1]
	reduces := func(s run.State) bool {
		return s.Phase == progress.Reduce && slices.ContainsFunc(s.Slices, func(x progress.Slice) bool {
			return x.Status == progress.Reducing &&
				slices.ContainsFunc(x.Reducers, func(r progress.Reducer) bool {
					return r.Member == w.address && r.Seal.IsZero() &&
						!r.Late
				})
		})
	}
	j.catch(w, "a slice that it is to combine", reduces, nil)
	w.kill()
	j.until("another reducer", func(s run.State) bool { return s.Round > j.hurt || !reduces(s) })
	j.restart("killed with a slice to combine", w)
}

// interrupt asks a worker by Ctrl-C to end, in the middle of a unit. It hands that in, is paid, takes no other, and
// ends in good standing when nothing of its work may be questioned any more.
func (n *network) interrupt(j *job) {
	w := n.workers[0]
	j.catch(w, "a unit in training", func(s run.State) bool { return trains(s, w) },
		func(run.State) bool { return j.doing(w, "train") > 0 })
	w.signal(syscall.SIGINT)
	w.resume()
	j.until("it to leave", func(s run.State) bool { m, _ := s.Member(w.address); return m.Why == reason.Left })
	w.end()
	if w.code != 0 || !strings.HasSuffix(w.tail(1), "drained") {
		j.t.Errorf("it ended with code %d:\n%s", w.code, w.tail(20))
	}
	j.endured()
	j.expect(w, reward.Verified)
	last := j.hurt
	j.paid = append(j.paid, func(receipts []reward.Receipt) {
		for _, r := range receipts {
			if r.Who == w.address && r.Kind == reward.Work && r.Round > last && (r.Amount > 0 || r.Reason != reward.Left) {
				j.t.Errorf("it was told to end in round %d: %+v", last+1, r)
			}
		}
	})
}

// pass waits until so much time has passed on the chain.
func (j *job) pass(d time.Duration) {
	j.t.Helper()
	var until time.Time
	ctx := j.t.Context()
	blocks, err := j.chain.Blocks(ctx)
	if err != nil {
		j.t.Fatal(err)
	}
	for b := range blocks {
		if until.IsZero() {
			until = b.Time.Add(d)
		}
		if b.Time.After(until) {
			return
		}
	}
}

// corrupt flips a bit in the middle of every file in a folder.
func corrupt(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) < 5 {
		t.Fatalf("only %d files in %s", len(entries), dir)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		b, err := os.ReadFile(path)
		if err != nil || len(b) == 0 {
			continue // a folder
		}
		b[len(b)/2] ^= 1
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

package fault

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run"
)

// trains reports whether a worker has a unit of the round that it is not bound to.
func trains(s run.State, p *process) bool { return s.Phase == run.Train && has(s, p, run.Assigned) }

func has(s run.State, p *process, status run.Status) bool {
	return slices.ContainsFunc(s.Units, func(u *run.Unit) bool { return u.Worker == p.address && u.Status == status })
}

// Workers are killed at every stage of a round and started again, or paused, or come while a run goes on. All others go on.
func TestWorkers(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, false, nil)
	first := []fault{{"kill_mid-unit", func(j *job) {
		w := n.workers[1]
		j.catch(w, "a unit in training", func(s run.State) bool { return trains(s, w) })
		w.kill()
		j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
		w.start(0)
		j.back("killed in training", w)
	}}, {"kill_the_only_holder", func(j *job) {
		slow, w := n.workers[2], n.workers[3]
		j.catch(slow, "a unit in training", func(s run.State) bool { return trains(s, slow) })
		j.until("a commitment", func(s run.State) bool { return s.Round > j.hurt || has(s, w, run.Committed) })
		w.kill()
		slow.resume()
		j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
		w.start(0)
		j.back("killed with the only copy of its update", w)
	}}}
	if !*whole {
		n.suffer("kill", 12, first...)
		return
	}
	n.suffer("kill", 18, append(first, fault{"kill_mid-upload", func(j *job) {
		w := n.workers[0]
		s := j.until("an upload", func(s run.State) bool { return s.Phase == run.Attest && has(s, w, run.Committed) })
		j.hurt = s.Round
		w.kill()
		j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
		w.start(0)
		j.back("killed when others fetched its update", w)
	}})...)
	n.suffer("damage", 18, fault{"kill_mid-aggregation", func(j *job) {
		w := n.workers[1]
		j.catch(w, "a checkpoint in the making", func(s run.State) bool { return s.Phase == run.Attest && !s.Voted(w.address) })
		w.kill()
		j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
		w.start(0)
		j.back("killed while it combined updates", w)
	}}, fault{"kill_the_verifier", func(j *job) {
		v := n.verifier
		j.catch(v, "an audit", func(s run.State) bool { return len(s.Audits(v.address)) > 0 })
		v.kill()
		j.after(10)
		v.start(0)
		j.back("killed while it audited", v)
	}}, fault{"corrupt_blobs", func(j *job) {
		w := n.workers[3]
		j.hurt = j.run(j.id).Round
		w.kill()
		corrupt(j.t, filepath.Join(n.dir, w.name, "blobs"))
		w.start(0)
		j.back("restarted with every blob on its disk corrupt", w)
	}})
	n.suffer("pause", 16, fault{"pause_20_s", func(j *job) {
		w := n.workers[2]
		j.catch(w, "a unit in training", func(s run.State) bool { return trains(s, w) })
		j.pass(20 * time.Second)
		w.resume()
		j.back("paused for 20 s", w)
	}})
	n.suffer("restart", 7, fault{"restart_everything", func(j *job) {
		j.hurt = j.run(j.id).Round
		for _, p := range n.all {
			p.kill()
		}
		n.start()
		n.consumer.args = append(n.consumer.args, "--resume")
		n.consumer.start(0)
		j.back("everything was killed and started", n.members()...)
	}})
	n.set = []string{"--set", "strategy.workers.max=5"}
	n.suffer("newcomer", 12, fault{"join", n.join})
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

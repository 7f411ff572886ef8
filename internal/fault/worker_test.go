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
	return slices.ContainsFunc(s.Units, func(u run.Unit) bool { return u.Worker == p.address && u.Status == status })
}

// Workers are killed at every stage of a round and started again, or paused. All others go on.
func TestWorkers(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, false, nil)
	n.suffer("kill_mid-unit", 7, func(j *job) {
		w := n.workers[1]
		j.catch(w, "a unit in training", func(s run.State) bool { return trains(s, w) })
		w.kill()
		j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
		w.start(0)
		j.back("killed in training", w)
	})
	n.suffer("kill_the_only_holder", 7, func(j *job) {
		slow, w := n.workers[2], n.workers[3]
		j.catch(slow, "a unit in training", func(s run.State) bool { return trains(s, slow) })
		j.until("a commitment", func(s run.State) bool { return s.Round > j.hurt || has(s, w, run.Committed) })
		w.kill()
		slow.resume()
		j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
		w.start(0)
		j.back("killed with the only copy of its update", w)
	})
	if !*whole {
		return
	}
	n.suffer("kill_mid-upload", 7, func(j *job) {
		w := n.workers[0]
		s := j.until("an upload", func(s run.State) bool { return s.Phase == run.Attest && has(s, w, run.Committed) })
		j.hurt = s.Round
		w.kill()
		j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
		w.start(0)
		j.back("killed when others fetched its update", w)
	})
	n.suffer("kill_mid-aggregation", 7, func(j *job) {
		w := n.workers[1]
		j.catch(w, "a checkpoint in the making", func(s run.State) bool { return s.Phase == run.Attest && !s.Voted(w.address) })
		w.kill()
		j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
		w.start(0)
		j.back("killed while it combined updates", w)
	})
	n.suffer("kill_the_verifier", 7, func(j *job) {
		v := n.verifier
		j.catch(v, "an audit", func(s run.State) bool { return len(s.Audits(v.address)) > 0 })
		v.kill()
		j.after(10)
		v.start(0)
		j.back("killed while it audited", v)
	})
	n.suffer("pause_20_s", 25, func(j *job) {
		w := n.workers[2]
		j.catch(w, "a unit in training", func(s run.State) bool { return trains(s, w) })
		j.pass(20 * time.Second)
		w.resume()
		j.back("paused for 20 s", w)
	})
	n.suffer("corrupt_blobs", 8, func(j *job) {
		w := n.workers[3]
		j.hurt = j.run(j.id).Round
		w.kill()
		corrupt(t, filepath.Join(n.dir, w.name, "blobs"))
		w.start(0)
		j.back("restarted with every blob on its disk corrupt", w)
	})
	n.suffer("restart_everything", 7, func(j *job) {
		j.hurt = j.run(j.id).Round
		for _, p := range n.all {
			p.kill()
		}
		n.start()
		n.consumer.args = append(n.consumer.args, "--resume")
		n.consumer.start(0)
		j.back("everything was killed and started", n.members()...)
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
func corrupt(t *testing.T, dir string) {
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

package fault

import (
	"testing"
	"time"

	"github.com/starling-network/starling/protocol/run"
)

// separate skips a test that needs machines where there can be none.
func separate(t testing.TB) {
	t.Helper()
	if why := whyNot(); why != nil {
		t.Skipf("no machines of their own: %v", why)
	}
	if !*whole {
		t.Skip("run with -faults")
	}
}

// Cables between machines are slow, cut, and mended.
func TestLinks(t *testing.T) {
	separate(t)
	t.Parallel()
	n := newNetwork(t, true, nil)
	n.suffer("links", 20, fault{"kill_mid-upload_on_a_slow_link", func(j *job) {
		w := n.workers[0]
		w.machine.slow(512)
		s := j.until("an upload", func(s run.State) bool { return s.Phase == run.Attest && has(s, w, run.Committed) })
		j.hurt = s.Round
		w.kill()
		w.machine.slow(0)
		j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
		w.start(0)
		j.back("killed while it uploaded", w)
	}}, fault{"cut_a_link", func(j *job) {
		w := n.workers[1]
		s := j.until("a unit in training", func(s run.State) bool { return trains(s, w) })
		j.hurt = s.Round
		w.machine.cut()
		j.pass(10 * time.Second)
		w.machine.mend()
		j.back("cut off for 10 s", w)
	}})
	parted := []fault{{"partition_and_heal", func(j *job) {
		v, w := n.validators[3], n.workers[3] // this worker follows the chain at this validator
		j.hurt = j.run(j.id).Round
		v.machine.move(island)
		w.machine.move(island)
		j.pass(15 * time.Second)
		v.machine.move(mainland)
		w.machine.move(mainland)
		n.level(v)
		j.back("alone with one validator for 15 s", w)
	}}}
	if why := emulates(); why != nil {
		t.Logf("skipped delay_and_loss: %v", why)
		n.suffer("partition", 16, parted...)
		return
	}
	n.suffer("partition", 22, append(parted, fault{"delay_and_loss", func(j *job) {
		j.hurt = j.run(j.id).Round
		for _, p := range n.members() {
			p.machine.lossy("50ms", 2)
		}
		j.back("50 ms away, losing 2 % of the packets", n.members()...)
	}})...)
}

// level waits until a validator has the block that the chain is at.
func (n *network) level(v *process) {
	n.t.Helper()
	var target int64
	n.blocks(v.name+" to catch up", func(height int64) bool {
		if target == 0 {
			target = height
		}
		return n.height(v) >= target
	})
}

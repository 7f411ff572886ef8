package fault

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/link"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
)

// separate skips a test that needs machines where there can be none.
func separate(t testing.TB) {
	t.Helper()
	if why := whyNot(); why != nil {
		t.Skipf("no machines of their own: %v", why)
	}
}

// TestLinks slows, cuts and mends the cables between machines, and has one machine that accepts no connection.
func TestLinks(t *testing.T) {
	separate(t)
	t.Parallel()
	n := newNetwork(t, true, nil)
	n.suffer("links", 22, fault{"kill_mid-upload_on_a_slow_link", n.killOnSlowLink}, fault{"cut_a_link", func(j *job) {
		w := n.workers[1]
		j.strikes(j.until("a unit in training", func(s run.State) bool { return trains(s, w) }))
		w.machine.cut()
		j.pass(10 * time.Second)
		w.machine.mend()
		j.back("cut off for 10 s", w)
	}})
	n.set = []string{"--set", "strategy.workers.max=5"}
	faults := []fault{{"partition_and_heal", n.part}, {"join_behind_a_NAT", n.relay}}
	if why := emulates(); why != nil {
		t.Logf("skipped delay_and_loss: %v", why)
		n.suffer("partition", 36, faults...)
		return
	}
	n.suffer("partition", 44, append(faults, fault{"delay_and_loss", func(j *job) {
		for _, p := range n.members() {
			p.machine.lossy("50ms", 2)
		}
		j.strike()
		j.back("50 ms away, losing 2 % of the packets", n.members()...)
	}})...)
}

// killOnSlowLink kills a worker that serves its update over a slow link, and cuts that, when some of it is on its way
// and not everybody has all of it.
func (n *network) killOnSlowLink(j *job) {
	w := n.workers[0]
	w.machine.slow(512)
	var before, sent int64 // bytes that had left it when it began to serve, and since then
	some := func(s run.State) bool {
		have := j.holders(s, w)
		if !slices.Contains(have, w) {
			before = 0
			return false
		}
		if before == 0 {
			before = w.machine.sent()
		}
		sent = w.machine.sent() - before
		return sent > 8<<10 && len(have) < len(n.members())
	}
	s := j.catch(w, "an upload", func(s run.State) bool { return s.Phase == progress.Attest }, some)
	w.machine.cut() // data that the kernel still buffers is lost, too
	w.kill()
	if !some(s) {
		j.t.Error("everybody has its update")
	}
	j.note("%s: it had sent %d bytes, and %d of %d others had its update", w.name, sent, len(j.holders(s, w))-1,
		len(n.members())-1)
	w.machine.slow(0)
	j.until("the next round", func(s run.State) bool { return s.Round > j.hurt })
	w.machine.mend()
	w.start(0)
	j.back("killed while it uploaded", w)
}

// part leaves a worker alone with one validator in the middle of a unit, which the worker finishes there. When both
// are connected again its work counts unless another worker has done the unit; then the receipts state the reason.
func (n *network) part(j *job) {
	v, w := n.validators[3], n.workers[3] // this worker follows the chain at this validator
	training := func(run.State) bool { return j.doing(w, "train") > 0 }
	s := j.catch(w, "a unit in training", func(s run.State) bool { return trains(s, w) }, training)
	v.machine.move(island)
	w.machine.move(island)
	w.resume()
	j.pass(15 * time.Second)
	if training(s) {
		j.t.Error("it is not done with its unit")
	}
	v.machine.move(mainland)
	w.machine.move(mainland)
	n.level(v)
	j.expect(w, reward.Verified, reward.MissedDeadline, reward.Overtaken)
	round := j.hurt
	j.paid = append(j.paid, func(receipts []reward.Receipt) {
		e, err := j.chain.Training.Lineage(j.t.Context(), j.id, round+1)
		if err != nil {
			j.t.Fatal(err)
		}
		for _, r := range receipts {
			if r.Who != w.address || r.Kind != reward.Work || r.Round != round {
				continue
			}
			j.t.Logf("the unit that it did alone: %d uzen, %s; %s", r.Amount, r.Reason, r.Fix)
			if counts := e.Workers[r.Unit] == w.address; counts != (r.Amount > 0) && r.Reason != reward.MissedDeadline ||
				!counts && r.Fix == "" {
				j.t.Errorf("its unit counts: %v, and the receipt is %+v", counts, r)
			}
		}
	})
	j.back("alone with one validator for 15 s", w)
}

// relay lets a newcomer join that accepts no connection, because it listens on no address of its machine. It is
// reached through the verifier: the consumer and the other members fetch its update.
func (n *network) relay(j *job) {
	n.join(j)
	began := j.hurt
	var p registry.Participant
	j.until("the end of its first round, and a relay", func(s run.State) bool {
		p, _ = n.chain.Registry.Participant(j.t.Context(), n.newcomer.address)
		return s.Round > began && slices.ContainsFunc(p.Addrs,
			func(a string) bool { return strings.Contains(a, "/p2p-circuit/") })
	})
	for _, a := range p.Addrs {
		if circuit := strings.HasPrefix(a, "/ip4/"+n.verifier.machine.address+"/") &&
			strings.Contains(a, "/p2p-circuit/"); !circuit && !strings.HasPrefix(a, "/ip4/127.0.0.1/") {
			j.t.Errorf("%s says that it is reached at %s", n.newcomer.name, a)
		}
	}
	var took []uint64
	for _, m := range n.members() {
		for _, l := range n.links(m) {
			if l.Peer == p.PeerID && l.Received > 1000 {
				took = append(took, l.Received)
			}
		}
	}
	if j.note("%s: %d members took %v bytes from it", n.newcomer.name, len(took), took); len(took) == 0 {
		j.t.Error("nobody has fetched anything from it")
	}
	e, err := n.chain.Training.Lineage(j.t.Context(), j.id, began+1)
	if err != nil {
		j.t.Fatal(err)
	}
	unit := slices.Index(e.Workers, n.newcomer.address)
	if unit < 0 {
		j.t.Fatalf("its unit of round %d went to another: %v", began+1, e.Workers)
	}
	j.fetch(e.Attestation.Updates[unit], p.Addrs)
}

// fetch gets a blob through a relay, as the consumer of the job, which is registered but no member: members send no
// blob of a run to unregistered peers.
func (j *job) fetch(cid string, from []string) {
	j.t.Helper()
	id, err := blob.Parse(cid)
	if err != nil {
		j.t.Fatal(err)
	}
	h, _, err := home.Open(filepath.Join(j.dir, "consumer"))
	if err != nil {
		j.t.Fatal(err)
	}
	host, err := peer.New(peer.Config{Key: h.Peer(), Store: blob.NewMemory(), Listen: []string{"/ip4/" + hub + "/tcp/0"}})
	if err != nil {
		j.t.Fatal(err)
	}
	defer host.Close()
	ctx, cancel := context.WithTimeout(j.t.Context(), time.Minute)
	defer cancel()
	b, err := host.Fetch(ctx, id, from)
	relayed := slices.ContainsFunc(host.Peers(),
		func(l link.State) bool { return l.Relayed && l.Received >= uint64(len(b)) })
	if err != nil || !relayed {
		j.t.Errorf("its consumer fetches its update: %v, over %+v", err, host.Peers())
	}
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

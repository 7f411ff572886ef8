package fault

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/work"
)

// proof is an upper limit, in blocks, of the time between the first unit that a newcomer reproduces and the first
// unit that it is assigned, when rounds are so short that two of them end meanwhile: one block for its seal, one for
// the beacon that asks for leaves, one for its answer, and then the next round assigns units. On a busy machine a
// transaction may wait for one more block, twice.
const proof = 8

// join starts a worker during a run. The worker downloads what it needs from several members at a time, and is paid
// for a unit at the latest in the second round after that and after its first reproduced unit.
func (n *network) join(j *job) {
	p := n.newcomer
	j.strike()
	p.start(0)
	p.ready()
	var joined, here, began uint32
	var ready int64 // block
	j.until("the newcomer to be taken in", func(s run.State) bool {
		_, known := s.Member(p.address)
		joined = s.Round
		return known
	})
	j.until("its download, and a unit that it reproduces", func(s run.State) bool {
		m, _ := s.Member(p.address)
		t, onTrial := s.Probation(p.address)
		here, ready = s.Round, j.height
		return m.Active || onTrial && !t.Seal.IsZero()
	})
	j.until("its first unit", func(s run.State) bool {
		began = s.Round
		return slices.ContainsFunc(s.Units, func(u *work.Unit) bool { return u.Worker == p.address })
	})
	j.note("%s: started in round %d, joined in round %d, ready in round %d, first unit in round %d", p.name, j.hurt+1,
		joined+1, here+1, began+1)
	if began > here+2 && j.height > ready+proof {
		j.t.Errorf("it was ready in round %d, block %d, and has its first unit in round %d, block %d", here+1, ready,
			began+1, j.height)
	}
	var gave []uint64
	for _, l := range n.links(p) {
		if l.Received > 1000 {
			gave = append(gave, l.Received)
		}
	}
	if len(gave) < 2 {
		j.t.Errorf("its bytes came from %d peers: %+v", len(gave), n.links(p))
	}
	j.note("%s: %d peers gave it %v bytes", p.name, len(gave), gave)
	j.hurt = began
	j.expect(p, reward.Verified)
}

// peering is how a worker reaches a peer.
type peering struct {
	Peer     string `json:"peer"`
	Relayed  bool   `json:"relayed"`
	Received uint64 `json:"received_bytes"`
}

// links are those of a worker that runs, as its owner sees them.
func (n *network) links(p *process) []peering {
	n.t.Helper()
	var said struct {
		Process struct {
			Peers []peering `json:"peers"`
		} `json:"process"`
	}
	out, err := exec.Command(program, "worker", "status", "--home", filepath.Join(n.dir, p.name), "-o", "json").Output()
	if err != nil || json.Unmarshal(out, &said) != nil {
		n.t.Fatalf("the status of %s: %v\n%s", p.name, err, out)
	}
	return said.Process.Peers
}

package sim

import (
	"encoding/binary"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
)

// thin is the state at the end of a modelled unit: one tensor of one tile, which names the unit. Seals of it, and their openings, are
// made and checked as those of every state.
type thin struct{ tile []byte }

func (g *gathering) end(w role.Work) thin { return thinOf(g.state.Terms.Job, w) }

func thinOf(job string, w role.Work) thin {
	return thin{binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte(job), w.Round), w.Unit)}
}

func (s thin) trees() []*canon.Tree {
	return []*canon.Tree{canon.NewTree([]canon.Digest{canon.Leaf(s.tile)})}
}

// root of the state, as the rules make it of an opening.
func (s thin) root() canon.Digest {
	return s.State(s.Step(), canon.NewTree(s.Roots()).Root())
}

// Roots implements audit.Source.
func (s thin) Roots() []canon.Digest {
	root, _ := s.Tensor(nil, 1, s.trees()[0].Root()) // it never fails
	return []canon.Digest{root}
}

// Shape implements audit.Source.
func (thin) Shape(int) []byte { return nil }

// Tile implements audit.Source.
func (s thin) Tile(int, int) []byte { return s.tile }

// Step implements audit.Source.
func (thin) Step() uint32 { return 1 }

// Tensor implements audit.Rooting.
func (thin) Tensor(_ []byte, _ int, tree canon.Digest) (canon.Digest, error) { return tree, nil }

// State implements audit.Rooting.
func (thin) State(_ uint32, tensors canon.Digest) canon.Digest {
	return canon.Sum("sim/crowd/state", tensors[:])
}

var (
	_ audit.Source  = thin{}
	_ audit.Rooting = thin{}
)

// commitment to a modelled unit.
func commitment(job string, w role.Work) run.Commitment {
	root := thinOf(job, w).root()
	return run.Commitment{Segments: []canon.Digest{canon.Sum("sim/crowd/start", []byte(job)), root}, Update: root, UpdateCID: root.Short(), Bytes: 1, Loss: 1}
}

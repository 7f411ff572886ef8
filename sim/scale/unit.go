package scale

import (
	"encoding/binary"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/sealed"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/run/work"
)

// end is the state at the end of a modelled unit: one tensor of one tile, which names the unit. Seals of it, and their
// openings, are made and checked as those of every state.
func (g *gathering) end(w work.UnitID) *sealed.State { return endOf(g.state.Terms.Job, w) }

func endOf(job string, w work.UnitID) *sealed.State {
	name := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32([]byte(job), w.Round), w.Unit)
	t := tensor.New(tensor.Make(tensor.Uint8, len(name)))
	copy(t.Bytes(), name)
	return sealed.New(1, []*tensor.Tensor{t})
}

// commitment to a modelled unit.
func commitment(job string, w work.UnitID) work.Commitment {
	end := endOf(job, w)
	root := train.StateRoot(end.Step(), end.Roots())
	return work.Commitment{Segments: []canon.Digest{canon.Sum("sim/crowd/start", []byte(job)), root}, Update: root,
		UpdateCID: root.Short(), Bytes: 1, Loss: 1}
}

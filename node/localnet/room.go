package localnet

import (
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
)

// heldCheckpoints is how many checkpoints the parties of the network hold: the one that a round starts from, the one
// it leads to, and the one before.
const heldCheckpoints = 3

// aside is how many bytes the parties of a network put aside, which a plan does not count as memory (prepare.Memory):
// the checkpoints, which they share, and for each party the state at the end of a unit. Small ones stay in memory, and
// are counted.
func aside(b *prepare.CompiledJob, parties int) (bytes uint64) {
	state, err := outer.State(b.Exchange())
	if err != nil {
		return 0 // the job was checked
	}
	checkpoint := uint64(b.Size().Parameters()) * uint64(1+state)
	if checkpoint < memory.LeastRoom {
		return 0
	}
	shapes, end := b.Step.InputShapes(), uint64(0)
	for _, n := range train.StateNames(b.Step) {
		end += uint64(shapes[n].Bytes())
	}
	return heldCheckpoints*checkpoint + uint64(parties)*end
}

// asideOnDisk is how many bytes each party has to put aside on its disk, because the memory that is free has no place
// for them: the machine would swap. Otherwise what finds no room on the disk stays in memory.
func asideOnDisk(b *prepare.CompiledJob, parties, threads int) (bytes int64, err error) {
	all := aside(b, parties)
	if all == 0 {
		return 0, nil
	}
	exec, err := b.Spec.Compile(b.Step, threads)
	if err != nil {
		return 0, err
	}
	need, err := prepare.Memory(b, exec, parties)
	if available, _, known := memory.Available(); err != nil || !known || need+all <= available {
		return 0, err
	}
	return int64(all) / int64(parties), nil
}

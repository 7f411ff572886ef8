package prepare

import (
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/memory"
)

// aside is how many bytes the parties of a process put aside, which Memory does not count: the checkpoints, which they
// share, and for each party the state at the end of a unit. Small ones stay in memory, and are counted.
func aside(b *CompiledJob, parties int) (bytes int64) {
	state, err := outer.State(b.Exchange())
	if err != nil {
		return 0 // the job was checked
	}
	checkpoint := b.Size().Parameters() * int64(1+state)
	if checkpoint < memory.LeastRoom {
		return 0
	}
	return held*checkpoint + int64(parties)*b.Size().State()
}

// AsideOnDisk is how many bytes each of the parties of a process has to put aside on its disk, because the memory that
// is free has no place for them: the machine would swap. Otherwise what finds no room on the disk stays in memory.
func AsideOnDisk(b *CompiledJob, parties int) (bytes int64, err error) {
	all := aside(b, parties)
	if all == 0 {
		return 0, nil
	}
	_, threads := Turns(b)
	exec, err := b.Spec.Compile(b.Step, threads)
	if err != nil {
		return 0, err
	}
	need, err := Memory(b, exec, parties)
	if available, _, known := memory.Available(); err != nil || !known || need+uint64(all) <= available {
		return 0, err
	}
	return all / int64(parties), nil
}

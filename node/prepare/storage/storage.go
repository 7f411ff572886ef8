// Package storage computes how much of its disk each party of an embedded network needs for a job: for blobs, and for
// memory that is put aside. It reserves nothing; packages node/disk and node/memory do.
package storage

import (
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// aside is how many bytes the parties of a process put aside, which Memory does not count: the checkpoints, which they
// share, and for each party the state at the end of a unit. Small ones stay in memory, and are counted.
func aside(b *prepare.CompiledJob, parties int) (bytes int64) {
	state, err := outer.State(b.Exchange())
	if err != nil {
		return 0 // the job was checked
	}
	checkpoint := b.Size().Parameters() * int64(1+state)
	if checkpoint < memory.LeastRoom {
		return 0
	}
	return prepare.HeldCheckpoints*checkpoint + int64(parties)*b.Size().State()
}

// Disk is how much each of the parties of an embedded network needs of its disk.
type Disk struct {
	Blobs int64 // bytes that the run needs
	Aside int64 // bytes that are put aside and that the free memory has no place for: else those without room stay there
}

// All is what a party is refused without.
func (d Disk) All() int64 { return d.Blobs + d.Aside }

// Here computes the Disk of a job on this machine. keep is the number of checkpoints that each party keeps.
func Here(b *prepare.CompiledJob, t terms.Terms, keep, parties int) (Disk, error) {
	available, _, known := memory.Available()
	return In(b, t, keep, parties, available, known)
}

// In computes the same for a machine with the available bytes of free memory; known is false where it was not measured.
func In(b *prepare.CompiledJob, t terms.Terms, keep, parties int, available uint64, known bool) (Disk, error) {
	d := Disk{Blobs: bundle.Footprint(b.Spec, b.Step, b.Manifest, t, keep)}
	all := aside(b, parties)
	if all == 0 || !known {
		return d, nil
	}
	_, threads := prepare.Turns(b)
	exec, err := b.Spec.Compile(b.Step, threads)
	if err != nil {
		return d, err
	}
	need, err := prepare.Memory(b, exec, parties)
	if err == nil && need+uint64(all) > available {
		d.Aside = all / int64(parties)
	}
	return d, err
}

// Package storage computes how much of a disk an embedded network needs for a job: for blobs, of which its parties have
// equal ones once, and for memory that is put aside. It reserves nothing; packages node/disk and node/memory do.
package storage

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// share is the part of the free disk, in percent, that an embedded network may fill.
const share = 90

// Words name the disk of which Room is a part, for people.
const Words = "90% of the free disk"

// heldEnds are the states at the end of units that a verifier has: those whose seals may be opened.
const heldEnds = 2

// aside is how many bytes the parties of a process put aside, which prepare.Memory does not count: the checkpoints,
// which they share, and one that a party makes before it takes the shared one; for each verifier the states at the end
// of units; and the carried states of the units of two rounds. Checkpoints below memory.LeastRoom, and states below
// memory.LeastAside, stay in memory.
func aside(b *prepare.CompiledJob, t terms.Terms, parties int) (bytes int64) {
	outers, err := outer.State(b.Exchange())
	if err != nil {
		return 0 // the job was checked
	}
	if checkpoint := b.Size().Parameters() * int64(1+outers); checkpoint >= memory.LeastRoom {
		bytes = (prepare.HeldCheckpoints + 1) * checkpoint
	}
	if state := b.Size().State(); state >= memory.LeastAside {
		bytes += int64(max(0, parties-int(t.Units))) * heldEnds * state
	}
	if t.Carry > 0 && b.Spec.Rollout == nil {
		carried := int64(0)
		for _, shape := range train.HandedShapes(b.Spec.Exchange, b.Step) {
			carried += int64(shape.Bytes())
		}
		if carried >= memory.LeastAside {
			bytes += int64(min(2, b.Spec.Rounds-1)) * int64(t.Units) * carried
		}
	}
	return bytes
}

// Disk is how much of the disk the parties of an embedded network need.
type Disk struct {
	Member int64 // bytes of blobs that one of them may need (bundle.Footprint)
	Blobs  int64 // bytes of the blobs of all, equal ones once (bundle.Together)
	Model  int64 // bytes of the model in the output folder
	Moved  int64 // bytes that are put aside
	Aside  int64 // of Moved, those that the free memory has no place for: else those without room stay there
}

// All is what a network is refused without.
func (d Disk) All() int64 { return d.Blobs + d.Model + d.Aside }

// In returns the bytes that a network takes of a disk of which it may fill room bytes, at least All: it puts states
// aside on the disk while there is room, even where the memory has room for some of them.
func (d Disk) In(room int64) int64 { return min(max(d.All(), room), d.Blobs+d.Model+d.Moved) }

// Here computes the Disk of a job on this machine, with the memory that this process has already. keep is the number of
// checkpoints that each party keeps.
func Here(b *prepare.CompiledJob, t terms.Terms, keep, parties int) (Disk, error) {
	available, _, known := memory.Available()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return In(b, t, keep, parties, available+m.HeapSys-m.HeapReleased, known)
}

// In computes the same for a machine with the available bytes of free memory; known is false where it was not measured.
func In(b *prepare.CompiledJob, t terms.Terms, keep, parties int, available uint64, known bool) (Disk, error) {
	d := Disk{Member: bundle.Footprint(b.Spec, b.Step, b.Manifest, t, keep),
		Blobs: bundle.Together(b.Spec, b.Step, b.Manifest, t, max(keep, b.Job.Checkpoint.KeepLast)),
		Model: int64(b.Model.Parameters()) * prepare.BytesOfWeight,
		Moved: aside(b, t, parties)}
	if d.Moved == 0 || !known {
		return d, nil
	}
	_, threads := prepare.Turns(b)
	exec, err := b.Spec.Compile(b.Step, threads)
	if err != nil {
		return d, err
	}
	need, err := prepare.Memory(b, exec, parties)
	if err == nil && need+uint64(d.Moved) > available {
		d.Aside = min(d.Moved, int64(need)+d.Moved-int64(available))
	}
	return d, err
}

// Room is how many bytes an embedded network with this output folder, which need not exist, may fill: a share of the
// free disk, in which the blobs that it has already count as free; not known where free space is not.
func Room(dir string) (bytes int64, known bool) {
	taken := map[string]int64{} // by the name of the file: equal blobs are one
	for _, at := range []string{rundir.DirBlobs, filepath.Join(rundir.DirNetwork, "*", rundir.DirBlobs)} {
		files, _ := filepath.Glob(filepath.Join(dir, at, "*")) // of a pattern that is right
		for _, f := range files {
			if info, err := os.Stat(f); err == nil {
				taken[filepath.Base(f)] = info.Size()
			}
		}
	}
	at := disk.Share{Percent: share}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
	}
	if _, known = disk.Free(dir); !known {
		return 0, false
	}
	var sum int64
	for _, n := range taken {
		sum += n
	}
	return at.Of(dir, sum), true
}

package plan

import (
	"slices"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/member"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/storage"
)

// smaller are settings that take less memory or disk, those that change the model least first. One that a job cannot
// have is left out.
var smaller = []string{"training.gradient_checkpointing=true", "training.micro_batch_size=1",
	"training.optimizer.state=int8", "strategy.optimizer_state_rounds=1", "training.precision=bf16"}

// Room is memory and disk of one machine, in bytes.
type Room struct {
	Memory uint64
	Disk   int64
}

// beyond is by how much of each a need exceeds the room.
func (r Room) beyond(free Room) (memory uint64, disk int64) {
	return r.Memory - min(r.Memory, free.Memory), max(0, r.Disk-free.Disk)
}

// Fitting returns settings, as --set takes them, with which a job takes no more memory and disk than is free if this
// machine does all of it, and how much it then takes; not ok if no such settings are known. Settings that do not lower
// what there is too little of are left out.
func Fitting(j *job.Job, free Room) (set []string, need Room, ok bool) {
	need, err := needs(j, nil, free)
	if err != nil {
		return nil, Room{}, false
	}
	for _, s := range smaller {
		try := append(slices.Clone(set), s)
		all, err := needs(j, try, free)
		if err != nil {
			continue
		}
		memory, disk := need.beyond(free)
		if m, d := all.beyond(free); m >= memory && d >= disk {
			continue
		}
		if set, need = try, all; need.Memory <= free.Memory && need.Disk <= free.Disk {
			return set, need, true
		}
	}
	return nil, Room{}, false
}

// needs is what a job with more settings takes in all, on a machine with so much that is free.
func needs(j *job.Job, set []string, free Room) (Room, error) {
	other, err := job.Parse(j.Source, j.Path, slices.Concat(j.Overrides, set)...)
	if err != nil {
		return Room{}, err
	}
	b, err := prepare.Outline(other)
	if err != nil {
		return Room{}, err
	}
	defer b.Close()
	o, err := b.LocalOrder()
	if err != nil {
		return Room{}, err
	}
	exec, err := b.Spec.Compile(b.Step, kernel.Cores)
	if err != nil {
		return Room{}, err
	}
	parties := prepare.Workers(b) + int(o.Verifiers)
	all, err := prepare.Memory(b, exec, parties)
	if err != nil {
		return Room{}, err
	}
	d, err := storage.In(b, o.Terms, member.DefaultKeep, parties, free.Memory, true)
	return Room{Memory: all, Disk: d.In(free.Disk)}, err
}

// Package laid finds the room that a member needs for a job: the memory and the disk for all of it or, of a job in
// stages, the memory for one stage, and the disk for the rest.
package laid

import (
	"context"

	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
)

// Budget has room for jobs.
type Budget interface {
	// Reserve sets bytes aside for a job, in place of those that it had.
	Reserve(job string, need int64) error
	// Release gives back what a job has.
	Release(job string)
}

// Room is where a member has the room for a job.
type Room struct {
	Job          string
	Disk, Memory Budget
	Store        *quota.Store
	Keep         int // checkpoints of the lineage
}

// Take takes the room for a job, and says how its engine holds what it computes with: a *member.ShortageError if there
// is too little, and then nothing is taken. giveBack gives back all of it; where the context ends before, what lies in
// files goes back, and the caller releases what the budgets have promised. Of a job in stages the checkpoints and the
// frozen tensors lie in files that were promised to it, if the disk has room for them; they stay in memory if the
// memory has.
func (r Room) Take(ctx context.Context, j *bundle.Job, m crew.Member, threads int,
	h engine.Holding) (with engine.Holding, giveBack func(), err error) {
	giveBack = func() {
		r.Disk.Release(r.Job)
		r.Memory.Release(r.Job)
	}
	defer func() {
		if err != nil {
			giveBack()
		}
	}()
	blobs := j.Footprint(r.Keep)
	if a, ok := h.Aside.(memory.Aside); ok && memory.Maps && j.Spec.Pipeline != nil && h.Shared == nil {
		stage, err := j.StageMemory(threads, m.Role == crew.Verifier)
		if err != nil {
			return h, giveBack, err
		}
		if r.Disk.Reserve(r.Job, blobs+j.Aside()) == nil {
			if free, err := r.Store.Reserve(ctx, j.Aside()); err == nil {
				stop, budgets := context.AfterFunc(ctx, free), giveBack
				giveBack = func() {
					if stop() {
						free()
					}
					budgets()
				}
				a.Reserve = nil // the job has the room
				h.Aside = a
				return h, giveBack, r.Memory.Reserve(r.Job, stage)
			}
		}
	}
	if err := r.Disk.Reserve(r.Job, blobs); err != nil {
		return h, giveBack, err
	}
	need := j.Memory
	if m.Generates {
		need = j.DrawingMemory
	}
	return h, giveBack, r.Memory.Reserve(r.Job, need(threads))
}

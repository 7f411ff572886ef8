package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/memory"
)

// DefaultDisk is the share of the free disk that a worker or verifier gives to blobs.
var DefaultDisk = disk.Share{Percent: 50}

// openStore opens the blobs of a party, and keeps them within a share of the disk.
func openStore(ctx context.Context, dir string, share disk.Share) (*blob.Bounded, error) {
	s, err := blob.OpenDisk(dir)
	if err != nil {
		return nil, err
	}
	var taken int64
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if info, e := e.Info(); err == nil && e == nil && !info.IsDir() {
			taken += info.Size()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return blob.NewBounded(ctx, s, share.Of(dir, taken))
}

// RoomError says that a job needs more of the disk, or of the memory, than there is for it.
type RoomError struct {
	Of                resource
	Need, Free, Quota int64 // bytes
}

// resource is what a job needs room in, as a sentence has it.
type resource string

const (
	onDisk   resource = "blobs"
	inMemory resource = "memory"
)

// code and flag are what an owner is told of too little of it: a code, and the flag that gives more.
func (r resource) code() (code, flag string) {
	if r == inMemory {
		return "MEMORY_TOO_SMALL", "--memory"
	}
	return "STORE_TOO_SMALL", "--disk"
}

func (e *RoomError) Error() string {
	const mib = 1 << 20
	return fmt.Sprintf("the job may need %d MiB of %s, and %d MiB of %d MiB are not promised to others", (e.Need+mib-1)/mib, e.Of, max(0, e.Free)/mib, e.Quota/mib)
}

// room is what a store, or the memory of a machine, has for runs.
type room struct {
	of    resource
	quota int64
	now   func() (bytes int64, ok bool) // that could be taken at this moment; nil: all of the quota

	mu       sync.Mutex
	promised map[string]int64 // bytes, by job
}

func newRoom(quota int64) *room { return &room{of: onDisk, quota: quota, promised: map[string]int64{}} }

// newMemory is the memory for runs: the MiB that the owner gives; or else three quarters of what is free at the start, and never
// more than three quarters of what is free when a run begins. Where free memory is not known, it is what any program may take.
func newMemory(mib uint64) *room {
	r := &room{of: inMemory, quota: program.DefaultLimits.MaxMemory, promised: map[string]int64{}}
	if mib > 0 {
		r.quota = int64(min(mib, math.MaxInt64>>20)) << 20
		return r
	}
	free := func() (int64, bool) {
		available, _, ok := memory.Available()
		return int64(available / 4 * 3), ok
	}
	if quota, ok := free(); ok {
		r.quota, r.now = quota, free
	}
	return r
}

// promise sets bytes aside for a job until it is given back: a *RoomError if there are not as many.
func (r *room) promise(job string, need int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := r.quota
	for other, bytes := range r.promised {
		if other != job {
			free -= bytes
		}
	}
	if r.now != nil && r.promised[job] == 0 {
		if now, ok := r.now(); ok {
			free = min(free, now)
		}
	}
	if need > free {
		return &RoomError{Of: r.of, Need: need, Free: free, Quota: r.quota}
	}
	r.promised[job] = need
	return nil
}

func (r *room) giveBack(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.promised, job)
}

// retention is how long the last checkpoints of a run stay after its end, for a consumer who was away.
const retention = 24 * time.Hour

// fileRetained, in the folder of a party, says what is kept of runs that are over.
const fileRetained = "retained.json"

// retained is what is kept of runs that are over, by job. It survives the process.
type retained struct {
	path  string
	store *blob.Bounded

	mu   sync.Mutex
	jobs map[string]retainedJob
}

type retainedJob struct {
	Until time.Time `json:"until"`
	Blobs []string  `json:"blobs"`
}

// openRetained pins what was kept when the process ended.
func openRetained(dir string, store *blob.Bounded, now time.Time) (*retained, error) {
	r := &retained{path: filepath.Join(dir, fileRetained), store: store, jobs: map[string]retainedJob{}}
	if err := readJSON(r.path, &r.jobs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for job, kept := range r.jobs {
		var list []blob.CID
		for _, s := range kept.Blobs {
			if c, err := blob.Parse(s); err == nil {
				list = append(list, c)
			}
		}
		store.Pin(job, list)
	}
	return r, r.expire(now)
}

// keep pins blobs of a job, and nothing else of it, for the time of retention; with none the job is let go of.
func (r *retained) keep(job string, list []blob.CID, now time.Time) error {
	r.store.Pin(job, list)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, job)
	if len(list) > 0 {
		kept := retainedJob{Until: now.Add(retention)}
		for _, c := range list {
			kept.Blobs = append(kept.Blobs, c.String())
		}
		r.jobs[job] = kept
	}
	return writeJSON(r.path, r.jobs)
}

// blobs are those of all jobs.
func (r *retained) blobs() (list []blob.CID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, job := range slices.Sorted(maps.Keys(r.jobs)) {
		for _, s := range r.jobs[job].Blobs {
			if c, err := blob.Parse(s); err == nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// expire lets go of what was kept for long enough.
func (r *retained) expire(now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed := false
	for job, kept := range r.jobs {
		if now.After(kept.Until) {
			delete(r.jobs, job)
			r.store.Pin(job, nil)
			changed = true
		}
	}
	if !changed {
		return nil
	}
	return writeJSON(r.path, r.jobs)
}

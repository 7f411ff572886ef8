package member

import (
	"context"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"sync"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/memory"
)

// DefaultDisk is the share of the free disk that a worker or verifier gives to blobs.
var DefaultDisk = disk.Share{Percent: 50}

// OpenStore opens the blobs of a party, and keeps them within a share of the disk.
func OpenStore(ctx context.Context, dir string, share disk.Share) (*quota.Store, error) {
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
	return quota.New(ctx, s, share.Of(dir, taken))
}

// AsideIn is a folder for data of a party that are seldom read. They count as bytes of its store, and take only room
// that no job was promised: they can stay in memory, and blobs cannot.
func AsideIn(dir string, s *quota.Store, b *Budget) memory.Aside {
	return memory.Aside{Dir: dir, Reserve: func(bytes int64) (func(), error) {
		giveBack, err := b.putAside(bytes)
		if err != nil {
			return nil, err
		}
		free, err := s.Reserve(context.Background(), bytes)
		if err != nil {
			giveBack()
			return nil, err
		}
		return func() { free(); giveBack() }, nil
	}}
}

// AsideOf is AsideIn for a party that takes the room from a budget of all parties of its process alone.
func AsideOf(dir string, b *Budget) memory.Aside { return memory.Aside{Dir: dir, Reserve: b.putAside} }

// ShortageError says that a job needs more of the disk, or of the memory, than there is for it.
type ShortageError struct {
	Of                resource
	Need, Free, Quota int64  // bytes
	Share             string // what the quota is of
}

// resource is what a job needs room in, as a sentence has it.
type resource string

const (
	onDisk   resource = "of disk"
	inMemory resource = "of memory"
)

// Code and flag name a shortage to the owner: a code, and the flag that gives more.
func (r resource) Code() (code, flag string) {
	if r == inMemory {
		return "MEMORY_TOO_SMALL", "--memory"
	}
	return "STORE_TOO_SMALL", "--disk"
}

func (e *ShortageError) Error() string {
	const mib = 1 << 20
	return fmt.Sprintf("the job may need %d MiB %s, and %d MiB are free of the %d MiB that jobs may use: %s",
		(e.Need+mib-1)/mib, e.Of, max(0, e.Free)/mib, e.Quota/mib, e.Share)
}

// Budget is what a store, or the memory of a machine, has for runs.
type Budget struct {
	of    resource
	share string // what the quota is of, for people
	quota int64
	now   func() (bytes int64, ok bool) // that could be taken at this moment; nil: all of the quota

	mu       sync.Mutex
	promised map[string]int64 // bytes, by job
	aside    int64            // bytes of no job (AsideIn)
}

// NewDiskBudget is the disk for runs; share says what the quota is of.
func NewDiskBudget(quota int64, share string) *Budget {
	return &Budget{of: onDisk, share: share, quota: quota, promised: map[string]int64{}}
}

// unknownMemory is what runs may take where free memory is not known.
const unknownMemory = 64 << 30

// NewMemoryBudget is the memory for runs: the MiB that the owner gives, or else three quarters of the free memory at
// the start, and never more than three quarters of the free memory when a run begins. Where free memory is not known,
// it is unknownMemory.
func NewMemoryBudget(mib uint64) *Budget {
	r := &Budget{of: inMemory, share: "three quarters of the free memory",
		quota: unknownMemory, promised: map[string]int64{}}
	if mib > 0 {
		r.quota, r.share = int64(min(mib, math.MaxInt64>>20))<<20, "what --memory says"
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

// Reserve sets bytes aside for a job until it is given back: a *RoomError if there are not as many.
func (r *Budget) Reserve(job string, need int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	free := r.free(job)
	if r.now != nil && r.promised[job] == 0 {
		if now, ok := r.now(); ok {
			free = min(free, now)
		}
	}
	if need > free {
		return &ShortageError{Of: r.of, Need: need, Free: free, Quota: r.quota, Share: r.share}
	}
	r.promised[job] = need
	return nil
}

// Extend sets more bytes aside for a job that has some, and returns how many: as many as it can use, and at most half
// of those that are free besides some to spare. Other jobs find the rest.
func (r *Budget) Extend(job string, most, spare int64) (more int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	more = max(0, min(most, (r.free(job)-r.promised[job]-spare)/2))
	r.promised[job] += more
	return more
}

// free is how many bytes nothing but a job has.
func (r *Budget) free(job string) int64 {
	free := r.quota - r.aside
	for other, bytes := range r.promised {
		if other != job {
			free -= bytes
		}
	}
	return free
}

// putAside takes bytes that no job was promised until they are given back.
func (r *Budget) putAside(bytes int64) (giveBack func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if free := r.free(""); bytes > free {
		return nil, &ShortageError{Of: r.of, Need: bytes, Free: free, Quota: r.quota, Share: r.share}
	}
	r.aside += bytes
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.aside -= bytes
	}, nil
}

// Release gives back the bytes that a job was promised.
func (r *Budget) Release(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.promised, job)
}

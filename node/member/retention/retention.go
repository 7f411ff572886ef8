// Package retention keeps the last blobs of runs that are over in a store, for a day, over restarts of the process.
package retention

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/quota"
	"github.com/starling-network/starling/node/folder"
)

// period is how long the last checkpoints of a run stay after its end, for a consumer who was away.
const period = 24 * time.Hour

// file, in the folder of a party, says what is kept of runs that are over.
const file = "retained.json"

// Store is what is kept of runs that are over, by job. It survives the process.
type Store struct {
	path  string
	store *quota.Store

	mu   sync.Mutex
	jobs map[string]keptJob
}

type keptJob struct {
	Until time.Time `json:"until"`
	Blobs []string  `json:"blobs"`
}

// Open pins what was kept when the process ended.
func Open(dir string, store *quota.Store, now time.Time) (*Store, error) {
	r := &Store{path: filepath.Join(dir, file), store: store, jobs: map[string]keptJob{}}
	if err := folder.ReadJSON(r.path, &r.jobs); err != nil && !errors.Is(err, fs.ErrNotExist) {
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
	return r, r.Expire(now)
}

// Keep pins blobs of a job, and nothing else of it, for the time of retention; with none the job is let go of.
func (r *Store) Keep(job string, list []blob.CID, now time.Time) error {
	r.store.Pin(job, list)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.jobs, job)
	if len(list) > 0 {
		kept := keptJob{Until: now.Add(period)}
		for _, c := range list {
			kept.Blobs = append(kept.Blobs, c.String())
		}
		r.jobs[job] = kept
	}
	return folder.WriteJSON(r.path, r.jobs)
}

// Blobs are those of all jobs.
func (r *Store) Blobs() (list []blob.CID) {
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

// Expire releases the blobs whose retention has ended.
func (r *Store) Expire(now time.Time) error {
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
	return folder.WriteJSON(r.path, r.jobs)
}

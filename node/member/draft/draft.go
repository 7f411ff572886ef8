// Package draft keeps the parameters and moments of a unit that is half computed in a file, from which another process
// of the party continues the unit. When that is done is for role/engine.
package draft

import (
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/role/engine"
)

// folder, in a party's folder, holds what there is of units that it computes.
const folder = "drafts"

// A draft is written at most once in interval, and so seldom that it takes one part of share of the time.
const (
	interval = 10 * time.Second
	share    = 100
)

// Store is the file in which a party keeps what there is of the unit of a run that it computes: parameters and
// moments, 12 bytes a parameter. It implements engine.Drafts.
type Store struct {
	// Reserve asks for the room of a draft on the disk, which free gives back: without room there is none. nil: there is
	// enough.
	Reserve func(bytes int64) (free func(), err error)
	Bytes   int64 // of a draft

	path string
	free func() // gives the room of the file back; nil: it has none
	log  *slog.Logger
	next time.Time // when the next one is due
	wait time.Duration
}

// NewStore returns the drafts of a run in a party's folder.
func NewStore(dir, job string, log *slog.Logger) *Store {
	d := &Store{path: filepath.Join(dir, folder, canon.Sum("starling/drafts/1", []byte(job)).Short()),
		log: log, wait: interval}
	d.next = time.Now().Add(d.wait)
	return d
}

// Save implements engine.Drafts.
func (d *Store) Save(last bool, write func(io.Writer) error) {
	begin := time.Now()
	if !last && begin.Before(d.next) {
		return
	}
	free, err := func() {}, error(nil)
	if d.Reserve != nil { // the file that is there stays until it is replaced
		free, err = d.Reserve(d.Bytes)
	}
	if err == nil {
		if err = d.replace(write); err == nil {
			free, d.free = d.free, free
		}
		if free != nil {
			free()
		}
	}
	if err != nil {
		d.log.Warn("what there is of the unit is not kept", "err", err)
	}
	took := time.Since(begin)
	d.next = begin.Add(took + max(d.wait, share*took))
}

// replace writes a temporary file in the same folder and renames it. The file is not synced: the engine detects and
// drops a draft that a power failure damaged.
func (d *Store) replace(write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(d.path), 0o700); err != nil {
		return err
	}
	part := d.path + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, d.path)
}

// Load implements engine.Drafts.
func (d *Store) Load(read func(io.Reader) error) {
	f, err := os.Open(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		err = errors.Join(read(f), f.Close())
	}
	if err != nil {
		d.log.Info("what there is of a unit is of no use", "err", err)
	}
}

// Drop implements engine.Drafts.
func (d *Store) Drop() {
	d.next = time.Now().Add(d.wait)
	if err := os.Remove(d.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.log.Warn("what there was of a unit stays on the disk", "err", err)
	}
	if d.free != nil {
		d.free()
		d.free = nil
	}
}

var _ engine.Drafts = (*Store)(nil)

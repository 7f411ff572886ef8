// Package capacity measures what the declaration of a machine says besides its rate: memory, by writing and reading all
// of it; disk, by its free space and by a file; and round trips to participants that the beacon of the network draws.
//
// The owner of the machine learns it before the network does. Nothing of it is sent: docs/adr/0164 says which
// properties of a machine the rules measure.
package capacity

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/starling-network/starling/compute/mapped"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/memory"
)

// Memory is the memory that a machine would declare.
type Memory struct {
	Declared uint64 `json:"declared_mib"`
	Left     uint64 `json:"available_mib"` // by the system, before it was touched
	Touched  uint64 `json:"touched_mib"`   // 0: the system has less than is declared
	// bytes a second of the second look at its pages, in another order; slow where the system pages
	Rate float64 `json:"bytes_per_second,omitempty"`
}

// Short reports whether the machine lacks the memory that it would declare.
func (m Memory) Short() bool { return m.Touched < m.Declared }

const (
	page  = 4096
	chunk = 64 << 20 // bytes that are taken at a time
)

// errMemory is a page that does not hold what was written to it.
var errMemory = errors.New("capacity: memory does not hold what is written to it")

// Touch writes a number to every page of memory of a size in MiB, and reads all of them in another order. It touches
// nothing if the system has less.
func Touch(ctx context.Context, mib uint64) (Memory, error) {
	left, _, ok := memory.Available()
	m := Memory{Declared: mib, Left: left >> 20}
	if ok && m.Left < mib {
		return m, nil
	}
	var blocks []*mapped.Block
	defer func() {
		for _, b := range blocks {
			b.Free()
		}
	}()
	each := func(do func(b *mapped.Block, i int) error) error {
		for i, b := range blocks {
			if err := errors.Join(ctx.Err(), do(b, i)); err != nil {
				return err
			}
		}
		return nil
	}
	number := func(i, at int) uint64 { return uint64(i)<<32 | uint64(at) ^ 0x5bd1e995 }
	for size := mib << 20; size > 0; size -= min(size, chunk) {
		blocks = append(blocks, mapped.New(int(min(size, chunk))))
	}
	err := each(func(b *mapped.Block, i int) error {
		for at := 0; at < len(b.Bytes); at += page {
			binary.LittleEndian.PutUint64(b.Bytes[at:], number(i, at))
		}
		return nil
	})
	if err != nil {
		return m, err
	}
	began := time.Now()
	err = each(func(b *mapped.Block, i int) error {
		pages := len(b.Bytes) / page
		for k := range pages {
			at := k * 8191 % pages * page // 8191 is prime and no block has as many pages, so every page has its turn
			if binary.LittleEndian.Uint64(b.Bytes[at:]) != number(i, at) {
				return errMemory
			}
		}
		return nil
	})
	if err == nil {
		m.Touched, m.Rate = mib, float64(mib<<20)/time.Since(began).Seconds()
	}
	return m, err
}

// Disk is the disk of a folder.
type Disk struct {
	Free  uint64  `json:"free_mib"` // 0: the system does not say
	Share uint64  `json:"share_mib"`
	Write float64 `json:"write_bytes_per_second"` // of a file, until the system says that it is on the disk
	Read  float64 `json:"read_bytes_per_second"`  // of that file, whose cached pages the system was asked to drop
	Error string  `json:"error,omitempty"`        // why nothing was written
}

// fileBytes is the size of the file that Write measures with.
const fileBytes = 64 << 20

// Write writes a file into a folder, reads it back and compares it. share is the part of the disk that blobs may take.
// A folder in which nothing can be written is no error: Disk says so.
func Write(dir string, share disk.Share) Disk {
	d, err := write(dir, share)
	if err != nil {
		d.Error = err.Error()
	}
	return d
}

func write(dir string, share disk.Share) (d Disk, err error) {
	free, _ := disk.Free(dir)
	d.Free, d.Share = uint64(max(0, free))>>20, uint64(share.Of(dir, 0))>>20
	if free > 0 && free < 2*fileBytes {
		return d, fmt.Errorf("capacity: %s has %d MiB left, too little to measure", dir, d.Free)
	}
	f, err := os.CreateTemp(dir, ".capacity-*")
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	data, back := make([]byte, 1<<20), make([]byte, 1<<20)
	began := time.Now()
	for i := range fileBytes / len(data) {
		fill(data, i)
		if _, err := f.Write(data); err != nil {
			return d, err
		}
	}
	if err := f.Sync(); err != nil {
		return d, err
	}
	d.Write = fileBytes / time.Since(began).Seconds()
	dropCached(f)
	began = time.Now()
	for i := range fileBytes / len(data) {
		if _, err := f.ReadAt(back, int64(i*len(back))); err != nil {
			return d, err
		}
		if fill(data, i); string(back) != string(data) {
			return d, fmt.Errorf("capacity: %s does not hold what is written to it", dir)
		}
	}
	d.Read = fileBytes / time.Since(began).Seconds()
	return d, nil
}

// fill writes numbers that no disk stores in less space.
func fill(data []byte, i int) {
	for at := 0; at < len(data); at += 16 {
		for k, v := range philox.Block(0, uint64(i), uint64(at)) {
			binary.LittleEndian.PutUint32(data[at+4*k:], v)
		}
	}
}

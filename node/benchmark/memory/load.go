package memory

import (
	"context"
	"errors"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/memory"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/role/bundle"
)

// LoadReport is the memory of loading the last checkpoint of a run in a process of its own.
type LoadReport struct {
	State   uint64  `json:"state_bytes"` // of the checkpoint
	Start   uint64  `json:"start_bytes"` // memory.Start of this process
	Peak    uint64  `json:"peak_bytes"`  // of this process
	Seconds float64 `json:"seconds"`
}

// Load loads and verifies the last checkpoint of an output folder as a member of a run does.
func Load(ctx context.Context, dir string) (*LoadReport, error) {
	defer memory.Pace(0)()
	defer memory.Bare()()
	start := memory.Start()
	o := &rundir.OutDir{Path: dir}
	if err := o.ReadRun(); err != nil {
		return nil, benchmark.Unusable(dir, err)
	}
	lines, err := rundir.ParseLineage(o.File(rundir.FileLineage), o.Run.ID)
	if err == nil && len(lines) == 0 {
		err = errors.New("it has no checkpoint")
	}
	if err != nil {
		return nil, benchmark.Unusable(dir, err)
	}
	store, err := blob.OpenDisk(o.File(rundir.DirBlobs))
	if err != nil {
		return nil, err
	}
	last := lines[len(lines)-1].AsCheckpoint()
	id, err := blob.Parse(last.CID)
	if err != nil {
		return nil, err
	}
	blobs, err := checkpoint.Blobs(ctx, store.Get, id)
	if err != nil {
		return nil, err
	}
	var size int64
	for _, b := range blobs {
		r, err := store.Open(ctx, b)
		if err != nil {
			return nil, err
		}
		size += r.Manifest().Size
		if err := r.Close(); err != nil {
			return nil, err
		}
	}
	begin := time.Now()
	c, err := bundle.LoadCheckpointEach(ctx, last, store.Get, checkpoint.InTurn, memory.Aside{Dir: dir}.Room(size))
	if err != nil {
		return nil, err
	}
	r := &LoadReport{Seconds: benchmark.Rounded(time.Since(begin).Seconds(), 3), Start: start,
		Peak: memory.Peak()}
	for _, t := range c.Tensors() {
		r.State += uint64(t.Shape.Bytes())
	}
	return r, nil
}

package catalog

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/catalog"
)

// usedBy is the digest by which the specification of a run in a folder names what it used: its data, or for a model the
// weights that it froze, or the checkpoint that it started from.
func usedBy(ctx context.Context, folder string, kind catalog.Kind) (d canon.Digest, err error) {
	s, err := specOf(ctx, folder)
	if err != nil {
		return d, terminal.WithExit(&terminal.Problem{Code: "NO_RUN", What: folder + " has no specification of a run",
			Why: err.Error(), Fix: "name the output folder of a run that used the work"}, terminal.ExitNotFound)
	}
	switch {
	case kind == catalog.Data:
		return s.Data, nil
	case !s.Frozen.IsZero():
		return s.Frozen, nil
	}
	return s.Genesis, nil
}

func specOf(ctx context.Context, folder string) (*train.Spec, error) {
	o := &rundir.OutDir{Path: folder} // one file is read, without the lock of the folder
	if err := o.ReadRun(); err != nil {
		return nil, err
	}
	id, err := blob.Parse(o.Run.Blobs.Spec)
	if err != nil {
		return nil, err
	}
	store, err := blob.OpenDisk(o.File(rundir.DirBlobs))
	if err != nil {
		return nil, err
	}
	text, err := store.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	return train.DecodeSpec(text)
}

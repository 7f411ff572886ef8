package adversary

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// SkipsReduction is a member that computes no slice that is drawn for it; or, if it seals, shows none.
type SkipsReduction struct{ Seals bool }

// Install implements Attack.
func (a SkipsReduction) Install(c Setup) Step {
	honest := c.Party.Chain
	c.Party.Chain = tamperedChain{honest, func(ctx context.Context, m role.Action) error {
		_, seals := m.(role.SealSlice)
		if _, shows := m.(role.ShowSlice); shows || seals && !a.Seals {
			return fmt.Errorf("adversary: says nothing about slices")
		}
		return honest.Send(ctx, m)
	}}
	return c.Step
}

// FakesSlices is a member that makes up the slices that are drawn for it, always in the same way: two of them agree.
type FakesSlices struct{}

// Install implements Attack.
func (FakesSlices) Install(c Setup) Step {
	c.Party.Lineage = faker{c.Party.Lineage, c.Party.Blobs}
	return c.Step
}

type faker struct {
	party.Lineage
	blobs party.Blobs
}

// Reduce implements party.Lineage.
func (f faker) Reduce(ctx context.Context, base terms.Checkpoint, _ work.Units, slice int,
	_ func(u work.Unit, cid string) ([]byte, error)) (string, error) {
	id, err := f.blobs.Put(ctx, fmt.Appendf(nil, "slice %d of round %d", slice, base.Round))
	return id.String(), err
}

// WithholdsPiece is a worker that serves its updates but for one slice.
type WithholdsPiece struct{ Slice int }

// Install implements Attack.
func (a WithholdsPiece) Install(c Setup) Step {
	c.Party.Compute = withholder{c.Party.Compute, a.Slice}
	return c.Step
}

type withholder struct {
	party.Compute
	slice int
}

// Train implements party.Compute.
func (w withholder) Train(ctx context.Context, base terms.Checkpoint, unit uint32) (*engine.Work, error) {
	done, err := w.Compute.Train(ctx, base, unit)
	if err != nil {
		return nil, err
	}
	kept := *done
	kept.Pieces = append(append([][]byte(nil), done.Pieces[:w.slice]...), done.Pieces[w.slice+1:]...)
	return &kept, nil
}

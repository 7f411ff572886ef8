package party

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
)

// keeping is a store that serves what was put into it.
type keeping struct {
	*wire
	own map[blob.CID][]byte
}

func (k keeping) Has(_ context.Context, c blob.CID) (bool, error) { return k.own[c] != nil, nil }

func (k keeping) Put(_ context.Context, b []byte) (blob.CID, error) {
	k.own[blob.Of(b)] = b
	return blob.Of(b), nil
}

func (k keeping) Await(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	if b := k.own[c]; b != nil {
		return b, nil
	}
	if ctx.Err() == nil {
		return nil, errors.New("it waits for an update of an attested round")
	}
	return k.wire.Await(ctx, c, holders)
}

// trains computes the update of each unit.
type trains struct {
	Compute
	updates [][]byte
	units   []uint32 // that were computed
}

func (c *trains) Train(_ context.Context, _ terms.Checkpoint, unit uint32) (*engine.Work, error) {
	c.units = append(c.units, unit)
	b := c.updates[unit]
	return &engine.Work{Update: b, Commit: work.Commitment{UpdateCID: blob.Of(b).String()}}, nil
}

// begun starts every unit.
type begun struct{ lineage }

func (begun) Start(context.Context, terms.Checkpoint, uint32, []string) error { return nil }

// attested is a run whose round 7 is attested.
func attested() run.State {
	var s run.State
	s.Rules, s.Terms.AuditPPM, s.Round = progress.ReportsExtend, 1, 8
	return s
}

// A round whose updates are not served is combined all the same: the units are executed, and their updates served from
// then on. Of a round that is attested no update is waited for, and the first that is missing is reported.
func TestUpdatesThatNoMemberServesAreExecuted(t *testing.T) {
	updates := [][]byte{[]byte("zero"), []byte("one"), []byte("two")}
	var units work.Units
	for i, b := range updates {
		units = append(units, &work.Unit{Index: uint32(i), Worker: "ann",
			Commit: work.Commitment{UpdateCID: blob.Of(b).String()}})
	}
	w := &wire{members: []string{"bob"}, serve: map[string][]byte{"bob": updates[1]}}
	compute := &trains{updates: updates}
	blobs := keeping{w, map[blob.CID][]byte{}}
	p := &Executor{ID: "me", Lineage: begun{}, Compute: compute, Chain: w, Blobs: blobs}
	p.waits.follow(attested())
	a := role.Advance{Base: terms.Checkpoint{Round: 7}, Units: units}

	if f, failed := p.Perform(t.Context(), a).(role.Failed); !failed || !errors.Is(f.Err, blob.ErrNotFound) ||
		len(w.sent) != 1 || w.sent[0] != (role.Missing{Work: work.UnitID{Round: 7}}) {
		t.Errorf("without an execution: %v; sent %+v", f.Err, w.sent)
	}
	a.Executes = true
	if e, combined := p.Perform(t.Context(), a).(role.Advanced); !combined || e.Next.Round != 8 {
		t.Errorf("with an execution: %+v", e)
	}
	if len(compute.units) != 2 || blobs.own[blob.Of(updates[0])] == nil || blobs.own[blob.Of(updates[2])] == nil {
		t.Errorf("executed units %v", compute.units)
	}

	compute.updates = [][]byte{[]byte("another"), []byte("another"), []byte("another")}
	clear(blobs.own)
	if f, failed := p.Perform(t.Context(), a).(role.Failed); !failed || f.Err == nil || len(blobs.own) > 0 {
		t.Errorf("a unit whose execution gives another update: %+v; %d blobs", f, len(blobs.own))
	}
}

// A wait for an update ends when its round is attested, and not before.
func TestWaitsEndWithTheirRound(t *testing.T) {
	var w waits
	ctx, done := w.begin(t.Context(), 7)
	next, doneToo := w.begin(t.Context(), 8)
	if ctx.Err() != nil {
		t.Error("it ends at once")
	}
	earlier := attested()
	earlier.Rules = progress.RatesCount
	if w.follow(earlier); ctx.Err() != nil {
		t.Error("it ends in a run in which a report gives no time")
	}
	if w.follow(attested()); ctx.Err() == nil || next.Err() != nil {
		t.Errorf("round 7 is attested: %v, and round 8: %v", ctx.Err(), next.Err())
	}
	done()
	doneToo()
	if len(w.stops) > 0 {
		t.Errorf("%d waits stay", len(w.stops))
	}
}

package training

import (
	"context"
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
)

// FuzzPublished compares published with the events that the SDK makes of the same message.
func FuzzPublished(f *testing.F) {
	f.Add("job", "unit_committed", "starling1xyz", "", uint32(0), uint32(7))
	f.Add("<a href=\"b\">&\u2028\x7f\n", "\xff\xfe", "\\", "\x00", uint32(1<<31), ^uint32(0))
	f.Fuzz(func(t *testing.T, job, kind, who, why string, round, unit uint32) {
		e := &trainingpb.EventRun{Job: job, Kind: kind, Round: round, Unit: unit, Who: who, Other: why + who, Why: why,
			Segment: round ^ unit}
		want, err := sdk.TypedEventToEvent(e)
		if err != nil {
			t.Skip(err)
		}
		if diff := cmp.Diff(want, published(e)); diff != "" {
			t.Error(diff)
		}
	})
}

// patron counts the missed duties that it receives, by account.
type patron struct {
	Registry
	missed map[string]int
}

func (p patron) Missed(_ context.Context, id string) error {
	p.missed[id]++
	return nil
}

// A job whose units no worker can finish in time must not cost its workers their uptime: all units that are late in one
// block count as one missed deadline.
func TestOneDeadlineIsMissedOnce(t *testing.T) {
	p := patron{missed: map[string]int{}}
	k := &Keeper{registry: p}
	for range 2 {
		missed := map[string]bool{}
		for unit := range uint32(512) {
			for _, who := range []string{"a", "b"} {
				e := event.Event{Kind: event.UnitReassigned, Unit: unit, Who: who, Why: reason.MissedDeadline}
				s := run.State{Progress: progress.Progress{Crew: crew.Crew{Members: []crew.Member{{ID: "c", Commits: 1}}}}}
				if err := k.remember(t.Context(), s, e, missed, true); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if p.missed["a"] != 2 || p.missed["b"] != 2 {
		t.Errorf("in two blocks they missed %v", p.missed)
	}
}

// A missed deadline does not count before a worker has committed a unit: nothing shows that the job can be opened.
func TestNothingIsMissedBeforeAnybodyHasWorked(t *testing.T) {
	p := patron{missed: map[string]int{}}
	k := &Keeper{registry: p}
	e := event.Event{Kind: event.UnitReassigned, Who: "a", Why: reason.MissedDeadline}
	s := run.State{Progress: progress.Progress{Crew: crew.Crew{Members: []crew.Member{{ID: "a"}}}}}
	if err := k.remember(t.Context(), s, e, map[string]bool{}, true); err != nil || p.missed["a"] != 0 {
		t.Errorf("missed %v, %v", p.missed, err)
	}
}

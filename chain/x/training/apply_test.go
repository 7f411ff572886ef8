package training

import (
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/chain/x/training/trainingpb"
)

// FuzzPublished compares events with those that the SDK makes of the same message.
func FuzzPublished(f *testing.F) {
	f.Add("job", "unit_committed", "starling1xyz", "", uint32(0), uint32(7))
	f.Add("<a href=\"b\">&\u2028\x7f\n", "\xff\xfe", "\\", "\x00", uint32(1<<31), ^uint32(0))
	f.Fuzz(func(t *testing.T, job, kind, who, why string, round, unit uint32) {
		e := &trainingpb.EventRun{Job: job, Kind: kind, Round: round, Unit: unit, Who: who, Other: why + who, Why: why, Segment: round ^ unit}
		want, err := sdk.TypedEventToEvent(e)
		if err != nil {
			t.Skip(err)
		}
		if diff := cmp.Diff(want, published(e)); diff != "" {
			t.Error(diff)
		}
	})
}

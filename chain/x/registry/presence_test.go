package registry

import (
	"testing"

	"github.com/starling-network/starling/chain/storetest"
)

// Signs that a verifier is present are kept as long as they count: an answer for a day, a miss for its epoch.
func TestPresence(t *testing.T) {
	service, ctx := storetest.Open(t, Name)
	k, err := NewKeeper(service, nil, "", still{}, still{}, still{})
	if err != nil {
		t.Fatal(err)
	}
	params, err := k.Params(ctx)
	if err != nil {
		t.Fatal(err)
	}
	epoch := params.EpochBlocks
	at := func(height int64) { ctx = ctx.WithBlockHeight(height) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	at(10)
	must(k.Answered(ctx, "a", 7, true))
	must(k.Answered(ctx, "b", 8, true))
	must(k.Absent(ctx, "b"))
	must(k.Absent(ctx, "c"))
	for _, c := range []struct {
		height           int64
		id               string
		known            bool
		answered, missed bool
	}{
		{epoch - 1, "a", true, true, false}, {epoch - 1, "b", true, true, true}, {epoch - 1, "c", true, false, true},
		{2*epoch - 1, "b", true, true, false}, {2*epoch - 1, "c", false, false, false},
		{24*epoch + 9, "a", true, true, false}, {24*epoch + 10, "a", false, false, false},
	} {
		at(c.height)
		must(k.Turn(ctx, c.height, nil, nil))
		all, err := k.Presences(ctx)
		must(err)
		p, known := all[c.id]
		if answered, missed := p.Shows(params, c.height); known != c.known || answered != c.answered || missed != c.missed {
			t.Errorf("at %d %s is known %t, answered %t, missed %t", c.height, c.id, known, answered, missed)
		}
	}
	if away, err := k.absences.Get(ctx, "b"); err != nil || away.Missed != 1 {
		t.Errorf("b missed one: %+v, %v", away, err)
	}
}

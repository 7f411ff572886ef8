package sim

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

// No worker accepts terms that pay for less than the work, or that cut it in another way.
func TestTermsAreThoseOfTheWork(t *testing.T) {
	c, store := small(t), blob.NewMemory()
	right := c.Terms()
	cid, _, genesis, err := bundle.Ship(t.Context(), store, c.Job.ID(), c.Job.Task, c.Job.Genesis, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	right.SpecCID, right.Genesis = cid, genesis
	read := func(right terms.Terms) error {
		_, err := bundle.ReadJob(t.Context(), right, func(ctx context.Context, cid string, _ int64) ([]byte, error) {
			id, err := blob.Parse(cid)
			if err != nil {
				return nil, err
			}
			return store.Get(ctx, id)
		})
		return err
	}
	if err := read(right); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*terms.Terms){
		"operations": func(t *terms.Terms) { t.UnitFlops-- }, "rounds": func(t *terms.Terms) { t.Rounds++ },
		"units": func(t *terms.Terms) { t.Units-- }, "segments": func(t *terms.Terms) { t.Segments-- },
		"rounds in a row": func(t *terms.Terms) { t.Carry = 2 },
	} {
		other := right
		change(&other)
		if err := read(other); !errors.Is(err, bundle.ErrTerms) {
			t.Errorf("other %s: %v", name, err)
		}
	}
}

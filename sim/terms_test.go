package sim

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/bundle"
)

// Nobody works for terms that pay for less than the work, or that cut it in another way.
func TestTermsAreThoseOfTheWork(t *testing.T) {
	c, store := small(t), blob.NewMemory()
	terms := c.Terms()
	cid, _, genesis, err := bundle.Ship(t.Context(), store, c.Job.ID(), c.Job.Task, c.Job.Genesis, "")
	if err != nil {
		t.Fatal(err)
	}
	terms.SpecCID, terms.Genesis = cid, genesis
	read := func(terms run.Terms) error {
		_, err := bundle.ReadJob(t.Context(), terms, func(ctx context.Context, cid string, _ int64) ([]byte, error) {
			id, err := blob.Parse(cid)
			if err != nil {
				return nil, err
			}
			return store.Get(ctx, id)
		})
		return err
	}
	if err := read(terms); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*run.Terms){
		"operations": func(t *run.Terms) { t.UnitFlops-- }, "rounds": func(t *run.Terms) { t.Rounds++ },
		"units": func(t *run.Terms) { t.Units-- }, "segments": func(t *run.Terms) { t.Segments-- },
		"rounds in a row": func(t *run.Terms) { t.Carry = 2 },
	} {
		other := terms
		change(&other)
		if err := read(other); !errors.Is(err, bundle.ErrTerms) {
			t.Errorf("other %s: %v", name, err)
		}
	}
}

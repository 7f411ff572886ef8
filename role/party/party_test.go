package party

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/engine"
)

// wire is the chain and the blobs of a party: everybody is reached at its own name.
type wire struct {
	Chain
	Blobs
	members []string
	serve   map[string][]byte // update that is served at an address
	asked   []string
	sent    []role.Action
}

func (w *wire) Addresses(_ context.Context, id string) ([]string, error) { return []string{id}, nil }
func (w *wire) Holders(context.Context) ([]string, error)                { return w.members, nil }
func (w *wire) Send(_ context.Context, a role.Action) error              { w.sent = append(w.sent, a); return nil }

func (w *wire) Await(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	return w.Fetch(ctx, c, holders)
}

func (w *wire) Fetch(_ context.Context, c blob.CID, holders []string) ([]byte, error) {
	for _, h := range holders {
		w.asked = append(w.asked, h)
		if b := w.serve[h]; b != nil && blob.Of(b).Equals(c) {
			return b, nil
		}
	}
	return nil, blob.ErrNotFound
}

// lineage combines the updates of a round by fetching them.
type lineage struct{ Lineage }

func (lineage) Load(context.Context, run.Checkpoint, []string) error { return nil }

func (lineage) Advance(_ context.Context, base run.Checkpoint, units []run.Unit, get func(run.Unit) ([]byte, error)) (engine.Advanced, error) {
	for _, u := range units {
		if _, err := get(u); err != nil {
			return engine.Advanced{}, err
		}
	}
	return engine.Advanced{Next: run.Checkpoint{Round: base.Round + 1}}, nil
}

// An update whose worker is gone is had from those who fetched it before, and reported missing only if nobody did.
func TestUpdateOfAWorkerThatIsGone(t *testing.T) {
	update := []byte("update")
	units := []run.Unit{{Worker: "ann", Attempt: 3, Commit: run.Commitment{UpdateCID: blob.Of(update).String()}}}
	for _, c := range []struct {
		serve   map[string][]byte
		asked   []string
		missing bool
	}{
		{map[string][]byte{"ann": update}, []string{"ann"}, false},
		{map[string][]byte{"bob": update}, []string{"ann", "ann", "bob"}, false},
		{nil, []string{"ann", "ann", "bob", "cid"}, true},
	} {
		w := &wire{members: []string{"ann", "bob", "cid"}, serve: c.serve}
		p := &Party{ID: "me", Lineage: lineage{}, Chain: w, Blobs: w}
		e := p.Perform(t.Context(), role.Advance{Base: run.Checkpoint{Round: 7}, Units: units})
		failed, is := e.(role.Failed)
		if is != c.missing || !slices.Equal(w.asked, c.asked) {
			t.Errorf("%v: asked %v, %+v", c.serve, w.asked, e)
		}
		if want := (role.Missing{Work: role.Work{Round: 7, Attempt: 3}}); c.missing && (len(w.sent) != 1 || w.sent[0] != want || !errors.Is(failed.Err, blob.ErrNotFound)) {
			t.Errorf("sent %+v, and %v", w.sent, failed.Err)
		}
	}
}

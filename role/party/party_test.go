package party

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
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
	places  map[string]string
}

func (w *wire) Place(_ context.Context, id string) (string, error) { return w.places[id], nil }

func (w *wire) Relay(ctx context.Context, c blob.CID, holders []string) ([]byte, error) {
	return w.Fetch(ctx, c, holders)
}

func (w *wire) Addresses(_ context.Context, id string) ([]string, error) { return []string{id}, nil }
func (w *wire) Holders(context.Context) ([]string, error)                { return w.members, nil }
func (w *wire) Send(_ context.Context, a role.Action) error              { w.sent = append(w.sent, a); return nil }

func (w *wire) Each(n int, do func(i int)) { checkpoint.InTurn(n, do) }

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

func (lineage) Load(context.Context, terms.Checkpoint, []string) error { return nil }

func (lineage) Advance(_ context.Context, base terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (engine.Advanced, error) {
	for i := range units {
		if _, err := get(i); err != nil {
			return engine.Advanced{}, err
		}
	}
	return engine.Advanced{Next: terms.Checkpoint{Round: base.Round + 1}}, nil
}

// An update whose worker is gone is fetched from members that fetched it before, and reported missing only if none has
// it.
func TestUpdateOfAWorkerThatIsGone(t *testing.T) {
	update := []byte("update")
	units := work.Units{{Worker: "ann", Attempt: 3, Commit: work.Commitment{UpdateCID: blob.Of(update).String()}}}
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
		p := &Executor{ID: "me", Lineage: lineage{}, Chain: w, Blobs: w}
		e := p.Perform(t.Context(), role.Advance{Base: terms.Checkpoint{Round: 7}, Units: units})
		failed, is := e.(role.Failed)
		if is != c.missing || !slices.Equal(w.asked, c.asked) {
			t.Errorf("%v: asked %v, %+v", c.serve, w.asked, e)
		}
		if want := (role.Missing{Work: work.UnitID{Round: 7, Attempt: 3}}); c.missing &&
			(len(w.sent) != 1 || w.sent[0] != want || !errors.Is(failed.Err, blob.ErrNotFound)) {
			t.Errorf("sent %+v, and %v", w.sent, failed.Err)
		}
	}
}

// meeting is a store of others that answers three who ask at a time.
type meeting struct {
	*wire
	mu    sync.Mutex
	asked int
	full  chan struct{} // closed when the present three are there
}

func (m *meeting) Each(n int, do func(i int)) {
	var working sync.WaitGroup
	for i := range n {
		working.Go(func() { do(i) })
	}
	working.Wait()
}

func (m *meeting) Await(_ context.Context, c blob.CID, holders []string) ([]byte, error) {
	m.mu.Lock()
	full := m.full
	if m.asked++; m.asked%3 == 0 {
		close(full)
		m.full = make(chan struct{})
	}
	m.mu.Unlock()
	<-full
	return m.serve[holders[0]], nil
}

// reduction asks for the index and for the piece of every unit, as an engine does.
type reduction struct{ lineage }

func (reduction) Pieces(get func() ([]byte, error)) ([]blob.CID, error) {
	_, err := get()
	return []blob.CID{blob.Of([]byte("other")), blob.Of([]byte("piece"))}, err
}

func (reduction) Reduce(_ context.Context, _ terms.Checkpoint, units work.Units, slice int,
	get func(work.Unit, string) ([]byte, error)) (string, error) {
	var all []byte
	for _, u := range units {
		for _, cid := range []string{u.Commit.UpdateCID, blob.Of([]byte("piece")).String()} {
			b, err := get(*u, cid)
			if err != nil {
				return "", err
			}
			all = append(all, b...)
		}
	}
	return string(all), nil
}

func (reduction) Join(_ context.Context, _ terms.Checkpoint, get func(int) ([]byte, error)) (engine.Advanced, error) {
	for slice := range 3 {
		if _, err := get(slice); err != nil {
			return engine.Advanced{}, err
		}
	}
	return engine.Advanced{}, nil
}

// Updates, their pieces, and the slices of a checkpoint are fetched at the same time, and not one after the other.
func TestBlobsAreFetchedTogether(t *testing.T) {
	var units work.Units
	var parts []progress.Slice
	serve := map[string][]byte{}
	for i, name := range []string{"ann", "bob", "cid"} {
		serve[name] = []byte(name)
		units = append(units, &work.Unit{Index: uint32(i), Worker: name,
			Commit: work.Commitment{UpdateCID: blob.Of([]byte(name)).String()}})
		parts = append(parts,
			progress.Slice{CID: blob.Of([]byte(name)).String(), Reducers: []progress.Reducer{{Member: name}}})
	}
	for what, a := range map[string]role.Action{
		"advance": role.Advance{Units: units},
		"reduce":  role.Reduce{Units: units, Part: role.Part{Slice: 1}},
		"join":    role.Advance{Units: units, Slices: parts},
	} {
		m := &meeting{wire: &wire{serve: serve}, full: make(chan struct{})}
		p := &Executor{ID: "me", Lineage: reduction{}, Chain: m, Blobs: m}
		switch e := p.Perform(t.Context(), a).(type) {
		case role.Failed:
			t.Errorf("%s: %v", what, e.Err)
		case role.Reduced:
			if e.CID != "annannbobbobcidcid" {
				t.Errorf("reduced %s", e.CID)
			}
		}
	}
}

// order notes in which order blobs are asked for.
type order struct {
	*wire
	holders []string
}

func (o *order) Await(_ context.Context, _ blob.CID, holders []string) ([]byte, error) {
	o.holders = append(o.holders, holders...)
	return nil, nil
}

// Members do not all ask the same worker first: each begins with its own unit, where there is nothing to fetch, and
// goes around.
func TestMembersAskInTurn(t *testing.T) {
	var units work.Units
	for i, name := range []string{"ann", "bob", "cid", "dan"} {
		units = append(units, &work.Unit{Index: uint32(i), Worker: name,
			Commit: work.Commitment{UpdateCID: blob.Of([]byte(name)).String()}})
	}
	for who, want := range map[string][]string{"ann": {"ann", "bob", "cid", "dan"}, "cid": {"cid", "dan", "ann", "bob"}} {
		o := &order{wire: &wire{}}
		p := &Executor{ID: who, Lineage: lineage{}, Chain: o, Blobs: o}
		if p.Perform(t.Context(), role.Advance{Units: units}); !slices.Equal(o.holders, want) {
			t.Errorf("%s asks %v", who, o.holders)
		}
	}
}

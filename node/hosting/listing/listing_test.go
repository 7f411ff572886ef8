package listing

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/internal/hostingtest"
	"github.com/starling-network/starling/protocol/hosting"
)

// board is a network in memory.
type board struct {
	models []hosting.Model
	places []hosting.Place
	sent   int
}

func (b *board) Find(_ context.Context, files canon.Digest) (uint64, error) {
	for _, m := range b.models {
		if m.Files == files {
			return m.ID, nil
		}
	}
	return 0, nil
}

func (b *board) Register(_ context.Context, m hosting.Model) (uint64, error) {
	b.sent++
	m.ID = uint64(len(b.models) + 1)
	b.models = append(b.models, m)
	return m.ID, nil
}

func (b *board) Model(_ context.Context, id uint64) (hosting.Model, error) {
	return b.models[id-1], nil
}

func (b *board) Models(context.Context) ([]hosting.Model, error) { return b.models, nil }

func (b *board) Places(context.Context, uint64) ([]hosting.Place, error) { return b.places, nil }

func (b *board) Host(_ context.Context, p hosting.Place) error {
	b.sent++
	b.places = []hosting.Place{p}
	return nil
}

// A model is registered and a place offered once; changes are sent, and a folder with other files is refused.
func TestListing(t *testing.T) {
	b, ctx := &board{}, t.Context()
	files, err := Files(ctx, hostingtest.Folder(t, 3, 64))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Files(ctx, t.TempDir()); !errors.Is(err, ErrFolder) {
		t.Error(err)
	}
	m := hosting.Model{Name: "tiny", Files: files, Weights: canon.Sum("weights")}
	for range 2 {
		have, err := Ensure(ctx, b, 0, m)
		if err != nil || have.ID != 1 {
			t.Fatalf("%+v %v", have, err)
		}
	}
	other := m
	other.Weights = canon.Sum("others")
	if _, err := Ensure(ctx, b, 1, other); !errors.Is(err, ErrOther) {
		t.Error(err)
	}
	p := hosting.Place{Model: 1, Provider: "p", URL: "u", Bond: 5}
	for range 2 {
		if err := Offer(ctx, b, p); err != nil {
			t.Fatal(err)
		}
	}
	if b.sent != 2 {
		t.Errorf("%d messages", b.sent)
	}
	p.URL, p.Bond = "v", 3
	if err := Offer(ctx, b, p); err != nil || b.sent != 3 || b.places[0].Bond != 5 {
		t.Errorf("%+v %v", b.places, err)
	}
	for text, want := range map[string]error{"1": nil, "tiny": nil, "2": ErrModel, "other": ErrModel} {
		if found, err := Find(ctx, b, text); !errors.Is(err, want) || err == nil && found.ID != 1 {
			t.Errorf("%s: %+v %v", text, found, err)
		}
	}
	b.models = append(b.models, hosting.Model{ID: 2, Name: "tiny"})
	if _, err := Find(ctx, b, "tiny"); !errors.Is(err, ErrMany) {
		t.Error(err)
	}
}

// An adapter has the name under which it was registered first, while it is hosted and while it is not. Those that were
// registered later under its name, under that of the base, or under a name that looks numbered, have their numbers.
func TestNamesOfAdapters(t *testing.T) {
	b := &board{models: []hosting.Model{ // the latest is the first
		{ID: 8, Name: "other", Base: 2}, {ID: 7, Name: "free", Base: 1}, {ID: 6, Name: "base", Base: 1},
		{ID: 5, Name: "tuned", Base: 1}, {ID: 4, Name: "tuned@5", Base: 1}, {ID: 3, Name: "tuned", Base: 1},
		{ID: 2, Name: "base"}, {ID: 1, Name: "base"}}}
	for _, id := range []uint64{8, 7, 6, 5, 4} { // no provider hosts adapter 3
		b.places = append(b.places, hosting.Place{Model: id})
	}
	list, names, err := Adapters(t.Context(), b, b.models[7])
	var served []string
	for _, m := range list {
		served = append(served, names[m.ID])
	}
	if got, want := fmt.Sprint(served), "[tuned@5@4 tuned@5 base@6 free]"; got != want || err != nil {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for id := range uint64(MaxAdapters) {
		b.models = append([]hosting.Model{{ID: 9 + id, Name: "more", Base: 1}}, b.models...)
		b.places = append(b.places, hosting.Place{Model: 9 + id})
	}
	if list, _, err = Adapters(t.Context(), b, hosting.Model{ID: 1}); len(list) != MaxAdapters || err != nil {
		t.Errorf("%d adapters, %v", len(list), err)
	}
}

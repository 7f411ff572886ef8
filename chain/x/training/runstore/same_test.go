package runstore

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"testing"

	"cosmossdk.io/collections"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// The same functions must detect a change of every field: a new field that is not compared fails here.
func TestElementsAreTheSameOnlyIfEveryFieldIs(t *testing.T) {
	fields(t, crew.Member{}, sameMember)
	fields(t, progress.Vote{}, sameVote)
	fields(t, progress.Slice{}, sameSlice)
}

func fields[T any](t *testing.T, zero T, same func(a, b T) bool) {
	t.Helper()
	if !same(zero, zero) {
		t.Errorf("%T differs from itself", zero)
	}
	for i := range reflect.TypeFor[T]().NumField() {
		name := reflect.TypeFor[T]().Field(i).Name
		other := zero
		f := reflect.ValueOf(&other).Elem().Field(i)
		if f.Kind() == reflect.Slice {
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
			if same(zero, other) {
				t.Errorf("%T: an empty %s is the same as none, and has other bytes", zero, name)
			}
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			if same(zero, other) {
				t.Errorf("%T: a %s is the same as none", zero, name)
			}
			continue
		}
		set(t, f)
		if same(zero, other) {
			t.Errorf("%T: another %s is the same", zero, name)
		}
	}
}

// set gives a field a value other than zero; for a struct, its first field.
func set(t *testing.T, f reflect.Value) {
	t.Helper()
	switch f.Kind() {
	case reflect.Bool:
		f.SetBool(true)
	case reflect.String:
		f.SetString("other")
	case reflect.Int32, reflect.Int64:
		f.SetInt(1)
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		f.SetUint(1)
	case reflect.Struct:
		set(t, f.Field(0))
	default:
		t.Fatalf("a field of type %s", f.Type())
	}
}

// The state in memory equals the stored state if callers do not change a state that they have passed. The comparison
// finds a rule that changes a unit or a member in place.
func TestStoreHoldsWhatItRemembers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(s run.State) run.State
		found  bool
	}{
		"nothing":       {func(s run.State) run.State { return s }, false},
		"unit copied":   {func(s run.State) run.State { return copied(s, func(u *work.Unit) { u.Attempt++ }) }, false},
		"copy is equal": {func(s run.State) run.State { return copied(s, func(*work.Unit) {}) }, false},
		"member copied": {func(s run.State) run.State {
			s.Members = append([]crew.Member{{ID: "ann", Passed: 1}}, s.Members[1:]...)
			return s
		}, false},
		"fewer":             {func(s run.State) run.State { s.Votes, s.Units = nil, s.Units[:1]; return s }, false},
		"unit in place":     {func(s run.State) run.State { s.Units[1].Attempt++; return s }, true},
		"member in place":   {func(s run.State) run.State { s.Members[0].Passed++; return s }, true},
		"vote in place":     {func(s run.State) run.State { s.Votes[0].Signature[0]++; return s }, true},
		"reducers in place": {func(s run.State) run.State { s.Slices[0].Reducers[0].Late = true; return s }, true},
	} {
		service, ctx := storetest.Open(t, "training")
		open := func() *Store { return New(collections.NewSchemaBuilder(service)) }
		s := open()
		state := run.State{
			Progress: progress.Progress{
				Crew:      crew.Crew{Terms: terms.Terms{Job: "job"}, Members: []crew.Member{{ID: "ann"}, {ID: "bob"}}},
				Votes:     []progress.Vote{{Member: "ann", Signature: []byte{1}}},
				Reduction: progress.Reduction{Slices: []progress.Slice{{Reducers: []progress.Reducer{{Member: "bob"}}}}},
				Window:    work.Window{RoundState: work.RoundState{Units: work.Units{{Index: 0}, {Index: 1}}}},
			},
		}
		if err := s.Set(ctx, "job", state); err != nil {
			t.Fatal(err)
		}
		if err := s.Set(ctx, "job", c.change(state)); err != nil {
			t.Fatal(err)
		}
		if err := consistent(ctx, s, open()); (err != nil) != c.found {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func copied(s run.State, change func(u *work.Unit)) run.State {
	u := *s.Units[1]
	change(&u)
	s.Units = work.Units{s.Units[0], &u}
	return s
}

// consistent compares the state in one Store's memory with the state that another Store reads.
func consistent(ctx context.Context, warm, cold *Store) error {
	remembered, err := warm.get(ctx, "job")
	if err != nil {
		return err
	}
	stored, err := cold.get(ctx, "job")
	if err != nil {
		return err
	}
	if !bytes.Equal(canon.MustMarshal(remembered.state), canon.MustMarshal(stored.state)) {
		return fmt.Errorf("the state that is remembered is not the one that is stored")
	}
	return nil
}

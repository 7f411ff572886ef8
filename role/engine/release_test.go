package engine_test

import (
	"io"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
)

// elsewhere keeps bytes outside of the memory of an engine. It implements hold.Aside.
type elsewhere struct{ kept int }

type reader []byte

func (r reader) ReadAt(p []byte, at int64) (int, error) { return copy(p, r[at:]), nil }

func (x *elsewhere) Keep(parts [][]byte) io.ReaderAt {
	var all reader
	for _, p := range parts {
		all = append(all, p...)
	}
	x.kept += len(all)
	return all
}

func (*elsewhere) Room(int64) func(*tensor.Tensor) *tensor.Tensor { return nil }
func (*elsewhere) Scratch(int64) hold.Scratch                     { return nil }

// An engine that releases its memory puts the states away that seals may have to be opened with, and the seals are
// those of before.
func TestReleasePutsSealedStatesAway(t *testing.T) {
	task, genesis := newTask(t)
	e, err := engine.New(terms.Terms{Job: "fox"}, task, blob.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	base := terms.Checkpoint{Root: genesis.Root(), CID: "genesis"}
	e.Hold(base, genesis)
	w, err := e.Train(t.Context(), base, 1)
	if err != nil {
		t.Fatal(err)
	}
	s := audit.Subject{Unit: 1, Segment: 2}
	before, err := e.Check(t.Context(), base, s, w.Commit)
	if err != nil || !before.Right {
		t.Fatalf("%+v, %v", before, err)
	}
	to, also := &elsewhere{}, 0
	for range 2 {
		e.Release(to, func() { also++ })
	}
	if want := 3 * genesis.Params[0].Shape.Bytes(); to.kept < want || also != 2 {
		t.Errorf("%d bytes are put away, want more than %d", to.kept, want)
	}
	kept := to.kept
	e.Hold(base, genesis)
	after, err := e.Check(t.Context(), base, s, w.Commit)
	if err != nil || after != before {
		t.Errorf("%+v, %v, want %+v", after, err, before)
	}
	if e.Release(to, func() {}); to.kept != kept {
		t.Error("a state is put away twice, or was computed again")
	}
}

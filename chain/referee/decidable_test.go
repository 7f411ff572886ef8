package referee

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/hugetest"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// An operator that no output depends on is traced and disputed all the same. If no part of it can be shown, the
// verifier who finds a lie there could not move, and neither could a worker who is accused: there is no referee for
// such a job, and no dispute about it.
func TestJobWhoseDisputesCannotBePlayedHasNoReferee(t *testing.T) {
	task, _ := job(t, tiny)
	p := *task.Step
	n := int32(len(p.Ops))
	p.Ops = append(slices.Clone(p.Ops),
		program.Operator{Kind: program.Iota, Out: tensor.Make(tensor.Float32, 1<<20), Ints: []int64{0}},
		program.Operator{Kind: program.FirstMax, Out: tensor.Make(tensor.Bool, 1<<20), In: []int32{n}, Ints: []int64{0}})
	if err := admit.Verify(&p, limits); err != nil {
		t.Fatal(err)
	}
	other := respecified(task, func(s *train.Spec) { s.Program = p.Digest() })
	if err := train.CheckProgram(other.Spec, &p); err != nil {
		t.Fatal(err)
	}
	r, err := Open(other.Spec.Digest(), Opening(other.Spec, &p, task.Corpus.Manifest(shardTokens)), 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Decidable(evidence.MaxCheck); !errors.Is(err, evidence.ErrTooLarge) ||
		!strings.Contains(err.Error(), "FirstMax") {
		t.Errorf("decidable with %v", err)
	}
}

// The check of a job costs the same wherever it is made, and ends where its limit is, with the limit and one.
func TestCheckOfAJobHasALimit(t *testing.T) {
	n := evidence.Limit(1 << 62)
	if !n.Spend(evidence.MaxCheck) || n.Spend(1) || n.Spend(1<<63) || n.Spend(1<<63) || n.Spent() != evidence.MaxCheck+1 {
		t.Error("more than the limit may be spent")
	}
	task, _ := job(t, tiny)
	if err := division.Check(task.Step, evidence.Limit(0)); !errors.Is(err, evidence.ErrTooLarge) {
		t.Errorf("divided with nothing left: %v", err)
	}
	if err := parameter.Fit(task.Spec, task.Step, evidence.Limit(0)); !errors.Is(err, evidence.ErrTooLarge) {
		t.Errorf("looked at updates with nothing left: %v", err)
	}
	r, err := Open(task.Spec.Digest(), Opening(task.Spec, task.Step, task.Corpus.Manifest(shardTokens)), 0)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := r.Decidable(evidence.MaxCheck)
	if err != nil || whole == 0 {
		t.Fatalf("a small job costs %d: %v", whole, err)
	}
	for _, most := range []uint64{0, 1, whole / 2, whole - 1} {
		if cost, err := r.Decidable(most); cost != most+1 || !errors.Is(err, evidence.ErrBudget) {
			t.Errorf("of %d units at most %d: %d, %v", whole, most, cost, err)
		}
	}
	if cost, err := r.Decidable(whole); cost != whole || err != nil {
		t.Errorf("just enough: %d, %v", cost, err)
	}
}

// A program of a stranger costs the chain what its check takes, whatever shapes its tensors have: the units count what
// is listed, and few of them are enough for no operator of huge tensors.
func TestHugeProgramsAreDividedInLittleMemory(t *testing.T) {
	for name, p := range hugetest.Programs(t) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		n := evidence.Limit(evidence.MaxCheck)
		err := division.Check(p, n)
		runtime.ReadMemStats(&after)
		if most := 200 * n.Spent(); err != nil && !errors.Is(err, evidence.ErrTooLarge) ||
			after.TotalAlloc-before.TotalAlloc > most+1<<20 {
			t.Errorf("%s: %d bytes for %d units, %v", name, after.TotalAlloc-before.TotalAlloc, n.Spent(), err)
		}
	}
}

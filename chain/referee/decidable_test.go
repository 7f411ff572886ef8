package referee

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/program"
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
	_, err := Open(other.Spec.Digest(), Opening(other.Spec, &p, task.Corpus.Manifest(shardTokens)))
	if !errors.Is(err, ErrOpening) || !errors.Is(err, evidence.ErrTooLarge) || !strings.Contains(err.Error(), "FirstMax") {
		t.Errorf("opened with %v", err)
	}
}

func TestWhatIsLookedAtForAJobHasALimit(t *testing.T) {
	n := new(evidence.Budget)
	if !n.Spend(evidence.MaxLooked) || n.Spend(1) || n.Spend(1<<63) || n.Spend(1<<63) {
		t.Error("more than the limit may be looked at")
	}
	task, _ := job(t, tiny)
	n = new(evidence.Budget)
	*n = evidence.MaxLooked
	if _, err := division.All(task.Step, n); !errors.Is(err, evidence.ErrTooLarge) {
		t.Errorf("divided with nothing left: %v", err)
	}
	if err := parameter.Fit(task.Spec, task.Step, n); !errors.Is(err, evidence.ErrTooLarge) {
		t.Errorf("looked at updates with nothing left: %v", err)
	}
}

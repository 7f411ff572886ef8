package member

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/shards"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/bundle"
)

// A job whose blobs no peer serves is given up after a while, and one that is unfit is left at once.
func TestProcessDeclinesWhatItCannotOpen(t *testing.T) {
	begin := time.Unix(1000, 0)
	opening := func(err error) func(after time.Duration) bool {
		p := &Process{ID: "me"}
		p.State.Store(&run.State{})
		return func(after time.Duration) bool { return p.cannotOpen(err, begin.Add(after)) }
	}
	unable := opening(blob.ErrNotFound)
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {FetchTimeout - time.Second, false}, {FetchTimeout, true}} {
		if unable(c.after) != c.want {
			t.Errorf("after %s a job that cannot be fetched is given up: %t", c.after, !c.want)
		}
	}
	if !opening(bundle.ErrTerms)(0) || opening(nil)(time.Hour) {
		t.Error("what is unfit is tried again, or what is opened is given up")
	}
	if err := errors.Join(errors.New("x"), bundle.ErrUndecidable); !UnacceptableError(err) {
		t.Error("work of which a dispute could not be decided is fit")
	}
	if spec := (&train.Spec{Version: 1, Numerics: kernel.Newest + 1}).Check(); !UnacceptableError(spec) {
		t.Errorf("work of an unknown version of the numerics is fit: %v", spec)
	}
}

// A job is left whose data is not what its manifest says, and not one of which a shard is away for now.
func TestProcessLeavesAJobOfWrongData(t *testing.T) {
	p := &Process{ID: "me"}
	failed := func(err error) role.Event {
		shard := &shards.Error{Shard: 1, Of: 4, Err: err}
		return role.Failed{Action: role.Train{}, Err: fmt.Errorf("%w: %w", data.ErrBatch, shard)}
	}
	for _, e := range []role.Event{role.Trained{}, failed(blob.ErrNotFound), failed(blob.ErrFull)} {
		if p.judge(e); p.unfit != nil {
			t.Errorf("left after %+v", e)
		}
	}
	p.judge(failed(data.ErrShard))
	if !UnacceptableError(p.unfit) || !strings.Contains(p.unfit.Error(), "shard 2 of the 4") {
		t.Errorf("left because of %v", p.unfit)
	}
}

// A job gets the name that is reserved for its consumer when another account has taken its own, and its folder has
// that name.
func TestNameOfAJobThatIsTaken(t *testing.T) {
	b := fakeBlueprint()
	own := b.JobID()
	if !b.Is(own) || b.Is(own+"x") || b.Is("job-0") {
		t.Fatal("the name of the job is another")
	}
	b.Keep("", "starling1me")
	if b.JobID() != own+".starling1me" || b.Is(own) {
		t.Errorf("kept: %s", b.JobID())
	}
	again := fakeBlueprint()
	if !again.Is(own+".starling1me") || again.JobID() != b.JobID() {
		t.Errorf("a folder of the run gives %s", again.JobID())
	}
}

// fakeBlueprint is what the name of a job is made of.
func fakeBlueprint() *prepare.CompiledJob { return &prepare.CompiledJob{Spec: &train.Spec{Version: 1}} }

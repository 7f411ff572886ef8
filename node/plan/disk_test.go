package plan

import (
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/role/bundle"
)

// TestDiskOfShortRuns: a run has no more checkpoints than rounds, and the first.
func TestDiskOfShortRuns(t *testing.T) {
	j, err := job.Load(jobtest.Small(t).Path, "training.max_steps=64", "strategy.sync_steps=2", "model.config.n_embd=32")
	if err != nil {
		t.Fatal(err)
	}
	b, err := prepare.New(j)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Order()
	if err != nil {
		t.Fatal(err)
	}
	params, data := int64(0), int64(b.Manifest.TrainTokens+b.Manifest.ValTokens)*int64(b.Manifest.Width)
	for _, p := range b.Genesis.Params {
		params += int64(len(p.Bytes()))
	}
	checkpoint := 2 * params // the parameters and the state of the outer optimizer
	need := func(rounds uint32, keep int) int64 {
		s := *b.Spec
		s.Rounds = rounds
		return bundle.Footprint(&s, b.Step, b.Manifest, o.Terms, keep) - data - data/16 - 1<<20
	}
	most := 3*checkpoint + 2*int64(b.Spec.Units)*params // two checkpoints, one that is rolled back, and the updates
	if one := need(1, 3); one > most+most/16 {
		t.Errorf("one round needs %d bytes, more than %d", one, most+most/16)
	}
	const many = 50
	if more := need(1000, many+1) - need(1000, many); more < checkpoint {
		t.Errorf("one more checkpoint that is kept adds %d bytes, less than it has", more)
	}
	if a, b := need(100, 3), need(1000, 3); a != b {
		t.Errorf("%d bytes in 100 rounds, %d in 1,000", a, b)
	}
	if a, b := need(2, 2), need(2, many); a != b {
		t.Errorf("%d bytes if two checkpoints of three are kept, %d if all are", a, b)
	}
}

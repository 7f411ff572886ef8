package adversary_test

import (
	"context"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/adversary/catalog"
	"github.com/starling-network/starling/role/party"
)

// A faked unit passes the audit of a verifier of the worker's circle, with a seal that can be opened, and no other
// audit; and a verifier that shields its circle finds the faults of others.
func TestShieldsKnowWhatTheirCircleFaked(t *testing.T) {
	ctx := context.Background()
	e, base := smallEngine(t)
	circle := new(adversary.Memory)
	fakes, _ := catalog.Named("fakes")
	shields, _ := catalog.Named("shields")
	play := func(act adversary.Attack, circle adversary.Circle) party.Compute {
		p := &party.Executor{Compute: e}
		act.Install(adversary.Setup{Party: p, Honest: e, Circle: circle})
		return p.Compute
	}
	faked, err := play(fakes, circle).Train(ctx, base, 1)
	if err != nil {
		t.Fatal(err)
	}
	subject := audit.Subject{Verifier: "verifier", Job: "job", Unit: 1}
	for name, c := range map[string]struct {
		verifier party.Compute
		passes   bool
	}{
		"of the circle":         {play(shields, circle), true},
		"of another":            {play(shields, new(adversary.Memory)), false},
		"without a circle":      {play(shields, nil), false},
		"that is no accomplice": {e, false},
	} {
		f, err := c.verifier.Check(ctx, base, subject, faked.Commit)
		if err != nil || f.Right != c.passes {
			t.Errorf("a verifier %s: %+v, %v", name, f, err)
		}
		if !c.passes {
			continue
		}
		if o, err := c.verifier.Unseal(ctx, base, subject, canon.Sum("question")); err != nil || len(o.Tile) == 0 {
			t.Errorf("its seal cannot be opened: %v", err)
		}
	}
}

package party

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// unlinked is a lineage of a stage of which no member serves the values of a link.
type unlinked struct{ dataless }

func (unlinked) Start(context.Context, terms.Checkpoint, uint32, []string) error {
	return &role.LacksLink{Link: 2, Err: blob.ErrNotFound}
}

// A verifier that cannot have the values of a link reports it once, and asks again. Another member reports that link,
// and no other.
func TestALinkThatNoMemberServes(t *testing.T) {
	base, id := terms.Checkpoint{Round: 7}, work.UnitID{Round: 7, Attempt: 3}
	probe := func(lost uint32) role.Action {
		return role.Probe{Work: id, Base: base, Unit: work.Unit{Worker: "ann", Status: work.Auditing, Lost: lost}}
	}
	for name, c := range map[string]struct {
		action role.Action
		sent   int
	}{
		"audit": {role.Check{Work: id, Base: base}, 1}, "probe": {probe(2), 1}, "probe of another link": {probe(1), 0},
	} {
		w := &wire{members: []string{"ann"}}
		p := &Executor{ID: "me", Lineage: unlinked{}, Chain: w, Blobs: w}
		for range 2 {
			failed, is := p.Perform(t.Context(), c.action).(role.Failed)
			if !is || !errors.Is(failed.Err, blob.ErrNotFound) {
				t.Errorf("%s: %+v", name, failed)
			}
		}
		if len(w.sent) != c.sent || c.sent > 0 && w.sent[0] != (role.Missing{Work: id, Slice: 2}) {
			t.Errorf("%s: sent %+v", name, w.sent)
		}
	}
}

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
	return &role.LacksLink{Links: []uint32{2, 4}, Err: blob.ErrNotFound}
}

// A verifier that cannot have the values of links reports the first, and asks again. Another member reports the link of
// the verifier if it lacks that, too, and no other. It reports it again if it is asked again: the verifier has named
// another link in between, which voids the reports.
func TestALinkThatNoMemberServes(t *testing.T) {
	base, id := terms.Checkpoint{Round: 7}, work.UnitID{Round: 7, Attempt: 3}
	probe := func(lost uint32) role.Action {
		return role.Probe{Work: id, Base: base, Unit: work.Unit{Worker: "ann", Status: work.Auditing, Lost: lost}}
	}
	for name, c := range map[string]struct {
		action role.Action
		link   uint32 // 0: none
	}{
		"audit": {role.Check{Work: id, Base: base}, 2}, "probe": {probe(2), 2}, "probe of a later link": {probe(4), 4},
		"probe of a link that is served": {probe(1), 0},
	} {
		w := &wire{members: []string{"ann"}}
		p := &Executor{ID: "me", Lineage: unlinked{}, Chain: w, Blobs: w}
		for range 2 {
			failed, is := p.Perform(t.Context(), c.action).(role.Failed)
			if !is || !errors.Is(failed.Err, blob.ErrNotFound) {
				t.Errorf("%s: %+v", name, failed)
			}
		}
		if c.link == 0 && len(w.sent) > 0 || c.link > 0 && (len(w.sent) != 2 ||
			w.sent[0] != (role.Missing{Work: id, Slice: c.link}) || w.sent[1] != w.sent[0]) {
			t.Errorf("%s: sent %+v", name, w.sent)
		}
	}
}

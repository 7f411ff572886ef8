package party

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
)

// dataless is a lineage of a round whose data none serves to this party.
type dataless struct{ lineage }

func (dataless) Needs(uint32) bool { return true }

func (dataless) Lacks(terms.Checkpoint, uint32) ([]engine.Answers, error) { return nil, nil }

func (dataless) Start(context.Context, terms.Checkpoint, uint32, []string) error {
	return bundle.ErrNoData
}

// A member that cannot have the data of a round says so in place of a result: it combines no update of it, so that it
// attests nothing, and its audit is not silent.
func TestMemberWithoutDataOfARound(t *testing.T) {
	update := []byte("update")
	units := work.Units{{Worker: "ann", Attempt: 3, Commit: work.Commitment{UpdateCID: blob.Of(update).String()}}}
	base, id := terms.Checkpoint{Round: 7}, work.UnitID{Round: 7, Attempt: 3}
	for name, a := range map[string]role.Action{
		"attest": role.Advance{Base: base, Units: units, Data: true},
		"audit":  role.Check{Work: id, Base: base},
		"probe":  role.Probe{Work: id, Base: base, Data: true},
	} {
		w := &wire{members: []string{"ann"}, serve: map[string][]byte{"ann": update}}
		p := &Executor{ID: "me", Lineage: dataless{}, Chain: w, Blobs: w}
		e := p.Perform(t.Context(), a)
		if failed, is := e.(role.Failed); name != "probe" && (!is || !errors.Is(failed.Err, bundle.ErrNoData)) {
			t.Errorf("%s: %+v", name, e)
		}
		if len(w.sent) != 1 || w.sent[0] != (role.LacksData{Work: id}) {
			t.Errorf("%s: sent %+v", name, w.sent)
		}
	}
	w := &wire{members: []string{"ann"}, serve: map[string][]byte{"ann": update}}
	p := &Executor{ID: "me", Lineage: dataless{}, Chain: w, Blobs: w}
	if e := p.Perform(t.Context(), role.Advance{Base: base, Units: units}); len(w.sent) > 0 {
		t.Errorf("a round without such data: %+v, sent %+v", e, w.sent)
	}
}

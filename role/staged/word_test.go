package staged

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/handover"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/pipeline"
)

// The commitment of a neighbour in this attempt is its word, and one of another attempt is none.
func TestACommitmentIsAWord(t *testing.T) {
	p, l := pair()
	chain := canon.Sum("head")
	x := &Engine{plan: p}
	x.run = run.State{}
	x.run.Terms.Pipeline = terms.Pipeline{Flops: []uint64{1, 1}, Links: []terms.Link{l}, Frames: []uint64{2}}
	u := &work.Unit{Index: 1, Status: work.Assigned, Attempt: 3}
	x.run.Units = work.Units{&work.Unit{Status: work.Assigned, Attempt: 3}, u}
	a := Attempt{Number: 3, Holders: []string{"a", "b"}, Plan: p}
	if _, ok := x.word(a, 1); ok {
		t.Error("a stage that has not committed has a word")
	}
	u.Status, u.Commit.Links = work.Committed, []work.Exchanged{{Frames: 2, Chain: chain}}
	m, ok := x.word(a, 1)
	if !ok || m.Frame != nil || m.Voucher.Head != (handover.Head{Frames: 2, Chain: chain}) ||
		m.Voucher.By != handover.Receiver {
		t.Errorf("%+v, %v", m, ok)
	}
	r := &pipeline.Replica{Holders: []pipeline.Holder{{Account: "a"}, {Account: "b"}}}
	said := func(h handover.Head) bool {
		return x.hasCommitted(r, a, 1, handover.Statement(r.Link(0, 1), h, handover.Receiver))
	}
	if !said(m.Voucher.Head) || said(handover.Head{Frames: 2, Chain: canon.Sum("other")}) {
		t.Error("the word of the stage is another than its commitment")
	}
	a.Number = 4
	if _, ok := x.word(a, 1); ok || said(m.Voucher.Head) {
		t.Error("a commitment of another attempt is taken")
	}
}

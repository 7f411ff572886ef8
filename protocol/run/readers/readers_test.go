package readers

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// Only those who execute a unit read its data, for as long as they do.
func TestWhoReadsAUnit(t *testing.T) {
	const worker, other, verifier, guest, newcomer = "a", "b", "c", "d", "e"
	p := func(u work.Unit) *progress.Progress {
		u.Index, u.Attempt, u.Worker = 1, 3, worker
		idle := &work.Unit{Index: 0, Status: work.Assigned, Worker: other}
		x := &progress.Progress{Phase: progress.Train}
		x.Members = []crew.Member{{ID: worker, Role: crew.Worker, Active: true}, {ID: other, Role: crew.Worker, Active: true},
			{ID: verifier, Role: crew.Verifier, Active: true}, {ID: guest, Role: crew.Verifier, Why: reason.Guest}}
		x.Window.RoundState = work.RoundState{Round: 5, Units: work.Units{idle, &u}}
		return x
	}
	id := work.UnitID{Round: 5, Unit: 1, Attempt: 3}
	out := func(member string) func(*progress.Progress) {
		return func(x *progress.Progress) {
			i, _ := x.Index(member)
			x.Members[i].Active = false
		}
	}
	drawn := work.Unit{Status: work.Auditing, Verifier: verifier, Segment: 2}
	with := func(u work.Unit, status work.Status) work.Unit { u.Status = status; return u }
	late := work.Unit{Status: work.Assigned, PreviousAssignees: []work.PreviousAssignee{{Worker: guest, Attempt: 2}}}
	for _, c := range []struct {
		name, who string
		unit      work.Unit
		edit      func(*progress.Progress)
		want      Purpose // "": it does not read the unit
		segment   uint32
	}{
		{"the worker", worker, work.Unit{Status: work.Assigned}, nil, Trains, 0},
		{"its work is settled and may be disputed", worker, work.Unit{Status: work.Accepted}, nil, Trains, 0},
		{"a worker that is out", worker, work.Unit{Status: work.Assigned}, out(worker), "", 0},
		{"a worker that is out, and answers", worker, work.Unit{Status: work.Disputed, Challengers: []string{guest}},
			out(worker), Answers, 0},
		{"a worker of another unit", other, work.Unit{Status: work.Assigned}, nil, "", 0},
		{"a former worker", guest, late, nil, "", 0},
		{"a verifier that was not drawn", guest, drawn, nil, "", 0},
		{"the one that was drawn", verifier, drawn, nil, Audits, 2},
		{"and owes the opening", verifier, with(drawn, work.Sealed), nil, Audits, 2},
		{"and disputes", verifier, with(drawn, work.Disputed), nil, Answers, 2},
		{"and is done", verifier, with(drawn, work.Accepted), nil, "", 0},
		{"a guest that was drawn", guest, work.Unit{Status: work.Auditing, Verifier: guest}, nil, Audits, 0},
		{"one that challenges of its own accord", guest, work.Unit{Status: work.Disputed, Challengers: []string{guest}}, nil,
			"", 0},
		{"on probation", newcomer, work.Unit{Status: work.Accepted}, func(x *progress.Progress) {
			x.Probations = []progress.Probation{{Member: newcomer,
				Task: progress.ProbationTask{Round: 5, Unit: 1, Attempt: 3, Worker: worker}}}
		}, Proves, 0},
		{"on probation without a task", newcomer, work.Unit{Status: work.Accepted}, func(x *progress.Progress) {
			x.Probations = []progress.Probation{{Member: newcomer}}
		}, "", 0},
		{"of a round that was rolled back, disputed", worker, work.Unit{Status: work.Disputed}, func(x *progress.Progress) {
			x.RolledBack, x.Window.RoundState = []work.RoundState{x.RoundState}, work.RoundState{Round: 2}
		}, Answers, 0},
		{"once the run is over", worker, work.Unit{Status: work.Assigned}, func(x *progress.Progress) {
			x.Phase = progress.Done
		}, "", 0},
		{"a stranger", "z", work.Unit{Status: work.Assigned}, nil, "", 0},
	} {
		x := p(c.unit)
		if c.edit != nil {
			c.edit(x)
		}
		got := slices.DeleteFunc(Of(x, c.who), func(r Reading) bool { return r.Unit == 0 })
		want := []Reading{{id, c.segment, c.want}}
		if c.want == "" {
			want = nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %+v, wanted %+v", c.name, got, want)
		}
	}
}

package membership

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// paused is a member that is paused at height 100, and what it asks for at another height.
func paused(t *testing.T, when string, b role.Block, until, height int64, kind string) {
	t.Helper()
	m := New(me)
	b.Height = 100
	m.Duties(b, idle)
	m.Note(role.Pause{Until: until})
	b.Height = height
	want(t, when, m.Duties(b, busy), kind)
	m.Note(role.Resume{})
	want(t, when+", resumed", m.Duties(b, busy), "")
}

// A paused member stays for as long as its duties can still be done in time, and leaves before one is late.
func TestPausedMembersLeaveInTime(t *testing.T) {
	unit := func(speed int64) role.Block { // begun at 80, due at 180
		b := on(crew.Member{Active: true, Speed: uint32(speed << 8)})
		b.Run.Terms.Deadlines.Train = 100
		b.Run.Units = work.Units{{Worker: me, Status: work.Assigned, AssignedAt: 80, Deadline: 180}}
		return b
	}
	// of 60 blocks that a unit takes, 20 were done before the pause: the last moment is 140
	for height, kind := range map[int64]string{100: "", 136: "", 137: "Leave", 150: "Leave"} {
		paused(t, "a unit", unit(60), 0, height, kind)
		paused(t, "a unit of a pause that ends in time", unit(60), 130, height, kind)
	}
	paused(t, "a unit of a pause that ends too late", unit(60), 141, 101, "Leave")
	// without a measured speed a unit may take half of its time
	paused(t, "a unit of a newcomer", unit(0), 0, 146, "")
	paused(t, "a unit of a newcomer", unit(0), 0, 147, "Leave")
	last := unit(60)
	last.Run.Members = last.Run.Members[:1]
	paused(t, "the last worker", last, 0, 150, "")

	nothing := on(crew.Member{Active: true})
	paused(t, "without a duty", nothing, 0, 10_000, "")
	paused(t, "without a duty, until the next one is over", nothing, 140, 101, "Leave")
	paused(t, "without a duty, for a moment", nothing, 105, 101, "")

	vote := on(crew.Member{Active: true})
	vote.Run.Phase, vote.Run.Since, vote.Run.Terms.Deadlines.Attest = progress.Attest, 100, 40
	paused(t, "a checkpoint to attest", vote, 0, 116, "")
	paused(t, "a checkpoint to attest", vote, 0, 117, "Leave")
	vote.Run.Votes = []progress.Vote{{Member: me}}
	paused(t, "attested", vote, 0, 117, "")

	audit := on(crew.Member{Active: true})
	audit.Run.Members[0].Role, audit.Run.Members[1].Role = crew.Verifier, crew.Verifier
	audit.Run.Units = work.Units{{Worker: "c", Verifier: me, Status: work.Auditing, AssignedAt: 100, Deadline: 120}}
	paused(t, "an audit", audit, 0, 106, "")
	paused(t, "an audit", audit, 0, 107, "Leave")
	audit.Run.Units = work.Units{{Worker: "c", Status: work.Auditing,
		Looks: []work.SealedReport{{Verifier: me, Since: 100, Deadline: 120}}}}
	paused(t, "a report", audit, 0, 107, "Leave")

	slice := on(crew.Member{Active: true})
	slice.Run.Terms = terms.Terms{Rounds: 9, Segments: 1, Slices: 1, Deadlines: slice.Run.Terms.Deadlines}
	slice.Run.Slices = []progress.Slice{{Status: progress.Reducing,
		Reducers: []progress.Reducer{{Member: me, Since: 100, Deadline: 120}}}}
	paused(t, "a slice", slice, 0, 106, "")
	paused(t, "a slice", slice, 0, 107, "Leave")
}

// A paused member on probation leaves before its task is late, and one that drains leaves with a unit that it only
// began.
func TestPausedNewcomersAndLeavers(t *testing.T) {
	m := New(me)
	x := progress.Probation{Member: me, Asked: 100, Deadline: 120, Task: progress.ProbationTask{Round: 3, Worker: "b",
		Commit: work.Commitment{Segments: []canon.Digest{{1}}}}}
	b := on(crew.Member{Why: reason.OnProbation}, x)
	m.Note(role.Pause{})
	want(t, "with time", m.Duties(b, idle), "Check") // which yields: package aggregator
	b.Height = 108
	want(t, "without", m.Duties(b, idle), "Leave")

	m = New(me)
	m.Note(role.Drain{})
	if m.Note(role.Pause{}); m.Finishing() {
		t.Error("it finishes a unit during a pause")
	}
	if m.Note(role.Resume{}); !m.Finishing() || m.Paused() {
		t.Error("it does not finish a unit after the pause")
	}
}

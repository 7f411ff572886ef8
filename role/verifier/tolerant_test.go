package verifier

import (
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// measuring is a tolerant run with one unit at which this verifier is to look.
func measuring() run.State {
	s := auditing()
	s.Terms.Tolerance = terms.Tolerance{DistancePPM: 100_000, CosinePPM: 990_000}
	s.Units[0].Verifier, s.Units[0].Looks = "", []work.SealedReport{{Verifier: me}}
	return s
}

// A verifier of tolerant work seals its finding, and shows it when asked, under a salt that follows from its secret;
// after a restart it measures again. A guest does the same without the lineage.
func TestFindingIsSealedAndThenShown(t *testing.T) {
	for _, guest := range []bool{false, true} {
		s := measuring()
		if guest {
			s.Members[0].Active, s.Members[0].Why = false, reason.Guest
		}
		v := New(me, canon.Sum("secret"))
		got := v.Step(role.Block{Height: 1, Run: s})
		if load, ok := got[0].(role.Load); ok != !guest {
			t.Fatalf("guest %v wants %v", guest, got)
		} else if ok {
			v.Step(role.Loaded{Action: load})
			got = v.Step(role.Block{Height: 2, Run: s})
		}
		measure := got[0].(role.Measure)
		f := audit.Finding{DistancePPM: 200_000, CosinePPM: 999_000, End: canon.Sum("end")}
		got = v.Step(role.Measured{Action: measure, Finding: f})
		report, ok := got[0].(role.Report)
		subject := work.UnitID{}.Subject(me, s.Terms.Job, 0)
		if salt := audit.Salt(canon.Sum("secret"), subject); !ok || !report.Outside || report.Seal != f.Seal(subject, salt) {
			t.Fatalf("reports %+v", got)
		}
		v.Step(role.Finished{Action: report})
		s = measuring()
		s.Members[0].Active, s.Members[0].Why = !guest, map[bool]string{true: reason.Guest}[guest]
		s.Units[0].Status, s.Units[0].Looks = work.Sealed, []work.SealedReport{
			{Verifier: me, Seal: report.Seal, Outside: true},
		}
		got = v.Step(role.Block{Height: 3, Run: s})
		if show, ok := got[0].(role.ShowReport); !ok || show.Finding != f || f.Seal(subject, show.Salt) != report.Seal {
			t.Fatalf("shows %+v", got)
		}
		again := New(me, canon.Sum("secret"))
		got = again.Step(role.Block{Height: 4, Run: s})
		if load, ok := got[0].(role.Load); ok {
			again.Step(role.Loaded{Action: load})
			got = again.Step(role.Block{Height: 5, Run: s})
		}
		if _, ok := got[0].(role.Measure); !ok {
			t.Errorf("after a restart it wants %v", got)
		}
	}
}

// A verifier whose report had a unit withheld, and that finds another end state in its exact attempt, executes that
// attempt and challenges it, without an audit.
func TestExactAttemptThatContradictsIsChallenged(t *testing.T) {
	s := measuring()
	u := s.Units[0]
	u.Exact, u.Status, u.Looks = true, work.Accepted, nil
	u.Commit.Segments = []canon.Digest{canon.Sum("start"), canon.Sum("another end")}
	u.Held = &work.Held{Worker: "w0", End: canon.Sum("end"), Verifiers: []string{"x", me}}
	v := New(me, canon.Sum("secret"))
	v.Step(role.Loaded{Action: v.Step(role.Block{Height: 1, Run: s})[0].(role.Load)})
	got := v.Step(role.Block{Height: 2, Run: s})
	if len(got) != 1 {
		t.Fatalf("wants %v", got)
	}
	got = v.Step(role.Checked{Action: got[0].(role.Check), Differ: 1})
	if c, ok := got[0].(role.Challenge); !ok || c.Segment != 1 || c.Commitment != u.Commit.Digest() {
		t.Errorf("wants %v", got)
	}
	u.Held.End = u.Commit.Segments[1]
	if got := New(me, canon.Digest{}).audits(s); len(got) > 0 {
		t.Errorf("what it found itself it looks at again: %v", got)
	}
}

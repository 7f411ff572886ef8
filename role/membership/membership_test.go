package membership

import (
	"fmt"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

const me = "a"

// on is a run with the member in this standing, and another member of its role.
func on(m crew.Member, trials ...progress.Probation) role.Block {
	m.ID, m.Role = me, crew.Worker
	return role.Block{Height: 100, Run: run.State{
		Progress: progress.Progress{
			Crew: crew.Crew{
				Terms:   terms.Terms{Rounds: 9, Segments: 1, Deadlines: terms.Deadlines{Train: 10}},
				Members: []crew.Member{m, {ID: "b", Role: crew.Worker, Active: true}},
			},
			Newcomers: progress.Newcomers{Probations: trials},
			Phase:     progress.Train,
		},
	}}
}

func idle(run.State) bool { return false }
func busy(run.State) bool { return true }

func want(t *testing.T, when string, got []role.Action, kind string) {
	t.Helper()
	found := ""
	for _, a := range got {
		found += fmt.Sprintf("%T", a)[len("role."):]
	}
	if found != kind {
		t.Errorf("%s: %s, want %s", when, found, kind)
	}
}

// Every standing of a member, and what it asks for.
func TestStandings(t *testing.T) {
	for name, c := range map[string]struct {
		member        crew.Member
		goes, drained string // busy and not, when it stays and when it drains
		busy          string // when it drains and is busy
	}{
		"active":    {member: crew.Member{Active: true}, drained: "Leave"},
		"left":      {member: crew.Member{Why: reason.Left}, goes: "Depart", drained: "Depart", busy: "Depart"},
		"convicted": {member: crew.Member{Why: reason.Verdict}, goes: "Depart", drained: "Depart", busy: "Depart"},
		"cut off": {member: crew.Member{Why: reason.MissedDeadlines}, goes: "Return", drained: "Depart",
			busy: "Depart"},
		"cut off just now": {member: crew.Member{Why: reason.MissedAudits, Since: 99}, drained: "Depart", busy: "Depart"},
		"unproven": {member: crew.Member{Why: reason.Unproven, Returns: 2}, goes: "Return", drained: "Depart",
			busy: "Depart"},
		"waits for its place": {member: crew.Member{Why: reason.Returning}, drained: "Depart", busy: "Depart"},
	} {
		m := New(me)
		want(t, name, m.Duties(on(c.member), idle), c.goes)
		m.Note(role.Drain{})
		want(t, name+", draining", m.Duties(on(c.member), idle), c.drained)
		want(t, name+", draining and busy", m.Duties(on(c.member), busy), c.busy)
	}
	over := on(crew.Member{Active: true})
	over.Run.Phase = progress.Done
	want(t, "over", New(me).Duties(over, idle), "Depart")
	stranger := on(crew.Member{})
	stranger.Run.Members = stranger.Run.Members[1:]
	want(t, "no member", New(me).Duties(stranger, idle), "")
	owing := on(crew.Member{Why: reason.Left})
	owing.Run.Units = work.Units{{Worker: me, Status: work.Committed}}
	want(t, "left, and may be asked", New(me).Duties(owing, idle), "")
}

func TestTrial(t *testing.T) {
	m := New(me)
	standing := crew.Member{Why: reason.OnProbation}
	want(t, "without a probation task", m.Duties(on(standing, progress.Probation{Member: me}), idle), "")
	x := progress.Probation{Member: me, Task: progress.ProbationTask{Round: 3, Worker: "b",
		Commit: work.Commitment{Segments: []canon.Digest{{1}}}}}
	check := m.Duties(on(standing, x), idle)
	want(t, "with a probation task", check, "Check")
	m.Note(role.Checked{Action: check[0].(role.Check), Differ: 0})
	prove := m.Duties(on(standing, x), idle)
	want(t, "found another state", prove, "Prove")
	if !prove[0].(role.Prove).Seal.IsZero() {
		t.Error("it seals what it does not have")
	}
	m.Note(role.Checked{Action: check[0].(role.Check), Right: true, Seal: canon.Digest{7}})
	prove = m.Duties(on(standing, x), idle)
	if prove[0].(role.Prove).Seal != (canon.Digest{7}) {
		t.Errorf("%+v", prove)
	}
	shown := x
	shown.Task.Commit.Segments = []canon.Digest{{2}}
	want(t, "the same unit with another commitment", m.Duties(on(standing, shown), idle), "Check")
	x.Seal = canon.Digest{7}
	want(t, "before the question", m.Duties(on(standing, x), idle), "")
	x.Question = canon.Digest{8}
	want(t, "asked", m.Duties(on(standing, x), idle), "Unseal")
	m.Note(role.Drain{})
	want(t, "drains", m.Duties(on(standing, x), idle), "Leave")
}

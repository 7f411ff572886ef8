// Package membership is how an account joins a run in progress, and leaves it: the probation of a new member, the
// return after missed deadlines, leaving in good standing, and the end of all duties. Workers and verifiers share it.
//
// The duties of an active member belong to its role.
package membership

import (
	"slices"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// Membership follows the standing of one member in one run.
type Membership struct {
	id       string
	draining bool                         // it begins no new work, and leaves
	finished bool                         // since then it finished what it was computing
	checked  map[work.UnitID]role.Checked // the latest outcome of executing a unit, during its probation
	height   int64                        // of the latest block
	pause    pause
}

// New returns the membership of the member with this ID.
func New(id string) *Membership {
	return &Membership{id: id, checked: map[work.UnitID]role.Checked{}}
}

// Note takes in an event.
func (m *Membership) Note(e role.Event) {
	switch e := e.(type) {
	case role.Drain:
		m.draining = true
	case role.Trained, role.Measured:
		m.finished = m.draining
	case role.Checked:
		m.finished = m.draining
		m.checked[e.Action.Work] = e
	case role.Pause:
		m.begin(e)
	case role.Resume:
		m.pause = pause{}
	}
}

// Seated reports whether the member has a seat in the run, and counts.
func (m *Membership) Seated(s run.State) bool {
	member, _ := s.Member(m.id)
	return member.Active
}

// Outside reports whether it has no part in the run, and never had one or left it in good standing, so that it may
// challenge as any account may.
func (m *Membership) Outside(s run.State) bool {
	member, known := s.Member(m.id)
	return !m.draining && (!known || !member.Active && member.Why == reason.Left)
}

// Finishing reports whether the member drains: it will leave once its computations are done, and they are not done
// yet.
func (m *Membership) Finishing() bool { return m.draining && !m.finished && !m.Paused() }

// Duties returns the duties of the member's standing after a block. busy reports whether a draining member has begun
// work that it should not leave to others.
func (m *Membership) Duties(b role.Block, busy func(run.State) bool) []role.Action {
	s := b.Run
	if m.height = b.Height; m.handsBack(b) {
		return []role.Action{role.Leave{}}
	}
	if t, ok := s.Probation(m.id); ok && !m.draining {
		return m.probationTask(t, s.ProbationSegment(t.Task))
	}
	clear(m.checked)
	member, known := s.Member(m.id)
	switch {
	case !known && (m.draining || s.Phase == progress.Done || s.Phase == progress.Halted):
		return []role.Action{role.Depart{}}
	case !known, s.Guest(m.id) && !m.draining && s.Phase != progress.Done && s.Phase != progress.Halted:
		return nil
	case m.draining && s.MayLeave(m.id) && !(member.Active && busy(s)):
		return []role.Action{role.Leave{}}
	case !m.draining && s.MayReturn(m.id, b.Height):
		return []role.Action{role.Return{}}
	case (s.Removed(m.id) || m.draining && !member.Active) && !s.Liable(m.id):
		return []role.Action{role.Depart{}}
	}
	return nil
}

// probationTask executes the task of a member on probation, to the end of a segment or (0) all of it, and shows that it
// reached the committed state.
func (m *Membership) probationTask(t progress.Probation, segment uint32) []role.Action {
	x := t.Task
	id := x.ID()
	switch {
	case x.Worker == "":
		return nil
	case !t.Question.IsZero():
		return []role.Action{role.Unseal{Work: id, Base: x.Base, Question: t.Question, Segment: segment}}
	case !t.Seal.IsZero():
		return nil
	}
	c, known := m.checked[id]
	if known && slices.Equal(c.Action.Commit.Segments, x.Commit.Segments) {
		answer := role.Prove{Work: id}
		if c.Right {
			answer.Seal = c.Seal
		}
		return []role.Action{answer}
	}
	return []role.Action{role.Check{Work: id, Base: x.Base, Worker: x.Worker, Commit: x.Commit, Segment: segment}}
}

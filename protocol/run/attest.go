package run

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/run/terms"
)

// Attest is a member's vote for the checkpoint after the current round. The caller has verified its signature over
// State.Attestation(v.Next).Digest().
func (s State) Attest(env Env, round uint32, v Vote) (State, []Event, error) {
	if err := sender(s, v.Member); err != nil {
		return s, nil, err
	}
	switch {
	case round != s.Round:
		return s, nil, fmt.Errorf("%w: round %d, the run is in round %d", ErrStale, round, s.Round)
	case s.Phase != Attest && !s.Combines():
		return s, nil, fmt.Errorf("%w: a unit of round %d is not committed, or a slice not agreed", ErrWrongPhase, s.Round)
	case !s.Attestable():
		return s, nil, fmt.Errorf("%w: a unit has diverged, or a tolerant round has audits that are not over", ErrWrongPhase)
	case s.Voted(v.Member):
		return s, nil, fmt.Errorf("%w: %s has attested round %d", ErrDuplicate, v.Member, s.Round)
	case v.Next.Round != s.Round+1:
		return s, nil, fmt.Errorf("%w: checkpoint of round %d, wanted %d", ErrBadVote, v.Next.Round, s.Round+1)
	case v.Next.Root.IsZero() || !terms.ValidCID(v.Next.CID):
		return s, nil, fmt.Errorf("%w: the checkpoint needs a state root and a CID", ErrBadVote)
	case len(v.PublicKey) > MaxKey || len(v.Signature) > MaxKey:
		return s, nil, fmt.Errorf("%w: key and signature have at most %d bytes", ErrBadVote, MaxKey)
	}
	v.PublicKey, v.Signature = slices.Clone(v.PublicKey), slices.Clone(v.Signature)
	d := s.edit(env)
	d.Votes = append(slices.Clip(d.Votes), v)
	d.change(v.Member, func(m *Member) { m.Silent = 0 })
	d.tally()
	after, events := d.finish()
	return after, events, nil
}

// tally ends the round when a quorum agrees and its units are committed. When all have voted and there is no quorum,
// more than half of the weight is enough: that checkpoint can be refuted like any other, and one false vote of three
// must not end a run. That of a round in slices cannot. Where not even half agrees, the run waits for who joins, and
// ends when nobody comes in time.
func (d *lineage) tally() {
	agree, voted := make(map[Checkpoint]map[string]bool), 0
	for _, v := range d.Votes {
		if d.active(v.Member) {
			if agree[v.Next] == nil {
				agree[v.Next] = map[string]bool{}
			}
			agree[v.Next][v.Member] = true
			voted++
		}
	}
	all := voted == d.actives()
	checked := map[Checkpoint]bool{}
	for _, v := range d.Votes {
		if checked[v.Next] {
			continue
		}
		checked[v.Next] = true
		if ids := agree[v.Next]; d.quorate(ids) || all && !d.Terms.Sliced() && d.exceeds(ids, 1, 2) {
			if d.ended() {
				d.attested(v.Next)
			}
			return
		}
	}
	if all && (voted == 0 || d.env.Height >= d.Since+lastPatience*d.Terms.Deadlines.Attest) {
		d.halt(WhyNoQuorum)
	}
}

// attested adds a checkpoint to the lineage and begins the next round. The round stays open until it is final.
func (d *lineage) attested(next Checkpoint) {
	entry := &Entry{Attestation: d.Attestation(next), Height: d.env.Height}
	for _, u := range d.Units {
		entry.Workers = append(entry.Workers, u.Worker)
		entry.Logs = append(entry.Logs, u.Commit.Log)
		if !u.late() {
			d.change(u.Worker, func(m *Member) { m.Missed = 0 })
		}
	}
	for _, v := range d.Votes {
		switch {
		case v.Next != next:
			d.leave(v.Member, WhyWrongAttest)
		case d.active(v.Member):
			entry.Votes = append(entry.Votes, v)
		}
	}
	slices.SortFunc(entry.Votes, func(a, b Vote) int { return cmp.Compare(a.Member, b.Member) })
	d.emit(Event{Kind: RoundAttested, Round: d.Round, Entry: entry})
	d.Attested = d.env.Height
	d.Open = append(slices.Clip(d.Open), d.RoundState)
	d.RoundState, d.Votes, d.Slices = RoundState{Round: d.Round + 1, Base: next, From: d.handedOn()}, nil, nil
	d.enter(Assign)
	if d.Round == d.Terms.Rounds {
		d.enter(Settle)
		return
	}
	d.rollbacks.restore()
}

// lateVotes counts silence at each deadline of the phase, and lets the silent go when patience ends. Where nobody
// speaks there is nobody to go on with, and all are waited for.
func (d *lineage) lateVotes() {
	if !d.env.expired(d.Since, d.Terms.Deadlines.Attest) {
		if d.env.passed(d.Since + lastPatience*d.Terms.Deadlines.Attest) {
			d.tally()
		}
		return
	}
	least := uint32(2 * patience)
	if slices.ContainsFunc(d.Votes, func(v Vote) bool { return d.active(v.Member) }) {
		least = patience
	}
	for i := range d.Members {
		m := &d.Members[i]
		if !m.Active || d.Voted(m.ID) {
			continue
		}
		if m.Silent++; m.Silent >= least {
			d.leave(m.ID, WhyMissedAttest)
		}
	}
	d.tally()
}

// syncPhase sets the phase that the units are in: there are commitments to come, or there are none, and then their
// audits can be drawn.
func (d *lineage) syncPhase() {
	open := d.trains()
	switch {
	case d.Phase == Train && !open:
		d.Closed = d.env.Height
		d.enter(Attest)
		if _, diverged := d.Diverged(); d.Terms.Sliced() && !diverged {
			d.enter(Reduce)
		}
		if d.ahead() { // members may have attested before
			d.tally()
		}
	case (d.Phase == Attest || d.Phase == Reduce) && open:
		d.reopen()
	}
}

// trains reports whether a unit of the current round has no commitment.
func (d *lineage) trains() bool {
	return slices.ContainsFunc(d.Units, func(u *Unit) bool { return u.Status == Assigned })
}

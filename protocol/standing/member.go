package standing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

func textf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// zen writes an amount of uzen in ZEN, with two to six decimals.
func zen(uzen uint64) string {
	s := fmt.Sprintf("%d.%06d", uzen/1_000_000, uzen%1_000_000)
	for range 4 {
		s = strings.TrimSuffix(s, "0")
	}
	return s
}

// member is a participant in one run.
type member struct {
	View
	run  Run
	self crew.Member
}

// reasons says what the member does in the run and what it waits for, the round that is trained first.
func (m member) reasons() []Reason {
	s := m.run.State
	switch {
	case s.Phase == progress.Done:
		return m.about(s.RoundState, Reason{Code: RunDone, Kind: Over, Text: "the run is done",
			Do: "see what it paid with starling job explain"})
	case s.Phase == progress.Halted:
		return m.about(
			s.RoundState,
			Reason{Code: RunHalted, Kind: Over, Text: "the run ended before its last round: " + s.Why,
				Do: "the consumer can resume it from its last checkpoint"},
		)
	}
	var all []Reason
	if m.self.Active {
		all = m.duties()
	} else {
		all = m.about(s.RoundState, m.apart())
	}
	all = append(all, m.disputes()...)
	all = append(all, m.audits()...)
	for _, l := range s.Open {
		all = append(all, m.unpaid(l)...)
	}
	return all
}

// apart says where a member stands that is not active.
func (m member) apart() Reason {
	switch m.self.Why {
	case reason.OnProbation:
		t, _ := m.run.Probation(m.Who)
		switch {
		case t.Task.Worker == "":
			return Reason{
				Code: WaitsProbationTask,
				Kind: Waits,
				Text: "the account joins, and is given a unit to prove itself with " +
					"when one is final",
			}
		case !t.Seal.IsZero() && t.Question.IsZero():
			return Reason{
				Code: OnProbation,
				Kind: Waits,
				Text: "the account has proven itself with a seal, and the next block " +
					"that has a beacon says where to open it",
			}
		}
		return Reason{Code: OnProbation, Kind: Works, Until: t.Deadline,
			Text: textf("the account joins, and shows with unit %d of round %d that it computes what the others do",
				t.Task.Unit, t.Task.Round+1)}
	case reason.Returning:
		return Reason{Code: Returns, Kind: Waits, Text: "the account is back after missed deadlines, and waits for a free " +
			"place"}
	}
	why, do := departure(m.self.Why)
	return Reason{Code: Left, Kind: Over, Text: "the account takes no further part in this run: " + why, Do: do}
}

// about completes reasons with the job and the round.
func (m member) about(l work.RoundState, rs ...Reason) []Reason {
	for i := range rs {
		rs[i].Job, rs[i].Round = m.run.Terms.Job, min(l.Round+1, m.run.Terms.Rounds)
	}
	return rs
}

// duties says what an active member does in the current round.
func (m member) duties() []Reason {
	s := m.run.State
	switch s.Phase {
	case progress.Assign:
		return m.about(s.RoundState, m.assigning())
	case progress.Train:
		if s.Combines() && !s.Voted(m.Who) {
			return m.about(
				s.RoundState,
				m.training(),
				Reason{Code: Attests, Kind: Works, Text: "the updates of the round before " +
					"are combined, and the next checkpoint attested"},
			)
		}
		return m.about(s.RoundState, m.training())
	case progress.Reduce:
		return m.about(s.RoundState, m.reducing())
	case progress.Attest:
		return m.about(s.RoundState, m.attesting())
	}
	return m.about(s.RoundState, Reason{Code: WaitsFinal, Kind: Waits,
		Text: textf("all rounds are trained, and %d of them are not final yet", len(s.Open))})
}

func (m member) assigning() Reason {
	s := m.run.State
	switch {
	case len(s.Open) >= int(s.Terms.Window):
		return Reason{Code: WaitsWindow, Kind: Waits, Text: textf("%d rounds are trained and not final, as many as may "+
			"be: round %d has to be final first", len(s.Open), s.Open[0].Round+1)}
	case cost.Exposure(s) > m.run.Escrow.Remaining():
		return Reason{Code: WaitsBudget, Kind: Waits, Text: "what remains of the budget does not cover another round, " +
			"until earlier rounds leave some of theirs"}
	}
	if s.Terms.Led > 0 && len(s.From) == 0 {
		return Reason{Code: WaitsData, Kind: Waits, Until: s.Since + s.Terms.Led,
			Text: "the consumer leads the run, and has named no data for the next round; waiting is not paid, and the run " +
				"ends when none are named in time"}
	}
	return Reason{Code: WaitsBeacon, Kind: Waits, Text: "the units of the round are dealt in the next block that has a " +
		"beacon"}
}

func (m member) training() Reason {
	s := m.run.State
	if mine := append(s.Work(m.Who), s.Drawing(m.Who)...); len(mine) > 0 {
		first := slices.MinFunc(mine, func(a, b work.Unit) int { return cmp.Compare(a.Deadline, b.Deadline) })
		return Reason{Code: Trains, Kind: Works, Until: first.Deadline,
			Text: textf("%s to train; a commitment is due", count(len(mine), "unit"))}
	}
	for _, u := range s.Units {
		if len(s.PreviousAssignments(m.Who, s.Round, u.Index)) > 0 {
			return Reason{Code: Late, Kind: Works, Text: textf("unit %d went to %s after its deadline; a commitment of this "+
				"account still counts if it is the first", u.Index, u.Worker)}
		}
	}
	var others []string
	var last int64
	for _, u := range s.Units.Learning() {
		if u.Waits() {
			return m.answers()
		}
		if u.Status == work.Assigned {
			last = max(last, u.Deadline)
			if !slices.Contains(others, u.Worker) {
				others = append(others, u.Worker)
			}
		}
	}
	text := "for the commitments of " + names(others)
	if m.self.Role == crew.Worker && !slices.ContainsFunc(s.Units, func(u *work.Unit) bool { return u.Worker == m.Who }) {
		return Reason{Code: NoUnit, Kind: Waits, Until: last,
			Text: "no unit of this round was dealt to this account, whose share follows its measured speed; the round waits " +
				text}
	}
	return Reason{Code: WaitsCommits, Kind: Waits, Until: last, Text: "the round waits " + text}
}

// answers explains that no unit learns until what it reads is drawn.
func (m member) answers() Reason {
	s := m.run.State
	l, _ := s.Answers(s.Terms.Policy(s.Round))
	var drawers []string
	var last int64
	for _, u := range l.Units {
		if u.Draws && u.Status == work.Assigned {
			last = max(last, u.Deadline)
			if !slices.Contains(drawers, u.Worker) {
				drawers = append(drawers, u.Worker)
			}
		}
	}
	return Reason{Code: WaitsCommits, Kind: Waits, Until: last, Text: textf("the units that learn in this round wait for "+
		"the answers of round %d, which %s draw", l.Round+1, names(drawers))}
}

func (m member) reducing() Reason {
	s := m.run.State
	var until int64
	mine, open := 0, 0
	for i, x := range s.Slices {
		if x.Status != progress.Agreed {
			open++
		}
		if s.Owes(m.Who, i) == progress.OwesNothing {
			continue
		}
		mine++
		at := slices.IndexFunc(x.Reducers, func(r progress.Reducer) bool { return r.Member == m.Who })
		if due := x.Reducers[at].Deadline; until == 0 || due < until {
			until = due
		}
	}
	if mine > 0 {
		return Reason{Code: Reduces, Kind: Works, Until: until,
			Text: textf("%s of the next checkpoint to compute or to show", count(mine, "slice"))}
	}
	return Reason{Code: WaitsSlices, Kind: Waits,
		Text: textf("%d of %d slices of the next checkpoint are not agreed yet", open, s.Terms.Slices)}
}

func (m member) attesting() Reason {
	s := m.run.State
	until := s.Since + s.Terms.Deadlines.Attest
	if s.Voted(m.Who) {
		return Reason{Code: WaitsVotes, Kind: Waits, Until: until,
			Text: textf("%d members have attested the checkpoint, which needs more than two thirds of the stake", len(s.Votes))}
	}
	return Reason{Code: Attests, Kind: Works, Until: until,
		Text: "the updates are combined, and the checkpoint after the round attested"}
}

// disputes says whose move it is in the disputes of the member that are played.
func (m member) disputes() (all []Reason) {
	for _, g := range m.run.Disputes {
		c := g.Config
		d, ok := m.run.Playing(work.UnitID{Round: c.Round, Unit: c.Unit, Attempt: c.Attempt}, c.Challenger)
		if g.Stage == dispute.Over || !ok || c.Asserter != m.Who && c.Challenger != m.Who {
			continue
		}
		mine := (g.Turn == dispute.Asserter) == (c.Asserter == m.Who)
		r := Reason{Code: WaitsMove, Kind: Waits, Until: g.Deadline,
			Text: textf("the dispute about unit %d waits for the %s's move", c.Unit, g.Turn)}
		if mine {
			r = Reason{Code: Moves, Kind: Works, Until: g.Deadline,
				Text: textf("the dispute about unit %d waits for this account's move; silence loses it", c.Unit),
				Do:   "keep the process running until the dispute is over"}
		}
		all = append(all, m.about(d.RoundState, r)...)
	}
	return all
}

// audits says what a verifier has to look at.
func (m member) audits() (all []Reason) {
	if m.self.Role != crew.Verifier {
		return nil
	}
	for _, l := range m.run.All() {
		for _, u := range l.Units {
			switch {
			case u.OwesReport(m.Who):
				all = append(all, m.about(l, Reason{Code: Audits, Kind: Works, Until: deadline(u, m.Who),
					Text: textf("unit %d is to be done again, and how far it is off to be sealed", u.Index)})...)
			case u.OwesFigures(m.Who):
				all = append(all, m.about(l, Reason{Code: OpensSeal, Kind: Works, Until: deadline(u, m.Who),
					Text: textf("how far unit %d is off is to be shown; silence costs the stake", u.Index),
					Do:   "keep the process running until it is done"})...)
			case u.Verifier != m.Who:
			case u.Status == work.Auditing:
				all = append(all, m.about(l, Reason{Code: Audits, Kind: Works, Until: u.Deadline,
					Text: textf("unit %d is to be done again and answered", u.Index)})...)
			case u.Status == work.Sealed && u.Question.IsZero():
				all = append(all, m.about(l, Reason{Code: WaitsQuestion, Kind: Waits,
					Text: textf("the next block that has a beacon says where the seal of unit %d is to be opened", u.Index)})...)
			case u.Status == work.Sealed:
				all = append(all, m.about(l, Reason{Code: OpensSeal, Kind: Works, Until: u.Deadline,
					Text: textf("the seal of unit %d is to be opened; silence costs the stake", u.Index),
					Do:   "keep the process running until it is done"})...)
			}
		}
	}
	if len(all) == 0 && m.self.Active {
		all = m.about(
			m.run.RoundState,
			Reason{Code: NoAudit, Kind: Waits, Text: "no audit is drawn for this account at the moment"},
		)
	}
	return all
}

// deadline is the height by which a verifier of tolerant work owes what it has to say of a unit.
func deadline(u *work.Unit, verifier string) (height int64) {
	for _, x := range u.Looks {
		if x.Verifier == verifier {
			height = x.Deadline
		}
	}
	return height
}

// unpaid says what an attested round with work of the member waits for before it is final and paid.
func (m member) unpaid(l work.RoundState) (all []Reason) {
	mine := 0
	for _, u := range l.Units {
		if u.Worker != m.Who {
			continue
		}
		mine++
		if r, ok := unsettled(u); ok {
			all = append(all, r)
		}
	}
	if mine == 0 || len(all) > 0 {
		return m.about(l, all...)
	}
	open := slices.IndexFunc(l.Units, func(u *work.Unit) bool { return u.Status != work.Accepted })
	final := l.Attested + m.run.ChallengeBlocks()
	r := Reason{Code: WaitsChallenge, Kind: Waits, Until: final,
		Text: textf("%s accepted; the round may be challenged until it is final", count(mine, "unit"))}
	switch {
	case open >= 0:
		r = Reason{Code: WaitsFinal, Kind: Waits,
			Text: textf("%s accepted; unit %d of %s is not settled yet", count(mine, "unit"), open, l.Units[open].Worker)}
	case m.Height >= final && l.Round != m.run.Oldest():
		r = Reason{Code: WaitsOlder, Kind: Waits, Text: textf("%s accepted; rounds become final in their order, and round "+
			"%d is not", count(mine, "unit"), m.run.Oldest()+1)}
	}
	return m.about(l, r)
}

// unsettled says what is open about a unit of an attested round.
func unsettled(u *work.Unit) (Reason, bool) {
	r := Reason{Kind: Waits}
	switch u.Status {
	case work.Committed:
		r.Code, r.Text = WaitsDraw, textf("the next block that has a beacon draws whether unit %d is audited", u.Index)
	case work.Auditing:
		r.Code, r.Until, r.Text = WaitsAudit, u.Deadline,
			textf("%s has to do unit %d again before it is paid", u.Verifier, u.Index)
	case work.Sealed:
		r.Code, r.Until, r.Text = WaitsOpening, u.Deadline,
			textf("%s found unit %d right, and has to open its seal", u.Verifier, u.Index)
	case work.Disputed:
		r.Code, r.Text = WaitsDispute, textf("unit %d is disputed by %s", u.Index, names(u.Challengers))
	default:
		return r, false
	}
	return r, true
}

// departure says why a member is inactive, and what to do.
func departure(why string) (text, do string) {
	const slow = "keep the machine on and free of other load; it comes back by itself when the process runs"
	const broken = "before staking again, check the memory of the machine and that it runs the version that the " +
		"network runs"
	switch why {
	case reason.Left:
		return "it left in good standing, and is paid for what it committed",
			"nothing; what may still be questioned is answered while the process runs"
	case reason.Unopened:
		return "it could not open the job, and has done nothing in the run",
			"let the machine reach the others (starling doctor --listen), or give it more memory or disk (--memory, --disk)"
	case reason.Guest:
		return "it has no seat in the run: it answers for what it audited or challenged there",
			"nothing; it is drawn from all verifiers of the network"
	case reason.Unproven:
		return "its probation ended without a proof that it computes what the others do",
			"let the machine reach the others (starling doctor --listen), and check that it runs the version that the " +
				"network runs"
	case reason.Unattested:
		return "no attestation with a measurement that the job lists holds for its machine any longer",
			"attest the machine again (starling worker attest); it comes back by itself when the process runs"
	case reason.MissedDeadlines:
		return "it missed the deadlines of several units in a row", slow
	case reason.MissedAudits:
		return "it missed the deadlines of several audits in a row", slow
	case reason.MissedAttest:
		return "it attested no checkpoint for several deadlines", slow
	case reason.Unavailable:
		return "others could not fetch its updates", "let other machines reach this one: see starling doctor --listen"
	case reason.HiddenLink:
		return "a verifier and most members could have the values of a link between two stages from neither of them",
			"keep the worker running, and reachable by others (starling doctor --listen), until its rounds are final"
	case reason.Withheld:
		return "its updates were withheld several times in a row, or its deposit is held over one",
			"check that it runs the numerics that the job allows: verifiers found its updates too far from theirs"
	case reason.MissedSlices:
		return "it missed the deadlines of several slices in a row", slow
	case reason.WrongAttest:
		return "it attested another checkpoint than the others", broken
	case reason.WrongSlice:
		return "it found something else in a slice than a quorum of the others", broken
	case reason.Verdict:
		return "a verdict found its work wrong", broken
	case reason.FalseChallenge:
		return "it challenged work that a verdict found right", broken
	case reason.SealUnopened:
		return "it did not open a seal in time", "keep a verifier running until its seals are opened"
	case reason.Differs:
		return "it reported something else of a unit than most of those who looked", broken
	case reason.FalseReport:
		return "the exact execution of a unit ends in another state than it reported", broken
	case reason.PlantPassed:
		return "it passed work in which a fault was planted", broken
	}
	return strings.ReplaceAll(why, "_", " "), ""
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return textf("%d %ss", n, what)
}

// names lists accounts, the first few of many.
func names(ids []string) string {
	const most = 3
	switch {
	case len(ids) == 0:
		return "no member"
	case len(ids) > most:
		return textf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
	}
	return strings.Join(ids, ", ")
}

package standing

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// codes is every code there is: a table below has to reach each.
var codes = []Code{
	NotRegistered, Jailed, StakeTooSmall, Draining, Withdrawn, SlotsTaken, Revoked, OwnerDrains,
	NoOrder, OrderPrice, OrderMismatch, OrderWorkers, OrderVerifiers, OrderDear, OrderBudget, OrderNotChosen, OrderNext,
	Left, OnProbation, WaitsProbationTask, Returns, RunDone, RunHalted, WaitsBeacon, WaitsData, WaitsWindow, WaitsBudget,
	NoUnit, Trains,
	WaitsCommits, Reduces, WaitsSlices, Attests, WaitsVotes, WaitsFinal,
	NoAudit, Audits, WaitsQuestion, OpensSeal, Moves, WaitsMove, WaitsDispute, WaitsDraw, WaitsAudit, WaitsOpening,
	WaitsChallenge, WaitsOlder,
}

// state is a run of two workers and a verifier in round 3, with one attested round open, in which everything is
// accepted.
func state() run.State {
	units := func(s work.Status) work.Units {
		return work.Units{{Index: 0, Status: s, Worker: "w", Deadline: 70}, {Index: 1, Status: s, Worker: "x", Deadline: 80}}
	}
	return run.State{
		Progress: progress.Progress{
			Crew: crew.Crew{Terms: terms.Terms{Job: "job", Rounds: 9, Units: 2, UnitFlops: cost.Flops, Window: 4, AuditPPM: 1,
				Deadlines: terms.Deadlines{
					Train:     20,
					Audit:     20,
					Attest:    20,
					Challenge: 10,
				}}, Members: []crew.Member{{ID: "v", Role: crew.Verifier, Price: 1, Active: true},
				{ID: "w", Role: crew.Worker, Price: 1, Active: true}, {ID: "x", Role: crew.Worker, Price: 1, Active: true}}},
			Phase: progress.Train,
			Since: 50,
			Window: work.Window{
				RoundState: work.RoundState{Round: 2, Base: terms.Checkpoint{Round: 2}, Units: units(work.Assigned)},
				Open: []work.RoundState{
					{Round: 1, Base: terms.Checkpoint{Round: 1}, Attested: 50, Drawn: true, Units: units(work.Accepted)},
				},
			},
		},
	}
}

func view(who string) View {
	role := crew.Worker
	if who == "v" {
		role = crew.Verifier
	}
	return View{
		Who: who, Height: 55, Stakes: registry.Params{WorkerStake: 10, VerifierStake: 20},
		Participant: &registry.Participant{ID: who, Roles: []crew.Role{role}, Stake: 50},
		Offers:      []market.Offer{{ID: who, Role: role, Price: 100, Slots: 1}},
		Runs:        []Run{{State: state(), Escrow: market.Escrow{Budget: 1000}}},
	}
}

func game(turn dispute.Party) dispute.Dispute {
	return dispute.Dispute{Config: dispute.Config{Round: 1, Unit: 0, Asserter: "w", Challenger: "v"},
		Stage: dispute.PickState, Turn: turn, Deadline: 66}
}

func TestExplain(t *testing.T) {
	order := func(why market.Reason) func(*View) {
		return func(v *View) {
			v.Runs = nil
			v.Orders = []Order{{market.Order{ID: "wanted", PriceCap: 200, Budget: 7, Workers: market.Workers{Min: 3},
				Verifiers: 2, Deadline: 99}, why}}
		}
	}
	// lap changes the first unit of the open round.
	lap := func(change func(*View, *work.Unit)) func(*View) {
		return func(v *View) { change(v, v.Runs[0].Open[0].Units[0]) }
	}
	phase := func(p progress.Phase) func(*View) {
		return func(v *View) { v.Runs[0].Phase = p }
	}
	reached := map[Code]bool{}
	for name, c := range map[string]struct {
		who    string
		change func(*View)
		code   Code
		until  int64
		say    string
	}{
		"unknown account": {"w", func(v *View) { v.Participant = nil }, NotRegistered, 0, "no part"},
		"revoked": {"w", func(v *View) {
			v.Participant.Machine = registry.Machine{Owner: "o", Revoked: 50, Drains: true}
		}, Revoked, 0, "o revoked the key of this machine in block 50"},
		"its owner lets it drain": {"w", func(v *View) {
			v.Participant.Machine = registry.Machine{Owner: "o", Drains: true}
		}, OwnerDrains, 0, "o lets this machine drain"},
		"only an address": {"w", func(v *View) { v.Participant.Roles, v.Runs = nil, nil }, NotRegistered, 0, "no work"},
		"jailed":          {"w", func(v *View) { v.Participant.Jailed = true }, Jailed, 0, "slashed"},
		"small stake":     {"v", func(v *View) { v.Participant.Stake = 15 }, StakeTooSmall, 0, "0.00002 that a verifier"},
		"draining":        {"w", func(v *View) { v.Offers = nil }, Draining, 0, "present ones"},
		"withdrawn":       {"w", func(v *View) { v.Offers, v.Runs = nil, nil }, Withdrawn, 0, "no work"},
		"another's offer": {"w", func(v *View) { v.Offers[0].ID, v.Runs = "x", nil }, Withdrawn, 0, "no work"},
		"busy":            {"w", func(*View) {}, SlotsTaken, 0, "in 1 of 1 runs"},
		"no order":        {"w", func(v *View) { v.Runs = nil }, NoOrder, 0, "no job"},
		"price": {"w", func(v *View) { order(market.TooFewWorkers)(v); v.Orders[0].PriceCap = 99 }, OrderPrice, 99,
			"at most 0.000099 ZEN"},
		"misfit": {"w", func(v *View) {
			order(market.TooFewWorkers)(v)
			v.Orders[0].Conditions.Disk = 1
			v.Lots = []market.Listing{{Offer: v.Offers[0]}}
		}, OrderMismatch, 99, "its disk is too small"},
		"few workers":     {"w", order(market.TooFewWorkers), OrderWorkers, 99, "3 workers, and 1"},
		"few verifiers":   {"w", order(market.TooFewVerifiers), OrderVerifiers, 99, "2 verifiers, and 0"},
		"others too dear": {"w", order(market.PriceAboveCap), OrderDear, 99, "at most its 0.0002 ZEN"},
		"budget":          {"w", order(market.BudgetTooSmall), OrderBudget, 99, "0.000007 ZEN"},
		"another reason":  {"w", order("no_luck"), OrderNotChosen, 99, "no_luck"},
		"next block":      {"w", order(market.Matched), OrderNext, 99, "next block"},
		"done":            {"w", phase(progress.Done), RunDone, 0, "done"},
		"halted": {"w", func(v *View) { v.Runs[0].Phase, v.Runs[0].Why = progress.Halted, reason.NoQuorum }, RunHalted,
			0, "no_quorum"},
		"beacon": {"w", phase(progress.Assign), WaitsBeacon, 0, "dealt"},
		"data": {"w", func(v *View) {
			phase(progress.Assign)(v)
			v.Runs[0].Terms.Led, v.Runs[0].Since = 40, 2
		}, WaitsData, 42, "not paid"},
		"window": {"w", func(v *View) { v.Runs[0].Phase, v.Runs[0].Terms.Window = progress.Assign, 1 }, WaitsWindow, 0,
			"round 2"},
		"broke": {"w", func(v *View) { v.Runs[0].Phase, v.Runs[0].Escrow.Paid = progress.Assign, 999 }, WaitsBudget, 0,
			"budget"},
		"trains":         {"w", func(*View) {}, Trains, 70, "1 unit"},
		"trains two":     {"w", func(v *View) { v.Runs[0].Units[1].Worker = "w" }, Trains, 70, "2 units"},
		"committed":      {"w", func(v *View) { v.Runs[0].Units[0].Status = work.Committed }, WaitsCommits, 80, "of x"},
		"no unit":        {"w", func(v *View) { v.Runs[0].Units[0].Worker = "x" }, NoUnit, 80, "speed"},
		"verifier waits": {"v", func(*View) {}, WaitsCommits, 80, "w, x"},
		"joins":          {"w", probation(progress.Probation{}), WaitsProbationTask, 0, "when one is final"},
		"in probation": {"w", probation(progress.Probation{
			Task: progress.ProbationTask{Worker: "x", Unit: 3, Round: 4}, Deadline: 88}),
			OnProbation, 88,
			"unit 3 of round 5"},
		"sealed its task": {"w", probation(progress.Probation{Task: progress.ProbationTask{Worker: "x"},
			Seal:     canon.Sum("seal"),
			Deadline: 88}),
			OnProbation, 0, "next block"},
		"opens its task": {"w", probation(progress.Probation{Task: progress.ProbationTask{Worker: "x"},
			Seal:     canon.Sum("seal"),
			Question: canon.Sum("q"), Deadline: 88}), OnProbation, 88, "unit 0"},
		"returns": {"w", func(v *View) {
			v.Runs[0].Members[1].Active, v.Runs[0].Members[1].Why = false,
				reason.Returning
		}, Returns, 0, "free place"},
		"reduces":       {"w", reducing("w"), Reduces, 77, "1 slice of"},
		"others reduce": {"w", reducing("x"), WaitsSlices, 0, "1 of 2 slices"},
		"attests":       {"w", phase(progress.Attest), Attests, 70, "attested"},
		"attests early": {"v", func(v *View) { v.Runs[0].Terms.Overlap, v.Runs[0].Terms.Carry = true, 8 }, Attests, 0,
			"round before"},
		"voted": {"w", func(v *View) { v.Runs[0].Phase, v.Runs[0].Votes = progress.Attest, []progress.Vote{{Member: "w"}} },
			WaitsVotes, 70, "more than two thirds of the stake"},
		"settles":  {"w", phase(progress.Settle), WaitsFinal, 0, "1 of them"},
		"no audit": {"v", func(*View) {}, NoAudit, 0, "no audit"},
		"audits": {"v", lap(func(_ *View, u *work.Unit) { u.Status, u.Verifier = work.Auditing, "v" }), Audits, 70,
			"unit 0"},
		"sealed": {"v", lap(func(_ *View, u *work.Unit) { u.Status, u.Verifier = work.Sealed, "v" }), WaitsQuestion,
			0, "next block"},
		"asked": {"v", lap(func(_ *View, u *work.Unit) {
			u.Status, u.Verifier, u.Question = work.Sealed, "v",
				canon.Sum("q")
		}), OpensSeal, 70, "stake"},
		"inactive, sealed": {"v", lap(func(v *View, u *work.Unit) {
			v.Runs[0].Members[0].Active, u.Status, u.Verifier, u.Question = false, work.Sealed, "v", canon.Sum("q")
		}), OpensSeal, 70, "stake"},
		"to be drawn": {"w", lap(func(_ *View, u *work.Unit) { u.Status = work.Committed }), WaitsDraw, 0, "draws"},
		"audited": {"w", lap(func(_ *View, u *work.Unit) { u.Status, u.Verifier = work.Auditing, "v" }), WaitsAudit,
			70, "v has to"},
		"found right": {"w", lap(func(_ *View, u *work.Unit) { u.Status, u.Verifier = work.Sealed, "v" }), WaitsOpening,
			70, "seal"},
		"disputed": {"w", lap(func(_ *View, u *work.Unit) { u.Status, u.Challengers = work.Disputed, []string{"v"} }),
			WaitsDispute, 0, "by v"},
		"its move":          {"w", lap(disputed(dispute.Asserter)), Moves, 66, "silence"},
		"their move":        {"w", lap(disputed(dispute.Challenger)), WaitsMove, 66, "verifier's move"},
		"challenger's move": {"v", lap(disputed(dispute.Challenger)), Moves, 66, "silence"},
		"challenger waits":  {"v", lap(disputed(dispute.Asserter)), WaitsMove, 66, "worker's move"},
		"challenge window":  {"w", func(*View) {}, WaitsChallenge, 60, "challenged"},
		"another's audit": {"x", lap(func(_ *View, u *work.Unit) { u.Status, u.Verifier = work.Auditing, "v" }), WaitsFinal,
			0, "unit 0 of w"},
		"older round": {"w", older, WaitsOlder, 0, "round 2"},
		"left": {"w", func(v *View) {
			v.Runs[0].Members[1].Active, v.Runs[0].Members[1].Why = false,
				reason.MissedDeadlines
		}, Left, 0, "deadlines"},
	} {
		v := view(c.who)
		c.change(&v)
		var found *Reason
		got := Explain(v)
		for i, r := range got {
			check(t, name, r)
			reached[r.Code] = true
			if r.Code == c.code && strings.Contains(r.Text, c.say) && r.Until == c.until {
				found = &got[i]
			}
		}
		if found == nil {
			t.Errorf("%s: no reason %s until %d that says %q in %+v", name, c.code, c.until, c.say, got)
		}
	}
	for _, c := range codes {
		if !reached[c] {
			t.Errorf("no case gives %s", c)
		}
		delete(reached, c)
	}
	if len(reached) > 0 {
		t.Errorf("codes that are not in the list: %v", reached)
	}
}

func disputed(turn dispute.Party) func(*View, *work.Unit) {
	return func(v *View, u *work.Unit) {
		u.Status, u.Challengers = work.Disputed, []string{"v"}
		v.Runs[0].Disputes = []dispute.Dispute{game(turn)}
	}
}

// probation lets the worker w join.
func probation(t progress.Probation) func(*View) {
	return func(v *View) {
		t.Member = "w"
		v.Runs[0].Members[1].Active, v.Runs[0].Members[1].Why, v.Runs[0].Probations = false, reason.OnProbation,
			[]progress.Probation{
				t,
			}
	}
}

// reducing lets a member owe the second of two slices.
func reducing(who string) func(*View) {
	return func(v *View) {
		s := &v.Runs[0].State
		s.Phase, s.Terms.Slices = progress.Reduce, 2
		s.Slices = []progress.Slice{{Status: progress.Agreed},
			{Status: progress.Reducing, Reducers: []progress.Reducer{{Member: who, Deadline: 77}}}}
	}
}

// older opens a second round, while the first is still disputed.
func older(v *View) {
	s := &v.Runs[0]
	second := s.Open[0]
	s.Open = append(s.Open, second)
	s.Open[1].Round, s.Open[0].Units = 2, work.Units{{Status: work.Auditing, Worker: "x", Verifier: "v"}}
	s.Round, v.Height = 3, 60
}

func check(t *testing.T, name string, r Reason) {
	t.Helper()
	if r.Code == "" || r.Text == "" || strings.HasSuffix(r.Text, ".") || r.Kind == Blocked && r.Do == "" {
		t.Errorf("%s: %+v", name, r)
	}
}

// In every state of a run every account gets a reason, and the reason of a member names the job.
func TestEveryStateHasAReason(t *testing.T) {
	for phase := progress.Assign; phase <= progress.Reduce; phase++ {
		for current := work.Assigned; current <= work.Sealed; current++ {
			for past := work.Committed; past <= work.Sealed; past++ {
				for _, who := range []string{"v", "w", "x", "nobody"} {
					for _, active := range []bool{true, false} {
						v := view(who)
						s := &v.Runs[0].State
						s.Phase, s.Units[0].Status, s.Open[0].Units[0].Status, s.Open[0].Units[0].Verifier = phase, current, past, "v"
						s.Members[1].Active = active
						if phase.String() == "unknown" {
							t.Fatalf("phase %d has no name", phase)
						}
						got := Explain(v)
						if len(got) == 0 {
							t.Fatalf("nothing for %s in phase %d with units %d and %d", who, phase, current, past)
						}
						for _, r := range got {
							check(t, who, r)
						}
						if who != "nobody" && got[0].Job != "job" {
							t.Fatalf("%s in phase %d: %+v", who, phase, got)
						}
					}
				}
			}
		}
	}
}

// Every reason for which a member leaves a run has a sentence, and advice if the member can act.
func TestDepartures(t *testing.T) {
	for _, why := range []string{
		reason.MissedDeadlines, reason.MissedAudits, reason.MissedAttest, reason.MissedSlices, reason.Unavailable,
		reason.WrongAttest, reason.WrongSlice, reason.Verdict, reason.FalseChallenge,
		reason.SealUnopened, reason.PlantPassed, reason.Withheld, reason.Left, reason.Unproven, reason.Guest,
		reason.Unattested,
	} {
		if text, do := departure(why); text == "" || do == "" || strings.Contains(text, "_") {
			t.Errorf("%s: %q %q", why, text, do)
		}
	}
	if text, _ := departure("some_other_reason"); text != "some other reason" {
		t.Errorf("%q", text)
	}
}

// The offer of a worker that draws alone is explained like others, also where no order takes it.
func TestExplainGenerator(t *testing.T) {
	v := view("w")
	offer := market.Offer{ID: "w", Role: crew.Generator, Price: 1, Slots: 1}
	v.Offers, v.Runs = []market.Offer{offer}, nil
	v.Lots = []market.Listing{{Offer: offer}}
	v.Orders = []Order{{Order: market.Order{ID: "other", PriceCap: 5}, Why: market.TooFewWorkers}}
	all := Explain(v)
	if len(all) != 1 || all[0].Mismatch != market.NoGeneratorWanted || !strings.Contains(all[0].Do, "--role worker") {
		t.Errorf("%+v", all)
	}
}

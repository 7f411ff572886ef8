package standing

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// Each situation of a worker has one cause, and it is the true one: if it ends, so does the cause.
func TestCauses(t *testing.T) {
	// idle is a worker that fits one open order, which waits for the reason given.
	idle := func(why market.Reason, change ...func(*View)) View {
		v := view("w")
		v.Runs = nil
		v.Lots = []market.Listing{{Offer: v.Offers[0], Profile: market.Profile{Memory: 4096, Disk: 100, Upload: 100,
			Class: 2, Rate: 1, Cover: 1 << 40, Region: "eu", Jurisdiction: "FI"}}}
		v.Orders = []Order{{market.Order{ID: "wanted", PriceCap: 200, Budget: 7, Workers: market.Workers{Min: 3},
			Verifiers: 2}, why}}
		for _, c := range change {
			c(&v)
		}
		return v
	}
	wants := func(change func(*market.Order)) func(*View) { return func(v *View) { change(&v.Orders[0].Order) } }
	busy := func(change func(*View)) View {
		v := view("w")
		change(&v)
		return v
	}
	// past is a worker whose commitment of this round is made.
	past := func(change func(*View)) View {
		return busy(func(v *View) {
			v.Runs[0].Units[0].Status = work.Committed
			change(v)
		})
	}
	apart := func(why string) View {
		return busy(func(v *View) { v.Runs[0].Members[1].Active, v.Runs[0].Members[1].Why = false, why })
	}
	reached := map[Cause]bool{}
	for name, c := range map[string]struct {
		view    View
		process []Reason // that its process adds
		cause   Cause
	}{
		"it trains":              {busy(func(*View) {}), nil, CauseWorking},
		"it attests":             {busy(func(v *View) { v.Runs[0].Phase = progress.Attest }), nil, CauseWorking},
		"others train":           {past(func(*View) {}), nil, CauseRun},
		"no unit is dealt to it": {busy(func(v *View) { v.Runs[0].Units = v.Runs[0].Units[1:] }), nil, CauseRun},
		"a beacon is awaited":    {busy(func(v *View) { v.Runs[0].Phase = progress.Assign }), nil, CauseRun},
		"the budget covers no round": {busy(func(v *View) {
			v.Runs[0].Phase, v.Runs[0].Escrow = progress.Assign, market.Escrow{}
		}), nil, CauseBudget},
		"it joins": {apart(reason.OnProbation), nil, CauseProbation},
		"it is back": {func() View {
			v := apart(reason.Returning)
			v.Runs[0].Open, v.Orders = nil, nil
			return v
		}(), nil, CauseSeat},
		"paused by its owner": {busy(func(*View) {}), []Reason{{Code: Paused}}, CausePaused},
		"no process":          {idle(market.Matched), []Reason{{Code: NotRunning}}, CauseOff},
		"no answer":           {busy(func(*View) {}), []Reason{{Code: Unreachable}}, CauseUnreachable},
		"behind":              {idle(market.Matched), []Reason{{Code: Behind}}, CauseBehind},
		"no room for a run":   {idle(market.Matched), []Reason{{Code: StoreTooSmall}}, CauseDisk},
		"slashed": {idle(market.Matched, func(v *View) {
			v.Participant.Jailed = true
		}), nil, CauseJailed},
		"little staked":   {idle(market.Matched, func(v *View) { v.Participant.Stake = 5 }), nil, CauseStake},
		"not registered":  {View{Who: "w"}, nil, CauseNotOffered},
		"nothing offered": {idle(market.Matched, func(v *View) { v.Offers = nil }), nil, CauseNotOffered},
		"draining":        {past(func(v *View) { v.Offers = nil }), nil, CauseRun},
		"revoked in the middle of a unit": {busy(func(v *View) {
			v.Participant.Machine, v.Offers = registry.Machine{Owner: "o", Revoked: 50, Drains: true}, nil
		}), nil, CauseWorking},
		"revoked, with nothing to do": {idle(market.Matched, func(v *View) {
			v.Participant.Machine, v.Offers = registry.Machine{Owner: "o", Revoked: 50, Drains: true}, nil
		}), nil, CauseRevoked},
		"drained by its owner": {idle(market.Matched, func(v *View) {
			v.Participant.Machine = registry.Machine{Owner: "o", Drains: true}
		}), nil, CauseDraining},
		"it answers requests to a model": {idle(market.Matched, func(v *View) { v.Orders = nil }),
			[]Reason{{Code: Serves}}, CauseWorking},
		"paused while an order waits": {idle(market.TooFewWorkers), []Reason{{Code: Paused}}, CausePaused},
		"no order":                    {idle(market.Matched, func(v *View) { v.Orders = nil }), nil, CauseNoOrders},
		"dear": {idle(market.Matched, wants(func(o *market.Order) {
			o.PriceCap = 99
		})), nil, CausePrice},
		"others are drawn":             {idle(market.Matched), nil, CauseSeat},
		"too few workers":              {idle(market.TooFewWorkers), nil, CauseOrder},
		"too few verifiers":            {idle(market.TooFewVerifiers), nil, CauseOrder},
		"others are dear":              {idle(market.PriceAboveCap), nil, CauseOrder},
		"the order cannot pay a round": {idle(market.BudgetTooSmall), nil, CauseOrder},
		"little memory": {idle(market.TooFewWorkers, wants(func(o *market.Order) {
			o.Conditions.Machines = []market.Machine{{Memory: 8192}}
		})), nil, CauseMemory},
		"little disk": {idle(market.TooFewWorkers, wants(func(o *market.Order) {
			o.Conditions.Disk = 200
		})), nil, CauseDisk},
		"no history": {idle(market.TooFewWorkers, wants(func(o *market.Order) {
			o.Conditions.Passed = 9
		})), nil, CauseHistory},
		"slow upload": {idle(market.TooFewWorkers, wants(func(o *market.Order) {
			o.Conditions.Upload = 200
		})), nil, CauseMachine},
		"another region": {idle(market.TooFewWorkers, wants(func(o *market.Order) {
			o.Conditions.Regions = []string{"us"}
		})), nil, CauseMachine},
		"little behind it": {idle(market.TooFewWorkers, func(v *View) { v.Lots[0].Cover = 0 },
			wants(func(o *market.Order) { o.Terms.UnitFlops, o.Terms.AuditPPM = cost.Flops, 10_000 })), nil, CauseStake},
		"one of two orders takes it": {idle(market.Matched, func(v *View) {
			v.Orders = append([]Order{{market.Order{ID: "dear", PriceCap: 1}, market.Matched}}, v.Orders...)
		}), nil, CauseSeat},
		"all done, and audited": {busy(func(v *View) {
			v.Runs[0].Members[1].Active, v.Runs[0].Members[1].Why = false, reason.Left
			v.Runs[0].Units, v.Runs[0].Open[0].Units[0].Status = v.Runs[0].Units[1:], work.Auditing
			v.Orders = nil
		}), nil, CausePending},
	} {
		reasons := append(slices.Clone(c.process), Explain(c.view)...)
		cause, why := Deciding(reasons)
		reached[cause] = true
		if cause != c.cause {
			t.Errorf("%s: %s (%+v), want %s", name, cause, why, c.cause)
		}
	}
	if len(reached) < 19 {
		t.Errorf("%d causes are reached: %v", len(reached), reached)
	}
}

// The list is closed: each code has a cause of the list, and each cause is that of a code or of a misfit.
func TestEachCodeHasACause(t *testing.T) {
	used := map[Cause]bool{}
	for code, cause := range causeOf {
		if !slices.Contains(Causes, cause) {
			t.Errorf("%s has the cause %q", code, cause)
		}
		used[cause] = true
	}
	for _, cause := range misfitCause {
		used[cause] = true
	}
	for _, code := range append(slices.Clone(codes), NotRunning, Paused, Behind, Unreachable, StoreTooSmall, Serves,
		OrderConditions) {
		if causeOf[code] == "" {
			t.Errorf("%s has no cause", code)
		}
	}
	for _, cause := range Causes {
		if !used[cause] {
			t.Errorf("nothing has the cause %s", cause)
		}
	}
}

// Package standing says what a participant is doing and what it waits for: a reason, and what to do about it, for
// everything that is not pay. It reads the state of the chain and decides nothing.
//
// How a payment came about is explained by reward, from the receipts; this package is about what has no receipt yet.
package standing

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/earning"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
)

// View is what the chain says at one height.
type View struct {
	Who         string
	Height      int64
	Participant *registry.Participant // nil: the account is not registered
	Stakes      registry.Params
	Offers      []market.Offer   // all
	Lots        []market.Listing // the same, as they are matched; none: that is not known
	Orders      []Order          // the open ones
	Runs        []Run            // those that are not over, and any other that is asked about
}

// Order is an open order and why the last block did not match it.
type Order struct {
	market.Order
	Why market.Reason
}

// Run is a run with its open disputes and its budget.
type Run struct {
	run.State
	Disputes []dispute.Dispute
	Escrow   market.Escrow
	Coin     coin.Coin // of the escrow
}

// Kind of a reason.
type Kind string

// The kinds.
const (
	Works   Kind = "works"   // the participant owes something, and is at it
	Waits   Kind = "waits"   // for others, or for a height
	Blocked Kind = "blocked" // no progress until a person follows Do
	Over    Kind = "over"    // there is nothing more to come
)

// Reason is one thing that a participant does or waits for.
type Reason struct {
	Code  Code   `json:"code"`
	Kind  Kind   `json:"kind"`
	Job   string `json:"job,omitempty"`
	Round uint32 `json:"round,omitempty"` // from 1; 0: not about a round
	Text  string `json:"text"`            // a sentence without its end

	Mismatch market.Mismatch `json:"mismatch,omitempty"` // of an order that the offer does not fit
	Until    int64           `json:"until,omitempty"`    // height by which it ends, or is due; 0: unknown
	Do       string          `json:"do,omitempty"`       // what to do, if there is something
}

// Code names a reason. Codes are stable.
type Code string

// The codes, by subject.
const (
	// The account.
	NotRegistered Code = "not_registered"
	Jailed        Code = "jailed"
	StakeTooSmall Code = "stake_too_small"
	EarnsUnrated  Code = "earns_unrated" // it earns its stake, and its machine is not measured
	EarnsPlace    Code = "earns_place"   // it earns its stake, and waits for a run with a place for such a worker
	Draining      Code = "draining"
	Withdrawn     Code = "withdrawn"
	SlotsTaken    Code = "slots_taken"
	Revoked       Code = "revoked"      // the key of the machine, by its owner
	OwnerDrains   Code = "owner_drains" // its owner lets the machine drain

	// The market.
	NoOrder        Code = "no_order"
	OrderPrice     Code = "order_price"     // below what the participant asks
	OrderWorkers   Code = "order_workers"   // wants more workers than offer
	OrderVerifiers Code = "order_verifiers" // wants more verifiers than offer
	OrderDear      Code = "order_dear"      // others ask too much for it
	OrderBudget    Code = "order_budget"    // does not cover a round

	OrderConditions Code = "order_conditions" // too few keep them
	OrderMismatch   Code = "order_mismatch"   // the offer does not keep them
	OrderNotChosen  Code = "order_not_chosen" // others are cheaper or earlier
	OrderNext       Code = "order_next"       // it is tried in the next block

	// The process, which sees what the chain does not.
	NotRunning    Code = "not_running"
	Paused        Code = "paused"
	Behind        Code = "behind"              // the chain
	Unreachable   Code = "network_unreachable" // from its machine
	StoreTooSmall Code = "store_too_small"     // for a run that it was matched to
	Serves        Code = "serves"              // it answers requests to a model, or evaluates models

	// A run.
	Left               Code = "left_run"
	OnProbation        Code = "on_trial"
	WaitsProbationTask Code = "waits_exam"
	Returns            Code = "returns"
	RunDone            Code = "run_done"
	RunHalted          Code = "run_halted"
	WaitsBeacon        Code = "waits_beacon"
	WaitsData          Code = "waits_data" // of a round that the consumer leads
	WaitsWindow        Code = "waits_window"
	WaitsBudget        Code = "waits_budget"
	NoUnit             Code = "no_unit"
	Trains             Code = "trains"
	Late               Code = "late"
	WaitsCommits       Code = "waits_commitments"
	Reduces            Code = "reduces"
	WaitsSlices        Code = "waits_slices"
	Attests            Code = "attests"
	WaitsVotes         Code = "waits_votes"
	WaitsFinal         Code = "waits_final"
	NoAudit            Code = "no_audit"
	Audits             Code = "audits"
	WaitsQuestion      Code = "waits_question"
	OpensSeal          Code = "opens_seal"
	Moves              Code = "moves"
	WaitsMove          Code = "waits_move"
	WaitsDispute       Code = "waits_dispute"
	WaitsDraw          Code = "waits_draw"
	WaitsAudit         Code = "waits_audit"
	WaitsOpening       Code = "waits_opening"
	WaitsChallenge     Code = "waits_challenges"
	WaitsOlder         Code = "waits_older_round"
)

// Explain says what a participant does and waits for, the runs that it is a member of first, in the order given. There
// is always a reason.
func Explain(v View) []Reason {
	p := v.Participant
	if p == nil {
		return []Reason{{Code: NotRegistered, Kind: Blocked, Text: "the account takes no part in the network",
			Do: "register with starling worker up; the account needs coins for its stake"}}
	}
	var all []Reason
	live := 0
	for _, r := range v.Runs {
		m, ok := r.Member(v.Who)
		if !ok {
			continue
		}
		if (m.Active || m.Why == reason.OnProbation) && r.Phase != progress.Done && r.Phase != progress.Halted {
			live++
		}
		all = append(all, member{v, r, m}.reasons()...)
	}
	if p.Jailed {
		return append(all, Reason{Code: Jailed, Kind: Blocked,
			Text: "the account was slashed, and is not matched until it asks for that",
			Do: "see the receipt of the slash with starling job explain; check the memory of the machine, let it be measured " +
				"with starling worker up, and call starling account stake unjail --home DIR"})
	}
	switch m := p.Machine; {
	case m.Revoked > 0:
		return append(all, Reason{Code: Revoked, Kind: Over,
			Text: textf("its owner %s revoked the key of this machine in block %d: it answers for its work so far, and gets no "+
				"more", m.Owner, m.Revoked),
			Do: "ask the owner for a new invitation (starling fleet add), and use it with another --home"})
	case m.Drains:
		return append(all, Reason{Code: OwnerDrains, Kind: Waits,
			Text: textf("its owner %s lets this machine drain: it finishes its work, and gets no more", m.Owner),
			Do:   "the owner takes that back with starling fleet drain --undo"})
	}
	for _, role := range p.Roles {
		all = append(all, v.offering(role, live)...)
	}
	if len(all) == 0 {
		all = append(all, Reason{Code: NotRegistered, Kind: Blocked,
			Text: "the account is registered for no work: it only says where it is reached",
			Do:   "register for work with starling worker up"})
	}
	return all
}

// offering says why the offer of a participant in a role is not matched, with so many live runs.
func (v View) offering(role crew.Role, live int) []Reason {
	earns := earning.Active(*v.Participant) && role == crew.Worker
	if least := v.Stakes.MinStake(role); v.Participant.Firm() < least && !earns {
		return []Reason{{Code: StakeTooSmall, Kind: Blocked,
			Text: textf("the stake of %s ZEN, without what leaves it, is below the %s that a %s needs",
				zen(v.Participant.Firm()), zen(least), role),
			Do: "stake more: starling account stake add ZEN --home DIR"}}
	}
	at := slices.IndexFunc(v.Offers, func(o market.Offer) bool { return o.ID == v.Who && o.Role == role })
	if at < 0 {
		at = slices.IndexFunc(v.Offers, func(o market.Offer) bool { return o.ID == v.Who && o.Role.Registered() == role })
	}
	switch {
	case at < 0 && live > 0:
		return []Reason{{Code: Draining, Kind: Waits, Text: "the offer is withdrawn: no new runs are taken, and the " +
			"present ones are left when nothing of the account is open in them"}}
	case at < 0:
		return []Reason{{Code: Withdrawn, Kind: Blocked, Text: "the account offers no work",
			Do: "offer it with starling worker up"}}
	case uint32(live) >= v.Offers[at].Slots:
		return []Reason{{Code: SlotsTaken, Kind: Waits, Text: textf("busy: the account works in %d of %d runs that it "+
			"offers to work in", live, v.Offers[at].Slots)}}
	case earns && v.Participant.Rate < v.Stakes.Earning.Rate:
		return []Reason{{Code: EarnsUnrated, Kind: Waits, Text: textf("the machine is measured at %d operations a second; "+
			"a worker that earns its stake needs %d, found by the network", v.Participant.Rate, v.Stakes.Earning.Rate),
			Do: "let it be measured, which starling worker up does when it has no run, or stake coins: " +
				"starling account stake add"}}
	case earns:
		return []Reason{{Code: EarnsPlace, Kind: Waits, Text: "a worker that earns its stake joins runs in progress: one " +
			"at a time in a run, and none where work is not audited",
			Do: "keep it running, or stake coins: starling account stake add"}}
	case len(v.Orders) == 0:
		return []Reason{{Code: NoOrder, Kind: Waits, Text: "no job is on order, and no run has a free place that the " +
			"offer fits"}}
	}
	var all []Reason
	for _, o := range v.Orders {
		r := v.unmatched(o, v.Offers[at])
		r.Job, r.Until = o.ID, o.Deadline
		all = append(all, r)
	}
	return all
}

// unmatched says why an order and an offer have not met.
func (v View) unmatched(o Order, mine market.Offer) Reason {
	waits := func(c Code, format string, args ...any) Reason {
		return Reason{Code: c, Kind: Waits, Text: textf(format, args...)}
	}
	offering := func(role crew.Role) (n uint32) {
		for _, x := range v.Offers {
			if x.Role == role {
				n++
			}
		}
		return n
	}
	switch {
	case mine.Price > o.PriceCap:
		return Reason{Code: OrderPrice, Kind: Blocked, Text: textf("the order pays at most %s ZEN per PFLOP, "+
			"and the offer asks %s", zen(o.PriceCap), zen(mine.Price)),
			Do: textf("ask at most that: starling worker up --price %d", o.PriceCap)}
	case v.misfit(o, mine) != market.Fits:
		why := v.misfit(o, mine)
		r := waits(OrderMismatch, "the order does not take the offer: %s", why.Text())
		r.Kind, r.Mismatch, r.Do = Blocked, why, Remedy(why)
		return r
	case o.Why == market.TooFewWorkers:
		return waits(OrderWorkers, "the order waits for %d workers, and %d offer or are busy", o.Workers.Min,
			offering(crew.Worker))
	case o.Why == market.TooFewVerifiers:
		return waits(OrderVerifiers, "the order waits for %d verifiers, and %d offer or are busy", o.Verifiers,
			offering(crew.Verifier))
	case o.Why == market.ConditionsUnmet || o.Why == market.TooFewDomains:
		return waits(OrderConditions, "the order waits for others that keep its conditions")
	case o.Why == market.PriceAboveCap:
		return waits(OrderDear, "the order waits for others who ask at most its %s ZEN per PFLOP", zen(o.PriceCap))
	case o.Why == market.BudgetTooSmall:
		return waits(OrderBudget, "the order's budget of %s ZEN does not cover a round: its consumer has to raise it",
			zen(o.Budget))
	case o.Why != market.Matched:
		return waits(OrderNotChosen, "the order waits: %s", o.Why)
	}
	return waits(OrderNext, "the order is tried in the next block that has a beacon")
}

// misfit is why an order does not take an offer, as far as that is known.
func (v View) misfit(o Order, mine market.Offer) market.Mismatch {
	if len(v.Lots) == 0 {
		return market.Fits
	}
	return market.NewBook(v.Lots, canon.Digest{}).Unfit(o.Order, mine.Role, mine.ID)
}

// Remedy is the step by which an owner makes an offer fit; empty: there is none.
func Remedy(m market.Mismatch) string { return remedies[m] }

var remedies = map[market.Mismatch]string{
	market.WrongClass:        "let the machine be measured: it is, while starling worker up runs",
	market.NoGeneratorWanted: "offer to train as well, if the machine can: starling worker up --role worker",
	market.MemoryTooSmall:    "offer more memory, if the machine has it: starling worker up --memory MIB",
	market.DiskTooSmall:      "offer more disk: starling worker up --disk SIZE",
	market.TooLittleHistory: "nothing: audits that it passes in other runs count, and orders that ask for less history " +
		"take it",
	market.UploadTooSlow: "declare the upload of the connection, if it is higher: starling worker up --upload KBIT",
	market.TierTooLow:    "commit to more uptime: starling worker up --tier bronze, silver or gold",
	market.StakeTooSmall: "stake more: starling account stake add ZEN --home DIR",
	market.HourTooDear:   "ask less: starling worker up --price",
}

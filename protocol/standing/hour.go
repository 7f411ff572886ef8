package standing

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/protocol/market"
)

// Cause is the one reason why a participant is, or is not, at work that pays. The list is closed: every code has a
// cause.
type Cause string

// The causes. Of several, the first in this order is the one that counts.
const (
	CauseOff         Cause = "not_running"        // no process runs
	CauseUnreachable Cause = "unreachable"        // the network does not answer the process
	CauseBehind      Cause = "behind"             // the process, or its validator, does not follow the chain
	CausePaused      Cause = "paused"             // by its owner, or by a condition of the machine
	CauseWorking     Cause = "working"            // it computes, or owes a move
	CauseProbation   Cause = "on_trial"           // it proves that it computes as the others do, which is not paid
	CauseBudget      Cause = "run_without_budget" // what remains does not cover another round
	CauseRun         Cause = "waits_in_run"       // for others, or for a block
	CausePending     Cause = "pay_pending"        // its work waits for an audit, a dispute or the challenge window
	CauseJailed      Cause = "jailed"
	CauseDisk        Cause = "disk_too_small"
	CauseSeat        Cause = "waits_for_seat"     // others are drawn first, or the draw is in the next block
	CauseOrder       Cause = "order_waits"        // for other participants, or for its consumer
	CausePrice       Cause = "price_above_orders" // the offer asks more than they pay
	CauseStake       Cause = "stake_too_small"
	CauseHistory     Cause = "too_few_audits_passed"
	CauseMemory      Cause = "memory_too_small"
	CauseMachine     Cause = "machine_unfit" // of another class, place, tier or speed than orders ask for
	CauseNoOrders    Cause = "no_orders"
	CauseRevoked     Cause = "revoked" // its owner took its key back
	CauseDraining    Cause = "draining"
	CauseNotOffered  Cause = "not_offered" // no work is offered, or the account is not registered
)

// Causes are all of them, the first that counts first.
var Causes = []Cause{CauseOff, CauseUnreachable, CauseBehind, CausePaused, CauseWorking, CauseProbation, CauseBudget,
	CauseRun, CausePending, CauseJailed, CauseDisk, CauseSeat, CauseOrder, CausePrice, CauseStake, CauseHistory,
	CauseMemory, CauseMachine, CauseNoOrders, CauseRevoked, CauseDraining, CauseNotOffered}

var causeOf = map[Code]Cause{
	NotRunning: CauseOff, Unreachable: CauseUnreachable, Behind: CauseBehind, Paused: CausePaused,
	StoreTooSmall: CauseDisk,
	Serves:        CauseWorking, Revoked: CauseRevoked, OwnerDrains: CauseDraining,
	NotRegistered: CauseNotOffered, Withdrawn: CauseNotOffered, Draining: CauseDraining, Jailed: CauseJailed,
	StakeTooSmall: CauseStake, EarnsUnrated: CauseMachine, EarnsPlace: CauseSeat, SlotsTaken: CauseRun,
	NoOrder: CauseNoOrders, OrderPrice: CausePrice, OrderWorkers: CauseOrder, OrderVerifiers: CauseOrder,
	OrderDear: CauseOrder, OrderBudget: CauseOrder, OrderConditions: CauseOrder, OrderMismatch: CauseMachine,
	OrderNotChosen: CauseSeat, OrderNext: CauseSeat,
	// The account is out of a run, and its offer decides.
	Left: CauseNotOffered, RunDone: CauseNotOffered, RunHalted: CauseNotOffered,
	OnProbation: CauseProbation, WaitsProbationTask: CauseProbation, Returns: CauseSeat,
	Trains: CauseWorking, Late: CauseWorking, Reduces: CauseWorking, Attests: CauseWorking, Audits: CauseWorking,
	OpensSeal: CauseWorking, Moves: CauseWorking,
	WaitsData:   CauseRun,
	WaitsBeacon: CauseRun, WaitsWindow: CauseRun, NoUnit: CauseRun, WaitsCommits: CauseRun, WaitsSlices: CauseRun,
	WaitsVotes: CauseRun, WaitsFinal: CauseRun, NoAudit: CauseRun, WaitsQuestion: CauseRun, WaitsMove: CauseRun,
	WaitsBudget:  CauseBudget,
	WaitsDispute: CausePending, WaitsDraw: CausePending, WaitsAudit: CausePending, WaitsOpening: CausePending,
	WaitsChallenge: CausePending, WaitsOlder: CausePending,
}

var misfitCause = map[market.Mismatch]Cause{
	market.NoSlot: CauseRun, market.MemoryTooSmall: CauseMemory, market.DiskTooSmall: CauseDisk,
	market.StakeTooSmall: CauseStake, market.TooLittleHistory: CauseHistory, market.HourTooDear: CausePrice,
	market.TooDear: CausePrice, market.EarnsStake: CauseSeat, market.NoVerifierWanted: CauseNoOrders,
}

// Cause is the cause of one reason.
func (r Reason) Cause() Cause {
	if c, ok := misfitCause[r.Mismatch]; ok && r.Code == OrderMismatch {
		return c
	}
	return causeOf[r.Code]
}

// Deciding is the reason that counts among all of a participant, with its cause: the first in the order of Causes,
// and among equals the first given. There is one at least.
func Deciding(reasons []Reason) (Cause, Reason) {
	first := slices.MinFunc(reasons, func(a, b Reason) int { return cmp.Compare(a.Cause().rank(), b.Cause().rank()) })
	return first.Cause(), first
}

func (c Cause) rank() int { return slices.Index(Causes, c) }

package reward

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/protocol/run/reason"
)

// Reasons of receipts. A refund also carries the reason for which a run is halted.
const (
	Verified     = "verified"          // the work counts
	TooSmall     = "below_one_uzen"    // verified, but its price is less than one uzen
	FaultFound   = "fault_found"       // the audit failed, and the verdict confirmed it
	NothingShown = "nothing_shown"     // the worker was silent in the dispute, so that no fault was shown
	FoundOutside = "found_outside"     // the audit found the update outside the tolerance of the job
	Odd          = reason.Odd          // more than half of the other members found the update odd
	Outside      = reason.Outside      // verifiers found the update outside the tolerance of the job
	Contradicted = reason.Contradicted // no two verifiers of the unit found the same
	Differs      = reason.Differs      // most verifiers of the unit found the same, and this one something else
	FalseReport  = reason.FalseReport  // the exact execution of the unit ends in another state than the verifier reported
	Distrusted   = reason.Distrusted   // other work of the worker in the round forfeited its deposit

	DepositForfeited = "deposit_forfeited"   // the update was outside the tolerance, or it or a link could not be had
	DepositReturned  = "deposit_returned"    // the deposit that was held over a unit is not taken
	MissedDeadline   = reason.MissedDeadline // the unit was not committed in time
	Overtaken        = reason.Overtaken      // an earlier worker of the unit committed it first
	HiddenLink       = reason.HiddenLink     // most members could not have what the unit has exchanged with another
	Restarted        = reason.Restarted      // another stage of the replica was not committed, or not served
	NoData           = reason.NoData         // most members could not have the data of the round
	WrongWork        = reason.WrongWork      // a verdict found the work wrong
	Silent           = reason.Silent         // the worker of challenged work made no move by the deadline
	Forfeited        = "forfeited"           // not found wrong, but its worker was convicted before it was paid
	// paid, though the round was built on work of another that a verdict found wrong
	RolledBack  = reason.RolledBack
	Restitution = "restitution" // from the stake of the convicted, for rounds that its lie made void
	// not paid: the unit was not committed, or was not yet checked when too many such rounds were open
	Unchecked = "unchecked"
	// the worker found its own commitment wrong and said so, before the audits were drawn
	Confessed   = reason.Confessed
	Unavailable = reason.Unavailable // the members could not fetch the update
	WorkerLeft  = reason.WorkerLeft  // the worker became inactive before it committed
	// the worker or verifier left the run in good standing before it had done this
	Left            = reason.Left
	AuditMissed     = "audit_missed"         // the audit was not answered in time
	VerifierLeft    = reason.VerifierLeft    // the verifier became inactive before it answered
	AuditMoot       = "audit_moot"           // the question was settled otherwise before the audit or the challenge was
	FalseChallenge  = reason.FalseChallenge  // a verdict found the challenged work right
	SealUnopened    = reason.SealUnopened    // the verifier did not open its seal
	PlantPassed     = reason.PlantPassed     // the verifier passed a planted fault
	WrongAttest     = reason.WrongAttest     // the member signed a checkpoint that its updates do not lead to
	BudgetExhausted = reason.BudgetExhausted // the escrow did not hold the whole amount
	RunHalted       = "run_halted"           // the run ended before the round was attested
	RunDone         = "run_done"             // the run is complete

	KeptUptime  = "kept_uptime"   // the uptime of the tier was kept
	Downtime    = "downtime"      // it was not
	PartOfEpoch = "part_of_epoch" // the commitment began in the middle of the epoch
	NoFees      = "no_fees"       // nothing of its work of the epoch paid a fee
	NotMeasured = "not_measured"  // the rate of the machine was never measured, so that its work weighs nothing
	StoodBy     = "stood_by"      // a verifier answers what is drawn for it
	DrawMissed  = "draw_missed"   // it did not in the epoch
	NoOffer     = "no_offer"      // it asks more than it was paid for its last audit, or offers none
	NoFeesPaid  = "no_fees_paid"  // there is nothing to share
	Served      = "bytes_served"  // peers acknowledged the bytes
	// paid for the bytes, of which peers say that they came at less than half of the promised upload
	Throttled   = "throttled"
	NothingMade = "nothing_made" // the schedule makes no coins for this
	Barred      = "barred"       // the account was slashed for wrong work

	PaidIn     = "paid_in"     // an account paid revenue of the model
	NothingDue = "nothing_due" // none was paid since the last claim, or too little to divide

	ToDelegators = "to_delegators" // the account takes delegated stake
	FromPool     = "from_pool"     // the account has delegated stake
)

// lostUnit is the reason of the receipt for a unit that moved to another worker.
func lostUnit(why string) string {
	switch why {
	case reason.Verdict:
		return WrongWork
	case reason.Convicted:
		return Forfeited
	}
	return why
}

// lostAudit is the reason of the receipt for an audit or a challenge that ended without an answer.
func lostAudit(why string) string {
	switch why {
	case reason.MissedDeadline:
		return AuditMissed
	case reason.Unavailable, reason.HiddenLink, reason.Challenged, reason.Convicted, reason.RolledBack, reason.Planted,
		reason.Odd:
		return AuditMoot
	}
	return why
}

// because completes the sentence "... because ...".
var because = map[string]string{
	Verified:   "the work is verified",
	TooSmall:   "the work is verified, but its price is less than one uzen",
	FaultFound: "the audit found a fault, and the verdict confirmed it",
	NothingShown: "the worker made no move in the dispute: no fault was shown, and accusing a silent worker is not " +
		"paid",
	FoundOutside:     "the audit found the update outside the tolerance of the job",
	Odd:              "more than half of the other members found the update an outlier of its round",
	Outside:          "the update is further from that of the exact execution than the job tolerates",
	Contradicted:     "no two of the verifiers who looked at the unit found the same",
	Differs:          "most of the verifiers who looked at the unit found the same, and this one something else",
	FalseReport:      "the exact execution of the unit ends in another state than the verifier reported",
	Distrusted:       "other work of the worker in the round forfeited its deposit",
	DepositForfeited: "its update was outside the tolerance for all verifiers, or it or a link could not be had",
	DepositReturned:  "nothing confirmed what verifiers had found of the unit: the deposit stays with the worker",
	MissedDeadline: "the unit was not committed by its deadline, and went to another worker; a late commitment " +
		"counts, with a receipt of its own, if it comes before that of the other",
	Overtaken:  "the worker that had the unit before, and was late, committed it first",
	HiddenLink: "most other members could have the values of a link between two stages from neither of the two",
	Restarted: "the worker of another stage of the replica did not commit or serve its unit, so that all stages began " +
		"again",
	NoData: "most members could not have the data that the consumer named for the round, so that it waits for others; " +
		"no member is blamed",
	WrongWork:   "the verdict of a dispute found the work wrong",
	Silent:      "the work was challenged, and its worker made no move in the dispute by the deadline",
	Forfeited:   "other work of the same worker was found wrong before the round was final",
	RolledBack:  "the work was done, in a round that was rolled back over the work of another worker",
	Restitution: "rounds were rolled back over its conviction, and the work in them is paid from its stake first",
	Unchecked: "the round was rolled back over the work of another worker before this work was committed and " +
		"checked",
	Confessed:       "the worker found its own commitment wrong and said so in time, which costs the unit and no stake",
	Unavailable:     "more than half of the other members could not fetch the update",
	Left:            "it left the run before it had done this",
	WorkerLeft:      "the worker became inactive before it committed the unit",
	AuditMissed:     "the audit was not answered by its deadline",
	VerifierLeft:    "the verifier became inactive before it answered",
	AuditMoot:       "another verdict, challenge or report settled the question before the answer",
	FalseChallenge:  "the verdict of a dispute found the challenged work right",
	SealUnopened:    "the verifier did not show that it held the state that it had sealed",
	PlantPassed:     "the verifier passed work in which its worker had planted a fault",
	WrongAttest:     "a tile of the checkpoint that it signed is not what the updates of the round lead to",
	BudgetExhausted: "the budget of the job is exhausted",
	RunHalted:       "the run was halted before the round was final",
	RunDone:         "the run is done",
	KeptUptime:      "it kept the uptime of its tier",
	Downtime:        "it was there less than its tier promises",
	PartOfEpoch:     "its commitment began in the middle of the epoch",
	NoFees:          "none of its work was paid with a fee in the epoch, and only that counts",
	NotMeasured:     "the rate of its machine was never measured, so that its work weighs nothing",
	StoodBy: "it answers the audits that are drawn for it, and shares a part of the fees of the epoch by " +
		"its stake",
	DrawMissed: "it missed the deadline of an audit that was drawn for it in the epoch",
	NoOffer:    "it offers no audits any more, or asks more for them than it was paid for its last",
	NoFeesPaid: "no fees were paid for work in the epoch, and verifiers share a part of these",
	Served:     "its peers acknowledged the bytes that it served",
	Throttled: "its peers acknowledged the bytes that it served, and say that they came at less than half of " +
		"the upload that it promises, which costs nothing",
	NothingMade:        "the schedule makes no coins for this",
	Barred:             "the account was slashed for wrong work",
	PaidIn:             "an account paid revenue of the model in",
	ToDelegators:       "other accounts delegate stake to it",
	FromPool:           "it had delegated stake there when work was paid",
	NothingDue:         "no revenue of an uzen a share or more was paid in since the last claim, or it has no shares",
	reason.NoWorkers:   "the run was halted: no active worker is left",
	reason.NoVerifiers: "the run was halted: no active verifier is left",
	reason.NoQuorum:    "the run was halted: its members do not agree on a checkpoint",
	reason.Unopened:    "the run was halted: most members could not open the job, and none had worked on it",
	reason.Cancelled:   "the consumer cancelled the job, and every round under way is final",
	reason.Idle: "the consumer, who leads the run, named no data for its next round in time, and every round under way " +
		"is final",
	reason.Diverged: "the training diverged: an audit confirmed that a unit ends with weights that are infinite or " +
		"NaN",
}

// fixes say what the account of a receipt can do. They are stored with the receipt.
var fixes = map[string]string{
	TooSmall: "ask a higher price",
	Odd:      "check that the machine trains the data and the rate of the job; nothing is slashed",
	Outside: "check the numerics of the machine against the built-in engine; see whether a receipt of a " +
		"deposit follows",
	Contradicted: "check the memory of the machine and that it runs the version that the network runs",
	Differs: "check the memory of the machine, that the verifier executes every unit, and that it runs the " +
		"version that the network runs",
	FalseReport: "before staking again, check the memory of the machine and that the verifier executes every unit",
	Distrusted:  "see the receipt of the deposit",
	DepositForfeited: "check the numerics of the machine against the built-in engine, and that other machines can " +
		"reach this one",
	DepositReturned: "nothing; the verifiers who reported falsely are slashed, if the run continued until that could be " +
		"shown",
	MissedDeadline: "keep the machine on and free of other load, or give the worker fewer jobs",
	HiddenLink:     "keep the worker running, and reachable by others, until its rounds are final",
	Restarted:      "nothing; the worker of the other stage has missed a deadline, and is let go if that stays so",
	Overtaken:      "nothing; the other worker is back from a fault, or slow, and is let go if it stays so",
	NoData:         "nothing; the round is given out again with other data, or the run ends",
	WrongWork: "before staking again, check the memory of the machine and that it runs the version that the " +
		"network runs",
	Silent: "stay reachable while rounds are open that you worked in; a move has at least four times the " +
		"deadline of an audit",
	Forfeited: "before staking again, check the memory of the machine and that it runs the version that the " +
		"network runs",
	Restitution:  "see the receipt of the conviction",
	Unchecked:    "nothing; the units of the round are given out again",
	Confessed:    "check the memory of the machine: it computed something else the second time",
	Unavailable:  "check that other machines can reach this one, or use a relay",
	Left:         "nothing; leaving costs nothing but what was not done",
	WorkerLeft:   "see the receipt that says why the worker became inactive",
	AuditMissed:  "keep the machine on and free of other load, or give the verifier fewer jobs",
	VerifierLeft: "see the receipt that says why the verifier became inactive",
	NothingShown: "challenge what is wrong, and whose worker answers: nothing else is paid",
	FalseChallenge: "before staking again, check the memory of the machine and that it runs the version that the " +
		"network runs",
	SealUnopened: "check that the verifier executes every unit and stays reachable until its seals are opened; a " +
		"small part of the stake is slashed",
	PlantPassed: "before staking again, check the memory of the machine and that the verifier executes every unit",
	WrongAttest: "before staking again, check the memory of the machine and that it runs the version that the " +
		"network runs",
	BudgetExhausted: "raise the budget of the job and resume it",
	Downtime:        "keep the machine on and connected, or commit to a lower tier",
	PartOfEpoch:     "nothing; the next epoch counts",
	NoFees: "nothing; units are paid, and count, when their rounds are final; one whose price is below " +
		"some uzen has no fee",
	DrawMissed:         "keep the machine on and free of other load, or withdraw the offer while it is away",
	NoOffer:            "offer audits at the price of the last one that was paid, or lower",
	NoFeesPaid:         "nothing; the next epoch counts",
	NotMeasured:        "have the machine measured; docs/market.md says how",
	Throttled:          "nothing is lost; if it is so, promise less upload, or free the line of other load",
	NothingMade:        "nothing; the network decides the schedule by governance",
	Barred:             "see the receipt of the slash",
	NothingDue:         "claim when revenue was paid in; what is too little to divide waits for more",
	RunHalted:          "see the reason of the refund; the consumer can resume the job from its last checkpoint",
	reason.NoWorkers:   "resume the job when workers offer themselves",
	reason.NoVerifiers: "resume the job when verifiers offer themselves",
	reason.NoQuorum:    "resume the job from its last checkpoint with other members",
	reason.Unopened: "check that other machines can fetch the job from this one (starling doctor --listen), and " +
		"what the members' processes say of it; then order it again",
	reason.Idle: "begin a session again, from the saved weights of this one",
	reason.Diverged: "order the job again with a lower training.learning_rate or strategy.outer_optimizer.lr, or " +
		"with a longer warmup",
}

// Reason says the reason of a receipt, as the end of a sentence: "the work is verified".
func Reason(r Receipt) string {
	if reason, ok := because[r.Reason]; ok {
		return reason
	}
	return "of " + r.Reason
}

var rewards = map[Kind]string{Base: "base reward", WorkReward: "work reward", Bandwidth: "bandwidth bonus",
	Standby: "standby share"}

// Explain says a receipt in one sentence, and what to do if there is something. People count rounds from 1.
func Explain(r Receipt) string {
	at := fmt.Sprintf("unit %d of round %d", r.Unit, r.Round+1)
	var what string
	switch r.Kind {
	case Work, Audit:
		what = fmt.Sprintf("%s receives %s for the %s of %s", r.Who, r.Coin.Text(r.Amount), r.Kind, at)
	case Slash:
		if r.OfEpoch() {
			at = r.Job
		}
		what = fmt.Sprintf("%s loses %s of its stake over %s", r.Who, r.Coin.Text(r.Amount), at)
	case Base, WorkReward, Bandwidth, Standby:
		what = fmt.Sprintf("%s receives %s of the %s of %s", r.Who, r.Coin.Text(r.Amount), rewards[r.Kind], r.Job)
	case Revenue:
		what = fmt.Sprintf("%s receives %s of the revenue of %s for its shares", r.Who, r.Coin.Text(r.Amount), r.Job)
	case Shared:
		what = fmt.Sprintf("%s shares %s of its pay", r.Who, r.Coin.Text(r.Amount))
	case Delegated:
		what = fmt.Sprintf("%s receives %s of the pay of %s", r.Who, r.Coin.Text(r.Amount),
			strings.TrimPrefix(r.Job, DelegationBook))
	case Deposit:
		what = fmt.Sprintf("%s keeps the deposit that was held over %s", r.Who, at)
	case Refund:
		what = fmt.Sprintf("%s gets %s back", r.Who, r.Coin.Text(r.Amount))
		if r.Fee > 0 {
			what += fmt.Sprintf(", less the fee of %s for an order that no member worked on,", r.Coin.Text(r.Fee))
		}
	default:
		what = fmt.Sprintf("%s receives %s of a slashed stake over %s", r.Who, r.Coin.Text(r.Amount), at)
	}
	sentence := what + " because " + Reason(r) + "."
	if r.Fix != "" {
		sentence += " To do: " + r.Fix + "."
	}
	return sentence
}

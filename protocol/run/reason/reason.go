// Package reason names why a unit moves, an audit or a dispute ends, a member is inactive, or a run is halted. The
// names are stable and for programs; packages reward and standing have the sentences for people.
package reason

// Reasons of events, of inactive members and of halted runs. They are stable. Package reward explains those that cost
// an account a payment.
const (
	// Why a unit moves to another worker.
	MissedDeadline = "missed_deadline" // no commitment in time
	Overtaken      = "overtaken"       // an earlier worker of the unit has committed it first
	Verdict        = "verdict"         // a dispute showed that its worker lied
	Convicted      = "convicted"       // a dispute showed that its worker lied in other work
	Unavailable    = "unavailable"     // more than half of the other members could not fetch the update
	WorkerLeft     = "worker_left"     // its worker became inactive over something else
	Odd            = "odd"             // in a tolerant run: more than half of the other members found the update odd
	Outside        = "outside"         // in a tolerant run: verifiers found the update outside the tolerance
	Distrusted     = "distrusted"      // in a tolerant run: other work of its worker in the round forfeited its deposit
	Confessed      = "confessed"       // its worker found its own commitment wrong, and said so in time
	NoData         = "no_data"         // most members cannot have the data of the round, which its consumer named
	HiddenLink     = "hidden_link"     // most members could have the values of a link from neither of its sides
	Restarted      = "restarted"       // another unit of its replica of stages moves, but for a verdict
	// its worker, or the verifier of its audit, left the run; of a member: it left in good standing
	Left = "left"

	// Why an audit or a challenge ends without an answer, besides MissedDeadline, Convicted and Unavailable.
	VerifierLeft = "verifier_left" // its verifier became inactive over something else
	Challenged   = "challenged"    // another account challenged the unit before the audit was answered
	RolledBack   = "rolled_back"   // the round was built on work that a verdict found wrong

	Contradicted = "contradicted" // in a tolerant run: no two verifiers of the unit found the same

	Planted = "planted" // the worker showed that it had planted the fault

	// Why a verifier is inactive over an audit that it passed; for the second it is slashed.
	SealUnopened = "seal_unopened" // it did not show that it held the state it had sealed
	PlantPassed  = "plant_passed"  // the fault was planted, and it passed it

	// Why a verifier is inactive over what it reported of tolerant work; for the second it is slashed.
	Differs     = "differs"      // most verifiers of the unit found the same, and it did not
	FalseReport = "false_report" // the exact execution of the unit ends in another state than it said

	// Why a dispute ended as it did.
	WrongWork      = "verdict_wrong_work" // the worker lied
	Silent         = "verdict_silent"     // the worker made no move by its deadline, and loses as if it had lied
	FalseChallenge = "false_challenge"    // the worker was right

	// Why a member is inactive, besides Verdict, FalseChallenge and Unavailable.
	MissedDeadlines = "missed_deadlines"
	MissedAudits    = "missed_audits"
	Withheld        = "withheld" // its updates, several times in a row, or with its deposit
	MissedAttest    = "missed_attest"
	WrongAttest     = "wrong_attest"
	MissedSlices    = "missed_slices"
	WrongSlice      = "wrong_slice" // a quorum found something else in a slice
	Unattested      = "unattested"  // no attestation holds for its machine any longer, and the job requires one
	Unproven        = "unproven"    // its probation ended without a proof that it computes the same
	OnProbation     = "on_trial"    // it joins, and counts once its probation is over
	Guest           = "guest"       // it has no seat: it audits what is drawn for it, or challenges
	Returning       = "returning"   // it wants to come back, and waits for a free place

	// Why a run is halted.
	NoWorkers       = "no_workers"
	NoVerifiers     = "no_verifiers"
	NoQuorum        = "no_quorum"        // the remaining members do not agree, or none is left to attest
	Halted          = "run_halted"       // of a deposit: the run ended before the unit was settled
	Cancelled       = "cancelled"        // its consumer wants no further round
	BudgetExhausted = "budget_exhausted" // the escrow does not cover another round
	Diverged        = "diverged"         // the update of a unit is not finite, for every worker
	Idle            = "idle"             // its consumer, who leads it, named no data for a round in time

	// of a member: it cannot open the job, and has done nothing in the run; of a run: most members cannot, and no unit
	// was committed
	Unopened = "cannot_open"
)

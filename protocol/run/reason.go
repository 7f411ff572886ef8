package run

// Reasons of events, of inactive members and of halted runs. They are stable. Package reward explains those that cost
// somebody a payment.
const (
	// Why a unit moves to another worker.
	WhyMissedDeadline = "missed_deadline" // no commitment in time
	WhyOvertaken      = "overtaken"       // who had it before has committed it first
	WhyVerdict        = "verdict"         // a dispute showed that its worker lied
	WhyConvicted      = "convicted"       // a dispute showed that its worker lied in other work
	WhyUnavailable    = "unavailable"     // more than half of the other members could not fetch the update
	WhyWorkerLeft     = "worker_left"     // its worker became inactive over something else
	WhyOdd            = "odd"             // in a tolerant run: more than half of the other members found the update odd
	WhyOutside        = "outside"         // in a tolerant run: verifiers found the update outside the tolerance
	WhyDistrusted     = "distrusted"      // in a tolerant run: other work of its worker in the round forfeited its deposit
	WhyConfessed      = "confessed"       // its worker found its own commitment wrong, and said so in time
	// its worker, or the verifier of its audit, left the run; of a member: it left in good standing
	WhyLeft = "left"

	// Why an audit or a challenge ends without an answer, besides WhyMissedDeadline, WhyConvicted and WhyUnavailable.
	WhyVerifierLeft = "verifier_left" // its verifier became inactive over something else
	WhyChallenged   = "challenged"    // somebody else challenged the unit before the audit was answered
	WhyRolledBack   = "rolled_back"   // the round was built on work that a verdict found wrong

	WhyContradicted = "contradicted" // in a tolerant run: no two of those who looked found the same

	WhyPlanted = "planted" // the worker showed that it had planted the fault

	// Why a verifier is inactive over an audit that it passed; for the second it is slashed.
	WhySealUnopened = "seal_unopened" // it did not show that it held the state it had sealed
	WhyPlantPassed  = "plant_passed"  // the fault was planted, and it passed it

	// Why a verifier is inactive over what it reported of tolerant work; for the second it is slashed.
	WhyDiffers     = "differs"      // most of those who looked found the same, and it did not
	WhyFalseReport = "false_report" // the exact execution of the unit ends in another state than it said

	// Why a dispute ended as it did.
	WhyWrongWork      = "verdict_wrong_work" // the worker lied
	WhySilent         = "verdict_silent"     // the worker made no move by its deadline, and loses as if it had lied
	WhyFalseChallenge = "false_challenge"    // the worker was right

	// Why a member is inactive, besides WhyVerdict, WhyFalseChallenge and WhyUnavailable.
	WhyMissedDeadlines = "missed_deadlines"
	WhyMissedAudits    = "missed_audits"
	WhyWithheld        = "withheld" // its updates, several times in a row, or with its deposit
	WhyMissedAttest    = "missed_attest"
	WhyWrongAttest     = "wrong_attest"
	WhyMissedSlices    = "missed_slices"
	WhyWrongSlice      = "wrong_slice" // a quorum found something else in a slice
	WhyUnproven        = "unproven"    // its trial ended without a proof that it computes what the others do
	WhyOnProbation     = "on_trial"    // it joins, and counts once its trial is over
	WhyGuest           = "guest"       // it has no seat: it audits what is drawn for it, or challenges
	WhyReturning       = "returning"   // it wants to come back, and waits for a free place

	// Why a run is halted.
	WhyNoWorkers       = "no_workers"
	WhyNoVerifiers     = "no_verifiers"
	WhyNoQuorum        = "no_quorum"        // members are left that do not agree, or nobody is left to attest
	WhyHalted          = "run_halted"       // of a deposit: the run ended before the unit was settled
	WhyCancelled       = "cancelled"        // its consumer wants no further round
	WhyBudgetExhausted = "budget_exhausted" // the escrow does not cover another round
	WhyDiverged        = "diverged"         // the update of a unit is not finite, whoever computes it

	// of a member: it cannot open the job, and has done nothing in the run; of a run: most members cannot, and nobody
	// has
	WhyUnopened = "cannot_open"
)

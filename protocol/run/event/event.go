// Package event is the events of a run, for the code that pays, shows or records them. It decides nothing.
package event

import (
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// Event is something that happened in a transition, for the code that pays, shows or records it. Kinds say which fields
// are set besides Job and Round.
type Event struct {
	Kind  Kind
	Job   string
	Round uint32
	Unit  uint32 // unit events
	Who   string // the member it is about
	Other string // the counterpart: the worker that was audited, or the new worker of a unit
	Why   string // machine-readable reason
	// AuditDrawn, AuditPassed: the segment to whose end the unit is executed, counted from 1; 0: all of it
	Segment    uint32
	Entry      *progress.Entry  // RoundAttested
	RoundState *work.RoundState // RoundFinal, RoundDropped
}

// Kind names an event.
type Kind string

// The kinds of events, with the fields that each sets.
const (
	UnitAssigned  Kind = "unit_assigned"  // Unit, Who
	UnitCommitted Kind = "unit_committed" // Unit, Who
	// Unit, Who (lost it), Other (has it now), Why: missed_deadline | overtaken | verdict | verdict_silent | convicted
	// | unavailable | worker_left | left | odd | outside | distrusted | confessed; Other is empty if no worker is left
	UnitReassigned Kind = "unit_reassigned"
	// Unit, Who (a verifier that was not drawn), Other (worker): a dispute opens, or waits for another
	UnitChallenged Kind = "unit_challenged"
	AuditDrawn     Kind = "audit_drawn" // Unit, Who (verifier), Other (worker)
	// Unit, Who (verifier), Other (worker): it found the unit right, and owes the opening of its seal; or it has sealed
	// its finding, and owes the finding
	AuditSealed Kind = "audit_sealed"
	// Unit, Who (verifier), Other (worker): its seal is opened, or most of the panel found the update within the
	// tolerance; the verifier is owed
	AuditPassed Kind = "audit_passed"
	// Unit, Who (verifier), Other (worker): it found the update outside the tolerance, and so did most of the panel; it
	// is owed
	AuditOutside Kind = "audit_outside"
	// Unit, Who (verifier), Other (worker), Why: seal_unopened | differs: the verifier is out | plant_passed |
	// false_report: and slashed
	AuditBroken      Kind = "audit_broken"
	DepositForfeited Kind = "deposit_forfeited" // Unit, Who (worker), Why: outside | unavailable | hidden_link
	// Unit, Who (worker), Why: false_report: an exact execution contradicts the finding | rolled_back | run_halted
	DepositReturned Kind = "deposit_returned"
	// Unit, Who (worker): its commitment was wrong on purpose, and is right from now on
	PlantShown Kind = "plant_shown"
	// Unit, Who (worker): more than half of the others find its update odd; it is audited
	UnitSuspected Kind = "unit_suspected"
	// Unit, Who (worker): more than half of the others cannot fetch the answers that it drew; it is not paid for them
	AnswersWithheld Kind = "answers_withheld"
	AuditFailed     Kind = "audit_failed" // Unit, Who (verifier), Other (worker): a dispute opens
	// Unit, Who (verifier or challenger), Other (worker), Why: missed_deadline | verifier_left | left | unavailable |
	// challenged | convicted | rolled_back | planted | odd | contradicted | differs | seal_unopened | plant_passed: its
	// audit or challenge ends without an answer
	AuditMissed Kind = "audit_missed"
	// Unit, Who (challenger), Other (worker), Why: verdict_wrong_work (it is owed) | verdict_silent | false_challenge
	DisputeEnded Kind = "dispute_ended"
	UnitAccepted Kind = "unit_accepted" // Unit, Who: nothing is open about it; owed when the round is final
	MemberLeft   Kind = "member_left"   // Who, Why
	MemberJoined Kind = "member_joined" // Who: its probation begins
	MemberProven Kind = "member_proven" // Who: its probation is over, and it counts from now on
	// Who, a member that was excluded for not signing a checkpoint that is now refuted: it counts again
	MemberRestored Kind = "member_restored"
	RoundAttested  Kind = "round_attested" // Entry
	SliceAssigned  Kind = "slice_assigned" // Unit (the slice), Who (reducer)
	// Unit (the slice), Who (reducer), Why: missed_deadline: it is replaced
	SliceMissed    Kind = "slice_missed"
	SliceContested Kind = "slice_contested" // Unit (the slice): every member computes it
	SlicesAgreed   Kind = "slices_agreed"   // the next checkpoint is there, to be attested
	// Who, a signer of the checkpoint after Round; Other, which showed that its updates make another; Why: wrong_attest
	CheckpointRefuted Kind = "checkpoint_refuted"
	// Unit, Who (the convicted worker; empty if a checkpoint was refuted): Round is the current one again, all
	// checkpoints after its base are void
	RolledBack Kind = "rolled_back"
	// RoundState, which was rolled back, and about which nothing is open any more: its workers are owed
	RoundDropped Kind = "round_dropped"
	// Round, which was rolled back, continues: the checkpoint that it was built on is attested after all
	RoundRestored Kind = "round_restored"
	RoundFinal    Kind = "round_final" // RoundState: its workers are owed
	RunDone       Kind = "run_done"    //
	RunHalted     Kind = "run_halted"  // Why
)

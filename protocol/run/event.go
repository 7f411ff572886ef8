package run

// Event is something that happened in a transition, for whoever pays, shows or records it. Kinds say which fields are
// set besides Job and Round.
type Event struct {
	Kind       EventKind
	Job        string
	Round      uint32
	Unit       uint32      // unit events
	Who        string      // the member it is about
	Other      string      // the counterpart: the worker an audit was about, the worker who takes a unit over
	Why        string      // machine-readable reason
	Segment    uint32      // AuditDrawn, AuditPassed: to the end of which the unit is executed, counted from 1; 0: all of it
	Entry      *Entry      // RoundAttested
	RoundState *RoundState // RoundFinal, RoundDropped
}

// EventKind names an event.
type EventKind string

// The kinds of events, with the fields that each sets.
const (
	UnitAssigned  EventKind = "unit_assigned"  // Unit, Who
	UnitCommitted EventKind = "unit_committed" // Unit, Who
	// Unit, Who (lost it), Other (has it now), Why: missed_deadline | overtaken | verdict | verdict_silent | convicted
	// | unavailable | worker_left | left | odd | outside | distrusted | confessed; Other is empty if nobody is left
	UnitReassigned EventKind = "unit_reassigned"
	// Unit, Who (a verifier that was not drawn), Other (worker): a dispute opens, or waits for another
	UnitChallenged EventKind = "unit_challenged"
	AuditDrawn     EventKind = "audit_drawn" // Unit, Who (verifier), Other (worker)
	// Unit, Who (verifier), Other (worker): it found the unit right, and owes the opening of its seal; or it is bound
	// to what it found, and owes that
	AuditSealed EventKind = "audit_sealed"
	// Unit, Who (verifier), Other (worker): its seal is opened, or most of who looked found the update within the
	// tolerance; the verifier is owed
	AuditPassed EventKind = "audit_passed"
	// Unit, Who (verifier), Other (worker): it found the update outside the tolerance, and so did most who looked; it
	// is owed
	AuditOutside EventKind = "audit_outside"
	// Unit, Who (verifier), Other (worker), Why: seal_unopened | differs: the verifier is out | plant_passed |
	// false_report: and slashed
	AuditBroken      EventKind = "audit_broken"
	DepositForfeited EventKind = "deposit_forfeited" // Unit, Who (worker), Why: outside | unavailable
	// Unit, Who (worker), Why: false_report: an exact execution contradicts the finding | rolled_back | run_halted
	DepositReturned EventKind = "deposit_returned"
	// Unit, Who (worker): its commitment was wrong on purpose, and is right from now on
	PlantShown EventKind = "plant_shown"
	// Unit, Who (worker): more than half of the others find its update odd; it is audited
	UnitSuspected EventKind = "unit_suspected"
	AuditFailed   EventKind = "audit_failed" // Unit, Who (verifier), Other (worker): a dispute opens
	// Unit, Who (verifier or challenger), Other (worker), Why: missed_deadline | verifier_left | left | unavailable |
	// challenged | convicted | rolled_back | planted | odd | contradicted | differs | seal_unopened | plant_passed: its
	// question ends without an answer
	AuditMissed EventKind = "audit_missed"
	// Unit, Who (challenger), Other (worker), Why: verdict_wrong_work (it is owed) | verdict_silent | false_challenge
	DisputeEnded EventKind = "dispute_ended"
	UnitAccepted EventKind = "unit_accepted" // Unit, Who: nothing is open about it; owed when the round is final
	MemberLeft   EventKind = "member_left"   // Who, Why
	MemberJoined EventKind = "member_joined" // Who: its trial begins
	MemberProven EventKind = "member_proven" // Who: its trial is over, and it counts from now on
	// Who (was out for signing something else than a checkpoint that is refuted): it counts again
	MemberRestored EventKind = "member_restored"
	RoundAttested  EventKind = "round_attested" // Entry
	SliceAssigned  EventKind = "slice_assigned" // Unit (the slice), Who (reducer)
	// Unit (the slice), Who (reducer), Why: missed_deadline: it is replaced
	SliceMissed    EventKind = "slice_missed"
	SliceContested EventKind = "slice_contested" // Unit (the slice): every member computes it
	SlicesAgreed   EventKind = "slices_agreed"   // the next checkpoint is there, to be attested
	// Who (signed the checkpoint after Round), Other (showed that its updates lead to another), Why: wrong_attest
	CheckpointRefuted EventKind = "checkpoint_refuted"
	// Unit, Who (the convicted worker; nobody over a checkpoint): Round is the current one again, all checkpoints after
	// its base are void
	RolledBack EventKind = "rolled_back"
	// Lap, which was rolled back, and about which nothing is open any more: its workers are owed
	RoundDropped EventKind = "round_dropped"
	// Round, which was rolled back, goes on: it is built on the same checkpoint after all
	RoundRestored EventKind = "round_restored"
	RoundFinal    EventKind = "round_final" // Lap: its workers are owed
	RunDone       EventKind = "run_done"    //
	RunHalted     EventKind = "run_halted"  // Why
)

package run

// Event is something that happened in a transition, for whoever pays, shows or records it. Kinds say which fields are
// set besides Job and Round.
type Event struct {
	Kind    EventKind
	Job     string
	Round   uint32
	Unit    uint32 // unit events
	Who     string // the member it is about
	Other   string // the counterpart: the worker an audit was about, the worker who takes a unit over
	Why     string // machine-readable reason
	Segment uint32 // AuditDrawn, AuditPassed: to the end of which the unit is executed, counted from 1; 0: all of it
	Entry   *Entry // RoundAttested
	Lap     *Lap   // RoundFinal, RoundDropped
}

// EventKind names an event.
type EventKind string

// The kinds of events, with the fields that each sets.
const (
	UnitAssigned      EventKind = "unit_assigned"      // Unit, Who
	UnitCommitted     EventKind = "unit_committed"     // Unit, Who
	UnitReassigned    EventKind = "unit_reassigned"    // Unit, Who (lost it), Other (has it now), Why: missed_deadline | overtaken | verdict | verdict_silent | convicted | unavailable | worker_left | left | odd | outside | confessed; Other is empty if nobody is left
	UnitChallenged    EventKind = "unit_challenged"    // Unit, Who (a verifier that was not drawn), Other (worker): a dispute opens, or waits for another
	AuditDrawn        EventKind = "audit_drawn"        // Unit, Who (verifier), Other (worker)
	AuditSealed       EventKind = "audit_sealed"       // Unit, Who (verifier), Other (worker): it found the unit right, and owes the opening of its seal
	AuditPassed       EventKind = "audit_passed"       // Unit, Who (verifier), Other (worker): its seal is opened, or the update within the tolerance; the verifier is owed
	AuditOutside      EventKind = "audit_outside"      // Unit, Who (verifier), Other (worker): it found the update outside the tolerance, and so did another, or there is none; it is owed
	AuditBroken       EventKind = "audit_broken"       // Unit, Who (verifier), Other (worker), Why: seal_unopened: the verifier is out | plant_passed: and slashed
	PlantShown        EventKind = "plant_shown"        // Unit, Who (worker): its commitment was wrong on purpose, and is right from now on
	UnitSuspected     EventKind = "unit_suspected"     // Unit, Who (worker): more than half of the others find its update odd; it is audited
	AuditFailed       EventKind = "audit_failed"       // Unit, Who (verifier), Other (worker): a dispute opens
	AuditMissed       EventKind = "audit_missed"       // Unit, Who (verifier or challenger), Other (worker), Why: missed_deadline | verifier_left | left | unavailable | challenged | convicted | rolled_back | planted | odd | contradicted | seal_unopened | plant_passed: its question ends without an answer
	DisputeEnded      EventKind = "dispute_ended"      // Unit, Who (challenger), Other (worker), Why: verdict_wrong_work (the challenger is owed) | verdict_silent | false_challenge
	UnitAccepted      EventKind = "unit_accepted"      // Unit, Who: nothing is open about it; owed when the round is final
	MemberLeft        EventKind = "member_left"        // Who, Why
	MemberJoined      EventKind = "member_joined"      // Who: its trial begins
	MemberProven      EventKind = "member_proven"      // Who: its trial is over, and it counts from now on
	MemberRestored    EventKind = "member_restored"    // Who (was out for signing something else than a checkpoint that is refuted): it counts again
	RoundAttested     EventKind = "round_attested"     // Entry
	SliceAssigned     EventKind = "slice_assigned"     // Unit (the slice), Who (reducer)
	SliceMissed       EventKind = "slice_missed"       // Unit (the slice), Who (reducer), Why: missed_deadline: it is replaced
	SliceContested    EventKind = "slice_contested"    // Unit (the slice): every member computes it
	SlicesAgreed      EventKind = "slices_agreed"      // the next checkpoint is there, to be attested
	CheckpointRefuted EventKind = "checkpoint_refuted" // Who (signed the checkpoint after Round), Other (showed that its updates lead to another), Why: wrong_attest
	RolledBack        EventKind = "rolled_back"        // Unit, Who (the convicted worker; nobody over a checkpoint): Round is the current one again, all checkpoints after its base are void
	RoundDropped      EventKind = "round_dropped"      // Lap, which was rolled back, and about which nothing is open any more: its workers are owed
	RoundRestored     EventKind = "round_restored"     // Round, which was rolled back, goes on: it is built on the same checkpoint after all
	RoundFinal        EventKind = "round_final"        // Lap: its workers are owed
	RunDone           EventKind = "run_done"           //
	RunHalted         EventKind = "run_halted"         // Why
)

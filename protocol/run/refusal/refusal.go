// Package refusal is the errors with which messages of a run are refused. Each has a stable code.
package refusal

// Error is a refusal of a message. Its Code is stable and for programs, its Text for people; a transition wraps it with
// the particulars.
type Error struct {
	Code string
	Text string
}

// Error implements error.
func (e *Error) Error() string { return "run: " + e.Text }

// The refusals. After each of them the state is unchanged.
var (
	ErrTerms     = &Error{"bad_terms", "these terms or members cannot make a run"}
	ErrHalted    = &Error{"halted", "the run is halted or done, nothing more is accepted"}
	ErrNotMember = &Error{"not_member", "the sender takes no part in this run"}
	ErrInactive  = &Error{"inactive", "the sender no longer takes part in this run"}
	ErrStale     = &Error{"stale", "the round is final or not yet begun, or the attempt is not the current one: " +
		"read the state again"}
	ErrNoUnit        = &Error{"no_unit", "the round has no such unit"}
	ErrWrongPhase    = &Error{"wrong_phase", "the round or the unit is not at this point of its life"}
	ErrNotYours      = &Error{"not_yours", "this duty is another member's"}
	ErrDuplicate     = &Error{"duplicate", "the sender has already done this"}
	ErrBadCommitment = &Error{"bad_commitment", "the commitment has not the shape that the terms ask for"}
	ErrBadOpening    = &Error{"bad_opening", "the opening does not show that the sender held the state it sealed"}
	ErrBadPlant      = &Error{"bad_plant", "this does not show a planted fault that the sender may plant"}
	ErrBadSlice      = &Error{"bad_slice", "this is no slice of the round, or not what the sender is bound to"}
	ErrBadData       = &Error{"bad_data", "these name no data of a round"}
	ErrLast          = &Error{"last", "the run would end without the sender: it stays until another has joined"}
	ErrBadVote       = &Error{"bad_vote", "the vote has not the shape of an attestation of this round"}
)

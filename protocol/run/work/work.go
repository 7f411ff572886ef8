// Package work is the work of a run: units of rounds, the attempts at them, the commitments of workers and the
// findings of verifiers, and the window of rounds that are not settled. It knows no members, and decides nothing.
package work

import (
	"encoding/json"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/terms"
)

// Status of a unit.
type Status uint8

// Statuses are part of the format.
const (
	Assigned  Status = 1 // its worker is training
	Committed Status = 2 // its worker is bound; whether it will be audited is not drawn yet
	Auditing  Status = 3 // a verifier is re-executing it
	Disputed  Status = 4 // a dispute about it is open
	Accepted  Status = 5 // nothing is open about it; until its round is final it may be challenged
	// its verifier has sealed the state that it reached, and owes the opening; or all verifiers of a panel have sealed
	// their findings, and owe these
	Sealed Status = 6
)

// Unit is one attempt at a work unit of a round.
type Unit struct {
	Index  uint32 `cbor:"1,keyasint"`
	Status Status `cbor:"2,keyasint"`
	Worker string `cbor:"3,keyasint"`
	// never given twice to the same round and index, also not when a round is done over
	Attempt    uint32     `cbor:"4,keyasint"`
	AssignedAt int64      `cbor:"5,keyasint"` // height from which the current duty could be done
	Deadline   int64      `cbor:"6,keyasint"` // height by which the current duty (commit or audit) is due
	Commit     Commitment `cbor:"7,keyasint"`
	Verifier   string     `cbor:"8,keyasint"`            // of the audit, if one was drawn
	Audited    bool       `cbor:"9,keyasint"`            // an audit of this attempt was drawn, or is certain to be
	Passed     bool       `cbor:"10,keyasint"`           // an audit found this attempt right
	Refused    []string   `cbor:"11,keyasint,omitempty"` // workers that already failed this unit
	Missing    []string   `cbor:"12,keyasint,omitempty"` // members that reported the update, or the answers, unavailable
	// Disputed: the first is in the dispute, the others wait for its end
	Challengers  []string     `cbor:"13,keyasint,omitempty"`
	OutlierFlags []string     `cbor:"14,keyasint,omitempty"` // members who find the update odd
	Seal         canon.Digest `cbor:"15,keyasint"`           // Sealed: the verifier's
	// Sealed: says where the seal must be opened; zero until it is drawn
	Question canon.Digest `cbor:"16,keyasint"`
	// Missing: the slice of the update that the first report is about
	Lost uint32 `cbor:"17,keyasint"`
	// in a tolerant run: this attempt is settled by its state roots all the same
	Exact bool `cbor:"18,keyasint,omitempty"`
	// Auditing, Sealed: the reports of the verifiers of an attempt that is not exact
	Looks []SealedReport `cbor:"19,keyasint,omitempty"`
	// of the audit: to the end of which the verifier executes the unit, counted from 1; 0: all of it, and its
	// update
	Segment uint32 `cbor:"21,keyasint,omitempty"`
	// blocks that its worker took from the assignment to the commitment
	Took         int64  `cbor:"22,keyasint,omitempty"`
	FirstAttempt string `cbor:"23,keyasint,omitempty"` // the verifier that passed this attempt before a second was drawn
	// number of verifiers of an attempt that is not exact; 0: not drawn yet
	Panel uint32 `cbor:"24,keyasint,omitempty"`
	// of an attempt that is not exact and was found within: the state that its exact execution ends in
	End canon.Digest `cbor:"25,keyasint,omitzero"`
	// the deposit over an attempt before, which waits for the end of this one
	Held *Held `cbor:"26,keyasint,omitempty"`
	// an audit of an earlier attempt of the round was passed, and paid
	Looked bool `cbor:"27,keyasint,omitempty"`
	// earlier workers of this unit since its last commitment: the first of all to commit has it
	PreviousAssignees []PreviousAssignee `cbor:"20,keyasint,omitempty"`
	// it draws what units of another round, or of its own, learn from (terms.Rollout), and has no update
	Draws bool `cbor:"28,keyasint,omitempty"`
	// it draws, and most members could not fetch its answers: they stand, and its worker is not paid
	Withheld bool `cbor:"29,keyasint,omitempty"`
	// members that reported the data of the round, which the consumer has named, unavailable
	NoData []string `cbor:"30,keyasint,omitempty"`
}

// Waits reports whether a unit has no worker yet: what it learns from is not drawn.
func (u Unit) Waits() bool { return u.Status == Assigned && u.Worker == "" }

// Units are the attempts at the units of a round, in order of index. States share them: a unit that a state holds is
// never changed; a rule that edits one replaces it by a copy (transition.Draft.Unit). So a message about one of a
// thousand units copies one.
type Units []*Unit

// Learning are the units that do not draw: those with an update.
func (u Units) Learning() Units {
	for i := range u {
		if u[i].Draws {
			return u[:i:i]
		}
	}
	return u
}

// UnmarshalCBOR implements cbor.Unmarshaler. There are as many units as the bytes say, whatever they are.
func (u *Units) UnmarshalCBOR(text []byte) error {
	var list []Unit
	if err := canon.Unmarshal(text, &list); err != nil {
		return err
	}
	*u = Shared(list)
	return nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *Units) UnmarshalJSON(text []byte) error {
	var list []Unit
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	*u = Shared(list)
	return nil
}

// Shared makes units of a list, which must not change afterwards.
func Shared(list []Unit) Units {
	if list == nil {
		return nil
	}
	units := make(Units, len(list))
	for i := range list {
		units[i] = &list[i]
	}
	return units
}

// RoundState is the work of one round that is not final.
type RoundState struct {
	Round    uint32           `cbor:"101,keyasint"` // from 0
	Base     terms.Checkpoint `cbor:"102,keyasint"` // what the round starts from; Base.Round == Round
	Closed   int64            `cbor:"103,keyasint"` // height of the last commitment; 0 while one is missing
	Drawn    bool             `cbor:"104,keyasint"` // the audits of all commitments are drawn
	Attested int64            `cbor:"105,keyasint"` // height; 0 in the current round
	Units    Units            `cbor:"106,keyasint,omitempty"`
	// the carried state that each unit starts from; empty: from nothing
	From []HandedState `cbor:"107,keyasint,omitempty"`
	// rolled back: the convicted members, whose stakes pay for it first
	Culprits []string `cbor:"108,keyasint,omitempty"`
	// what Closed and Drawn are, for the units that draw: a round may end before they are committed
	Filled  int64 `cbor:"109,keyasint,omitempty"`
	Sampled bool  `cbor:"110,keyasint,omitempty"`
	// of a run that its consumer leads: how often most members could not have the data that it named for the round
	Starved uint32 `cbor:"111,keyasint,omitempty"`
}

// Commitment binds a worker to its result before it can see another update of the round.
type Commitment struct {
	// inner state roots: at the start, then at every segment boundary, then at the end
	Segments []canon.Digest `cbor:"1,keyasint,omitempty"`
	// of the uncompressed update; zero: it is not finite, and cannot be made
	Update canon.Digest `cbor:"2,keyasint"`
	// of the compressed update, as it will be served; empty if there is none
	UpdateCID string `cbor:"3,keyasint"`
	Bytes     uint64 `cbor:"4,keyasint"` // size of the compressed update
	Loss      int64  `cbor:"5,keyasint"` // mean training loss of the unit, in millionths
	// CID of the losses and gradient norms of its inner steps; for people, nothing is decided by it
	Log string `cbor:"6,keyasint"`
	// audit.Hide of the right Segments, which differ if a fault is planted; zero once that is shown
	HiddenRoots canon.Digest `cbor:"7,keyasint"`
	HandedState HandedState  `cbor:"8,keyasint,omitzero"` // the state that the unit carries over to the next round
	// of a unit that is a stage: the head of each of terms.Pipeline.LinksOf, in order. HandedState is then
	// the root over them, and the CID of the record of the values.
	Links []Exchanged `cbor:"9,keyasint,omitempty"`
}

// Exchanged is what a stage has exchanged on a link: the head over all frames (protocol/handover), and that the other
// side has signed it.
type Exchanged struct {
	Frames uint64       `cbor:"1,keyasint"`
	Chain  canon.Digest `cbor:"2,keyasint"`
	// of the other side, after its public key; none is asked for if the other side has committed to this head
	Signature []byte `cbor:"3,keyasint"`
}

// Window has the rounds that are not settled. The fields of the embedded RoundState are those of the current round.
type Window struct {
	RoundState
	// the rounds before it that are attested and not final, oldest first
	Open []RoundState `cbor:"6,keyasint,omitempty"`
	// rounds that were rolled back, until nothing is open about their units
	RolledBack []RoundState `cbor:"15,keyasint,omitempty"`
	// attempt that the units of a round begin with: above all of rounds that were rolled back
	FirstAttempt uint32 `cbor:"8,keyasint"`
	// final rounds, oldest first, from whose answers a round learns, or may learn again, that is not final
	Read []RoundState `cbor:"18,keyasint,omitempty"`
}

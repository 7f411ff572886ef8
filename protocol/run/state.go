// Package run is the life of one training job as a pure state machine: who is a member, who does which work unit, what
// was committed, audited and disputed, which checkpoint a quorum attested.
//
// Rounds are attested at the pace of training. Their audits, and challenges by anybody who verifies, go on beside the
// rounds after them; a verdict against work that was built upon rolls the run back to where that work began. A round is
// final, and paid, when nothing is open about it any more.
//
// Members come and go while the run goes on: Leave, Join and Return, with a trial before who comes counts (trial.go).
//
// A run (Phase). A round goes through Assign to Attest while earlier rounds are audited:
//
//	          beacon             last commitment     quorum
//	Assign ------------> Train ----------------> Attest ----> Assign of the next round
//	  ^                    ^  \                ^    |
//	  |  window is full:   |   \ with slices   /     | last round
//	  |  wait              |    +--> Reduce --+      v
//	  |                    |                       Settle --------> Done
//	  +---- rollback: a verdict against a worker ----+    every round is final
//
//	any phase ---> Halted: no worker is left, most declined, the budget is spent, or it diverged (State.Why)
//
// A unit (Status). Another attempt gets another number (UnitID.Attempt):
//
//	            Commit             not drawn
//	Assigned ----------> Committed ----------------------------> Accepted ---> round is final: paid
//	 ^    ^                 | drawn                                ^  |
//	 |    |                 v          Pass           Unseal       |  | Challenge, by anybody
//	 |    |              Auditing ----------> Sealed --------------+  |
//	 |    |                 | Challenge         | Challenge           |
//	 |    |                 v                   v                     |
//	 |    +---------------- Disputed <----------+---------------------+
//	 |   the worker lied:     | the work is right, or the fault was planted
//	 |   slashed, rollback    +--> Accepted, or Auditing by another verifier
//	 |
//	 +-- a deadline passed, Confess, or most miss the update: another worker, nobody is slashed
//
// The messages (Commit, Pass, Challenge, Verdict, Missing, SealSlice, ShowSlice, Attest and others) and Tick, which
// follows them once a block, are functions of (state, message, environment): no clock, no random source, no I/O,
// integers only. None changes its receiver; a refused message gives the old state back. The chain executes them inside
// a block, the simulator under virtual time. The package knows nothing of coins (reward, market), of tensors (compute)
// or of how a dispute is decided (dispute).
package run

import (
	"encoding/json"
	"iter"

	"github.com/starling-network/starling/canon"
)

// Role of a member.
type Role uint8

// Roles are part of the format.
const (
	Worker   Role = 1 // trains units
	Verifier Role = 2 // re-executes units
)

// String returns what somebody in the role is called.
func (r Role) String() string {
	switch r {
	case Worker:
		return "worker"
	case Verifier:
		return "verifier"
	}
	return "nobody"
}

// Member is one party of the run.
type Member struct {
	ID     string `cbor:"1,keyasint"` // account address
	Role   Role   `cbor:"2,keyasint"`
	Price  uint64 `cbor:"3,keyasint"` // uzen per 10^15 floating-point operations
	Active bool   `cbor:"4,keyasint"` // false: takes no further part in this run
	Why    string `cbor:"5,keyasint"` // reason for being inactive
	Passed uint32 `cbor:"6,keyasint"` // audits passed since the last failure; lowers the audit rate
	Missed uint32 `cbor:"7,keyasint"` // deadlines of units or audits missed in a row
	// smoothed blocks from assignment to commitment of a whole unit, or from draw to answer of an audit of one, in
	// 1/256 block; 0: not yet measured
	Speed   uint32 `cbor:"8,keyasint"`
	Silent  uint32 `cbor:"9,keyasint"`            // deadlines to attest missed in a row
	Commits uint32 `cbor:"10,keyasint"`           // commitments made
	Planted uint32 `cbor:"11,keyasint"`           // planted faults shown
	Since   int64  `cbor:"12,keyasint"`           // height at which Active or Why changed last
	Returns uint32 `cbor:"13,keyasint"`           // times that it came back after missed deadlines
	Stake   uint64 `cbor:"14,keyasint,omitempty"` // uzen that stood behind it when it took its seat
	// account that it works for, when it took its seat; its own if nobody else's
	Owner string `cbor:"15,keyasint,omitempty"`
}

// Phase of the current round.
type Phase uint8

// Phases are part of the format.
const (
	Assign Phase = 1 // waiting for a beacon that deals the units, and for room in the window of rounds that are not final
	Train  Phase = 2 // at least one unit has no commitment
	// every unit is committed, and every slice agreed: updates are readable, members attest the next checkpoint, if
	// they have not before (see Terms.Overlap)
	Attest Phase = 3
	Settle Phase = 4 // the last round is attested, and not every round is final
	Done   Phase = 5 // every round is final
	Halted Phase = 6 // the run cannot go on; State.Why says why
	// between Train and Attest if the terms want slices: every unit is committed, and reducers compute the slices of
	// the next checkpoint
	Reduce Phase = 7
)

// String names a phase.
func (p Phase) String() string {
	names := [...]string{Assign: "assign", Train: "train", Attest: "attest", Settle: "settle", Done: "done",
		Halted: "halted", Reduce: "reduce"}
	if int(p) < len(names) && names[p] != "" {
		return names[p]
	}
	return "unknown"
}

// Status of a unit.
type Status uint8

// Statuses are part of the format.
const (
	Assigned  Status = 1 // its worker is training
	Committed Status = 2 // its worker is bound; whether it will be audited is not drawn yet
	Auditing  Status = 3 // a verifier is re-executing it
	Disputed  Status = 4 // a dispute about it is open
	Accepted  Status = 5 // nothing is open about it; until its round is final it may be challenged
	// its verifier found it right, and owes the opening of its seal; or all who look are bound, and owe what they found
	Sealed Status = 6
)

// Unit is one attempt at a work unit of a round.
type Unit struct {
	Index  uint32 `cbor:"1,keyasint"`
	Status Status `cbor:"2,keyasint"`
	Worker string `cbor:"3,keyasint"`
	// never given twice to the same round and index, also not when a round is done over
	Attempt    uint32     `cbor:"4,keyasint"`
	AssignedAt int64      `cbor:"5,keyasint"` // height from which who has the current duty could be at it
	Deadline   int64      `cbor:"6,keyasint"` // height by which the current duty (commit or audit) is due
	Commit     Commitment `cbor:"7,keyasint"`
	Verifier   string     `cbor:"8,keyasint"`            // of the audit, if one was drawn
	Audited    bool       `cbor:"9,keyasint"`            // an audit of this attempt was drawn, or is certain to be
	Passed     bool       `cbor:"10,keyasint"`           // an audit found this attempt right
	Refused    []string   `cbor:"11,keyasint,omitempty"` // workers who already failed this unit
	Missing    []string   `cbor:"12,keyasint,omitempty"` // members who reported that the update cannot be fetched
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
	// Auditing, Sealed: of an attempt that is not exact, who audits it
	Looks []SealedReport `cbor:"19,keyasint,omitempty"`
	// of the audit: to the end of which the verifier executes the unit, counted from 1; 0: all of it, and its update
	Segment uint32 `cbor:"21,keyasint,omitempty"`
	// blocks that its worker took from the assignment to the commitment
	Took         int64  `cbor:"22,keyasint,omitempty"`
	FirstAttempt string `cbor:"23,keyasint,omitempty"` // verifier who passed this attempt before a second was asked
	// how many are to look at an attempt that is not exact; 0: not drawn yet
	Panel uint32 `cbor:"24,keyasint,omitempty"`
	// of an attempt that is not exact and was found within: the state that its exact execution ends in
	End canon.Digest `cbor:"25,keyasint,omitzero"`
	// the deposit over an attempt before, which waits for the end of this one
	Held *Held `cbor:"26,keyasint,omitempty"`
	// an audit of an earlier attempt of the round was passed, and paid
	Looked bool `cbor:"27,keyasint,omitempty"`
	// who had this unit before, since it was committed last: the first of all to commit has it
	PreviousAssignees []PreviousAssignee `cbor:"20,keyasint,omitempty"`
}

// Units are the attempts at the units of a round, in order of index. States share them: nobody changes a unit that a
// state holds, and a rule that has to replaces it by a copy (draft.unit). So a message about one of a thousand units
// copies one.
type Units []*Unit

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

// Shared makes units of a list, which nobody changes any more.
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
	Round    uint32        `cbor:"101,keyasint"` // from 0
	Base     Checkpoint    `cbor:"102,keyasint"` // what the round starts from; Base.Round == Round
	Closed   int64         `cbor:"103,keyasint"` // height of the last commitment; 0 while one is missing
	Drawn    bool          `cbor:"104,keyasint"` // the audits of all commitments are drawn
	Attested int64         `cbor:"105,keyasint"` // height; 0 in the current round
	Units    Units         `cbor:"106,keyasint,omitempty"`
	From     []HandedState `cbor:"107,keyasint,omitempty"` // what each unit starts from beside Base; empty: from nothing
	// rolled back: whose conviction that was, and whose stakes pay for it first
	Culprits []string `cbor:"108,keyasint,omitempty"`
}

// Commitment is what a worker is bound to before it may see anybody's update of the round.
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
	HandedState HandedState  `cbor:"8,keyasint,omitzero"` // what the unit hands on to itself in the next round
}

// Attestation is what a member signs: the checkpoint after a round, and the updates that made it.
type Attestation struct {
	Job        string     `cbor:"1,keyasint"`
	Checkpoint Checkpoint `cbor:"2,keyasint"`
	// CID of the accepted update of every unit of every round that the checkpoint is made of, see Terms.Applied; in
	// order of round and unit
	Updates []string `cbor:"3,keyasint"`
}

// Digest is what the signature of an attestation signs.
func (a Attestation) Digest() canon.Digest { return canon.Hash("starling/attestation/1", a) }

// Vote is one member's signed attestation of the current round.
type Vote struct {
	Member    string     `cbor:"1,keyasint"`
	Next      Checkpoint `cbor:"2,keyasint"`
	PublicKey []byte     `cbor:"3,keyasint"`
	Signature []byte     `cbor:"4,keyasint"`
}

// Crew is who works in a run, under which terms, and at which pace.
type Crew struct {
	Terms   Terms    `cbor:"1,keyasint"`
	Members []Member `cbor:"2,keyasint"` // in order of ID
	// the latest observed blocks from assignment to commitment of a whole unit, for the deadline
	TrainBlocks  []int64 `cbor:"9,keyasint,omitempty"`
	AuditBlocks  []int64 `cbor:"10,keyasint,omitempty"` // the latest observed blocks from draw to audit answer
	ReduceBlocks []int64 `cbor:"12,keyasint,omitempty"` // the latest observed blocks from draw to seal of a slice
}

// Window is the rounds about whose units somebody may have to answer. The fields of the embedded RoundState are those
// of the current round.
type Window struct {
	RoundState
	Open       []RoundState `cbor:"6,keyasint,omitempty"`  // the rounds before it that are attested and not final, oldest first
	RolledBack []RoundState `cbor:"15,keyasint,omitempty"` // rounds that were rolled back, until nothing is open about their units
	// attempt that the units of a round begin with: above all of rounds that were rolled back
	FirstAttempt uint32 `cbor:"8,keyasint"`
}

// Reduction is how far the slices of the current round are.
type Reduction struct {
	Slices []Slice `cbor:"11,keyasint,omitempty"` // once every unit of the round is committed
}

// Newcomers are the probations of those who join.
type Newcomers struct {
	// of the members who are to show that they compute what the others do, in order of ID
	Probations  []Probation   `cbor:"13,keyasint,omitempty"`
	LatestFinal ProbationTask `cbor:"14,keyasint"` // a unit of the latest final round to which nothing was handed on
}

// State is a run between two messages, which the messages change.
type State struct{ Progress }

// Progress is how far a run is: all that is stored of it.
type Progress struct {
	Crew
	Phase Phase  `cbor:"3,keyasint"`
	Why   string `cbor:"4,keyasint"` // for Halted
	Since int64  `cbor:"5,keyasint"` // height at which the phase began
	Window
	Votes []Vote `cbor:"7,keyasint,omitempty"` // of the current round
	Reduction
	Newcomers
	Unwatched int64 `cbor:"16,keyasint,omitempty"` // height since which audits wait for a verifier to join; 0: none does
}

// Entry is one line of the lineage: a checkpoint that a quorum attested.
type Entry struct {
	Attestation Attestation `cbor:"1,keyasint"`
	Height      int64       `cbor:"2,keyasint"`
	Workers     []string    `cbor:"3,keyasint"` // who trained each unit, in unit order
	Votes       []Vote      `cbor:"4,keyasint"` // the agreeing ones, in order of member
	Logs        []string    `cbor:"5,keyasint"` // CID of the log of every unit, in unit order
}

// Env is what a block gives to a transition.
//
// Draw draws verifiers for an attempt at a unit from the whole network, one after the other, each with a chance in
// proportion to its stake; of those drawn ID, Price, Stake and Owner are taken. nil: there is no network but the
// members.
//
// Covers says what the budget covers beside all that the run may cost in a state, and, if spared, beside all rounds to
// come: more audits, of a unit at a price, as long as it answers yes. nil: all.
type Env struct {
	Height          int64
	Last            int64        // for Tick: height of the tick before; 0: the block before
	Beacon          canon.Digest // of this block, unknown before it; zero if the block has none
	BudgetExhausted bool         // for Tick: the escrow does not cover another round, so that none may begin
	Paused          bool         // for Tick: no round may begin, whatever the budget
	Draw            func(id UnitID) iter.Seq[Member]
	Covers          func(s State) (more func(unit uint32, price uint64, spared bool) bool)
	CancelRequested bool // for Tick: the consumer wants no further round; the run ends when every round is final
}

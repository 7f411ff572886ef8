// Package progress is how far a run is: all that is stored of it, and what can be read off it. Nothing here changes a
// run; package run does, with messages.
package progress

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

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
	Halted Phase = 6 // the run cannot continue; Progress.Why has the reason
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

// Attestation is the statement that a member signs: the checkpoint after a round, and the updates that made it.
type Attestation struct {
	Job        string           `cbor:"1,keyasint"`
	Checkpoint terms.Checkpoint `cbor:"2,keyasint"`
	// CID of the accepted update of every unit of every round that the checkpoint is made of, see Terms.Applied; in
	// order of round and unit
	Updates []string `cbor:"3,keyasint"`
}

// Digest is the digest that the signature of an attestation covers.
func (a Attestation) Digest() canon.Digest { return canon.Hash("starling/attestation/1", a) }

// Vote is one member's signed attestation of the current round.
type Vote struct {
	Member    string           `cbor:"1,keyasint"`
	Next      terms.Checkpoint `cbor:"2,keyasint"`
	PublicKey []byte           `cbor:"3,keyasint"`
	Signature []byte           `cbor:"4,keyasint"`
}

// Reduction is how far the slices of the current round are.
type Reduction struct {
	Slices []Slice `cbor:"11,keyasint,omitempty"` // once every unit of the round is committed
}

// Newcomers has the probations of accounts that join.
type Newcomers struct {
	// in order of member
	Probations  []Probation   `cbor:"13,keyasint,omitempty"`
	LatestFinal ProbationTask `cbor:"14,keyasint"` // a unit of the latest final round without carried states
}

// Progress is how far a run is: all that is stored of it.
type Progress struct {
	crew.Crew
	Phase Phase  `cbor:"3,keyasint"`
	Why   string `cbor:"4,keyasint"` // for Halted
	Since int64  `cbor:"5,keyasint"` // height at which the phase began
	work.Window
	Votes []Vote `cbor:"7,keyasint,omitempty"` // of the current round
	Reduction
	Newcomers
	Unwatched int64 `cbor:"16,keyasint,omitempty"` // height since which audits wait for a verifier to join; 0: none does
	Rules     Rules `cbor:"19,keyasint,omitempty"`
}

// Rules is the version of the rules of a run, which it keeps from its beginning to its end.
type Rules uint32

// Versions of the rules are part of the format. Each has the rules of the one before, but for those that it names.
const (
	// RoundingIsOwed: a worker that gets less than its part of the units of a round, or more, since units are whole,
	// is owed the difference in later rounds (schedule.ShareBySpeed). Before, each round was rounded by itself.
	RoundingIsOwed Rules = 1
	// RatesCount: a worker without a measured speed counts as the rate says that the registry has measured
	// (schedule.ByRate). Before, it counted as the mean of the others.
	RatesCount Rules = 2
	// ReportsExtend: members also report updates of attested rounds, and a round with such a report becomes final later
	// (lineage.Lineage). Before, reports about attested rounds were refused.
	ReportsExtend Rules = 3
	// StagesBySpeed: units that are stages go to workers by their rates (schedule.Stages), and the time of each counts
	// from its own beginning. Before, they were dealt in turn, and a worker that committed one was taken to begin its
	// others then.
	StagesBySpeed Rules = 4

	// HiddenLinks: where most members cannot have the values of a link that a stage has committed to, the units on both of
	// its sides go to others, and their workers leave. Workers of a replica that wait for each other are late, and those
	// that wait for them are not. Before, such an audit had no end, and all of them were late.
	HiddenLinks Rules = 5

	NewestRules = HiddenLinks
)

// Extend reports whether a member that cannot fetch an update of an attested round has the time to execute that round
// again, in a run with these terms. A round can be executed again if its units are exact, and its checkpoint refuted if
// it is that of one round without slices.
func (r Rules) Extend(t terms.Terms) bool {
	return r >= ReportsExtend && t.AuditPPM > 0 && t.Tolerance.DistancePPM == 0 && !t.Sliced() && !t.Overlap
}

// Entry is one line of the lineage: a checkpoint that a quorum attested.
type Entry struct {
	Attestation Attestation `cbor:"1,keyasint"`
	Height      int64       `cbor:"2,keyasint"`
	Workers     []string    `cbor:"3,keyasint"` // the worker of each unit, in unit order
	Votes       []Vote      `cbor:"4,keyasint"` // the agreeing ones, in order of member
	Logs        []string    `cbor:"5,keyasint"` // CID of the log of every unit, in unit order
}

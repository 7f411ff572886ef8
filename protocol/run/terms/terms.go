// Package terms has the terms of a run, which its order fixes: the number of rounds and units, their sizes, the
// deadlines, audits and tolerance, and the quantities that follow from these alone. It knows neither members nor
// progress.
package terms

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
)

// Carries reports whether the units of a round carry a state over to the next round.
func (t Terms) Carries(round uint32) bool {
	return t.Carry > 0 && (round+1)%t.Carry != 0 && round+1 < t.Rounds
}

// MaxSlices is in how many slices a round may be reduced at most.
const MaxSlices = 1 << 9

// Sliced reports whether the rounds of a run are reduced in slices.
func (t Terms) Sliced() bool { return t.Slices > 0 }

// Limits of one run. They keep the state of a run small enough to be loaded and stored with every message.
const (
	MaxRounds   = 1 << 20
	MaxUnits    = 1 << 10
	MaxMembers  = 1 << 10
	MaxSegments = 64
	MaxWindow   = 256 + ahead // rounds
	MaxOpen     = 16 << 10    // units in them
	MaxCID      = 128         // bytes of the text form of a CID
)

// Terms are fixed when an order is matched and never change.
type Terms struct {
	Job       string       `cbor:"1,keyasint"`  // identifier of the job, unique on the chain
	Spec      canon.Digest `cbor:"2,keyasint"`  // digest of the work specification (compute/train.Spec)
	SpecCID   string       `cbor:"3,keyasint"`  // where its bytes are
	Genesis   Checkpoint   `cbor:"4,keyasint"`  // the state that round 0 starts from
	Rounds    uint32       `cbor:"5,keyasint"`  // outer steps of the whole job
	Units     uint32       `cbor:"6,keyasint"`  // work units of one round, whatever the number of workers
	Segments  uint32       `cbor:"7,keyasint"`  // state roots of one commitment to a whole unit after the first
	UnitFlops uint64       `cbor:"8,keyasint"`  // floating-point operations of one whole unit
	AuditPPM  uint32       `cbor:"9,keyasint"`  // floor of the audit rate, parts per million; 0: no audits
	Deadlines Deadlines    `cbor:"10,keyasint"` // in blocks
	Window    uint32       `cbor:"11,keyasint"` // rounds that may be attested and not final before the run waits
	// in how many slices a round is reduced; 0: every member combines the updates for itself
	Slices    uint32    `cbor:"12,keyasint"`
	Screen    Screen    `cbor:"13,keyasint"` // how members look at updates before they attest
	Tolerance Tolerance `cbor:"14,keyasint"` // zero: the work is exact, and settled by its state roots
	// an audit by chance executes a unit to the end of a drawn segment; false: all of it
	PartialAudits bool `cbor:"15,keyasint"`
	// number of rounds of a group, through which units carry a state, see Carries; 0: units carry none
	Carry uint32 `cbor:"16,keyasint,omitempty"`
	// the updates of a round travel while the next one is trained, see Applied
	Overlap bool `cbor:"17,keyasint,omitempty"`
	// segments of every unit of a round, see SegmentsOf; nil: all units are whole
	Sizes []uint32 `cbor:"18,keyasint,omitempty"`
	// units that draw the answers from which the others learn; zero: there are none
	Rollout Rollout `cbor:"19,keyasint,omitzero"`
	// units are stages of replicas; zero: they are not
	Pipeline Pipeline `cbor:"20,keyasint,omitzero"`
	// workers whose units are audited less; zero: there are none
	Attested Attested `cbor:"21,keyasint,omitzero"`
	// the consumer leads the run: a round begins when the consumer has named its data, for which the run waits as many
	// blocks at most; 0: the data of all rounds follow from the specification
	Led int64 `cbor:"22,keyasint,omitempty"`
}

// Screen is how far members look at the updates of a round before they attest.
type Screen uint8

// Screens are part of the format. Each includes the checks of the one before it.
const (
	ScreenOff     Screen = 0 // no check
	ScreenUpdates Screen = 1 // compares the updates of a round
	ScreenLosses  Screen = 2 // also measures how each changes the loss on data of its unit and on held-out data
)

// Deadlines are in blocks. Train and Audit are only the first value: later ones follow what was observed. A window for
// challenges is never shorter than its members need, see State.ChallengeBlocks.
type Deadlines struct {
	Train     int64 `cbor:"1,keyasint"`
	Audit     int64 `cbor:"2,keyasint"`
	Attest    int64 `cbor:"3,keyasint"`
	Challenge int64 `cbor:"4,keyasint"` // from the attestation of a round, how long its units may be challenged at least
}

// Checkpoint names an attested state: the one after Round rounds.
type Checkpoint struct {
	Round uint32       `cbor:"1,keyasint"`
	Root  canon.Digest `cbor:"2,keyasint"` // state root: parameters, outer optimizer, counters
	CID   string       `cbor:"3,keyasint"` // of its folder (network/checkpoint)
}

// Limits of terms and votes.
const (
	MinBlocks = 5       // that a duty has: a message is seen and answered some blocks later, however little there is to do
	MaxBlocks = 1 << 20 // of a deadline, and of a wait that is remembered
	MaxID     = 128     // bytes of a job's or member's identifier
	MaxKey    = 128     // bytes of a public key or signature
)

// Validate returns why terms cannot make a run.
func (t Terms) Validate() error {
	d := t.Deadlines
	switch {
	case t.Job == "" || len(t.Job) > MaxID:
		return fmt.Errorf("job identifier of %d bytes, wanted 1 to %d", len(t.Job), MaxID)
	case t.Spec.IsZero():
		return fmt.Errorf("no digest of the work specification")
	case !ValidCID(t.SpecCID):
		return fmt.Errorf("CID of the specification has %d bytes, wanted 1 to %d", len(t.SpecCID), MaxCID)
	case t.Genesis.Round != 0 || t.Genesis.Root.IsZero() || !ValidCID(t.Genesis.CID):
		return fmt.Errorf("the genesis checkpoint needs round 0, a state root and a CID")
	case t.Rounds < 1 || t.Rounds > MaxRounds:
		return fmt.Errorf("%d rounds, wanted 1 to %d", t.Rounds, MaxRounds)
	case t.Units < 1 || t.Units > MaxUnits:
		return fmt.Errorf("%d units a round, wanted 1 to %d", t.Units, MaxUnits)
	case t.Segments < 1 || t.Segments > MaxSegments:
		return fmt.Errorf("%d segments, wanted 1 to %d", t.Segments, MaxSegments)
	case t.UnitFlops == 0:
		return fmt.Errorf("a unit needs a number of operations")
	case t.Sizes != nil && !t.sized():
		return fmt.Errorf(
			"sizes %v of %d units of %d operations, wanted one for each, from 1 to all %d segments of the largest, "+
				"of equal operations",
			t.Sizes,
			t.Units,
			t.UnitFlops,
			t.Segments,
		)
	case t.Rollout != Rollout{} && !t.drawn():
		return fmt.Errorf("units that draw as %+v, for %d rounds of %d units, with a state through %d rounds", t.Rollout,
			t.Rounds, t.Units, t.Carry)
	case (len(t.Pipeline.Flops) > 0 || len(t.Pipeline.Links) > 0) && !t.staged():
		return fmt.Errorf("%d units of stages of %v operations with links %v: wanted as many for each stage, of 2 to %d, "+
			"the most expensive of which has %d, that are exact, of one size, and pass on no state", t.Units,
			t.Pipeline.Flops, t.Pipeline.Links, MaxStages, t.UnitFlops)
	case t.Led != 0 && !t.led():
		return fmt.Errorf("a run that waits %d blocks for the data of each round of %d units: wanted %d to %d blocks, and "+
			"one unit that is exact, whole, and passes on no state", t.Led, t.Units, MinBlocks, MaxBlocks)
	case t.AuditPPM > 1_000_000:
		return fmt.Errorf("audit rate of %d parts per million, at most 1000000", t.AuditPPM)
	case !t.Attested.valid() || t.Attested.FactorPPM > 0 && t.Tolerance.DistancePPM > 0:
		return fmt.Errorf("attested machines as %+v, wanted 1 to %d measurements and a factor from %d to 1000000, in exact "+
			"work alone", t.Attested, MaxMeasurements, audit.LeastFactorPPM)
	}
	switch {
	case t.Window < 1 || t.Window > MaxWindow:
		return fmt.Errorf("a window of %d rounds, wanted 1 to %d", t.Window, MaxWindow)
	case uint64(t.Window)*uint64(t.Units+t.Rollout.Units) > MaxOpen:
		return fmt.Errorf("a window of %d rounds of %d units, at most %d units may be open", t.Window, t.Units, MaxOpen)
	case t.Slices > MaxSlices:
		return fmt.Errorf("%d slices, at most %d", t.Slices, MaxSlices)
	case t.Sliced() && (t.Tolerance.DistancePPM > 0 || t.Screen != ScreenOff):
		return fmt.Errorf(
			"rounds in slices of work that is tolerant, or whose updates are screened: no member has a whole update",
		)
	case t.Carry > t.Window || t.Carry > 0 && t.Tolerance.DistancePPM > 0:
		return fmt.Errorf(
			"%d rounds in a row whose units carry a state, in a window of %d, or of tolerant work: that could not be "+
				"checked",
			t.Carry,
			t.Window,
		)
	case t.Overlap && (t.Carry == 0 || t.Sliced()):
		return fmt.Errorf(
			"rounds that overlap through %d rounds in a row and in %d slices: units continue with the state that they "+
				"carry, and exchange whole updates",
			t.Carry,
			t.Slices,
		)
	case d.Challenge < 0 || d.Challenge > MaxBlocks:
		return fmt.Errorf("%d blocks for challenges, wanted 0 to %d", d.Challenge, MaxBlocks)
	case t.Screen > ScreenLosses:
		return fmt.Errorf("screen %d, wanted 0 to %d", t.Screen, ScreenLosses)
	case t.Tolerance.CosinePPM > 1_000_000 || t.Tolerance.DistancePPM == 0 && t.Tolerance.CosinePPM > 0:
		return fmt.Errorf(
			"a tolerance of distance %d and cosine %d parts per million, wanted a distance above 0 and a cosine up "+
				"to 1000000",
			t.Tolerance.DistancePPM,
			t.Tolerance.CosinePPM,
		)
	}
	for _, blocks := range []int64{d.Train, d.Audit, d.Attest} {
		if blocks < 1 || blocks > MaxBlocks {
			return fmt.Errorf("deadline of %d blocks, wanted 1 to %d", blocks, MaxBlocks)
		}
	}
	return nil
}

// Floor is the least rate at which the units of a worker are audited, in parts per million, whatever its history.
func (t Terms) Floor() uint32 {
	if t.AuditPPM > 0 && t.Tolerance.DistancePPM > 0 {
		return max(t.AuditPPM, audit.TolerantPPM)
	}
	return t.AuditPPM
}

// ahead is how many rounds at most are trained while a group of those before them becomes final.
const ahead = 32

// OpenRounds is how many rounds may be open at a time in a job with this number of units per round: a group of rounds
// in which units carry a state, and up to as many of the next, so that these are trained while the group becomes
// final; at least 8.
func OpenRounds(units, carry uint32) uint32 {
	return max(8, carry, min(2*carry, carry+ahead, MaxWindow, MaxOpen/max(1, units)))
}

// ValidCID reports whether a text has the length of a CID.
func ValidCID(c string) bool { return c != "" && len(c) <= MaxCID }

// Tolerance is how far the update of a unit may be from that of its exact execution, in parts per million, in a run
// whose workers compute with stacks that cannot give the same bits.
//
// The chain cannot check whether an update is outside. So it convicts no member over it, and nothing is disputed or
// rolled back: a round of such a run is attested when its audits are over. An update is withheld if most of a panel of
// verifiers (or the only one) find it outside, or most members find it an outlier: its worker is not paid and is
// audited more, and the unit goes to another worker. That next attempt is exact: it is settled by state roots, audited
// for certain, and can be disputed. So a verifier that withholds honest work does so once. If all verifiers of a panel
// find the same, the worker leaves the run, and loses its deposit (audit.Deposit) when the exact attempt is final,
// unless that attempt ends in another state than they reported.
type Tolerance struct {
	// largest distance, relative to the length of the exact update; 0: the run is exact
	DistancePPM uint32 `cbor:"1,keyasint"`
	CosinePPM   uint32 `cbor:"2,keyasint"` // smallest cosine
}

// Holds reports whether a measured distance and cosine are within.
func (t Tolerance) Holds(distancePPM, cosinePPM uint32) bool {
	return distancePPM <= t.DistancePPM && cosinePPM >= t.CosinePPM
}

// Freezes reports whether the units of a round that was rolled back cannot be settled. In a tolerant run, only
// attested rounds were measured; in a run whose units carry a state, the carried state may be the false one, which
// only its worker has; and answers that were drawn again have replaced those from which a unit learnt.
func (t Terms) Freezes() bool {
	return t.Tolerance.DistancePPM > 0 || t.Carry > 0 || t.Rollout.Units > 0
}

// Applied are the rounds whose updates make the checkpoint after a round.
func (t Terms) Applied(round uint32) (rounds []uint32) {
	if !t.Overlap {
		return []uint32{round}
	}
	if round > 0 && t.Carries(round-1) {
		rounds = append(rounds, round-1)
	}
	if !t.Carries(round) {
		rounds = append(rounds, round)
	}
	return rounds
}

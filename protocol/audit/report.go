package audit

import (
	"math"

	"github.com/starling-network/starling/canon"
)

// Panel is how many verifiers audit a tolerant unit that one of them finds outside, or whose first report is drawn for
// a comparison.
const Panel = 3

// Finding is the result of the exact execution of a tolerant unit: the state that it ends in, and how far the update
// of its worker is from that of the execution, in parts per million. It is a function of the unit and of the update,
// so if two verifiers differ, one of them has not executed the unit.
type Finding struct {
	DistancePPM uint32       `cbor:"1,keyasint"` // relative to the length of the exact update
	CosinePPM   uint32       `cbor:"2,keyasint"`
	End         canon.Digest `cbor:"3,keyasint"` // root of the state that the unit ends in
}

// Seal binds a verifier to a finding without showing it. The salt hides it even from verifiers that have executed the
// unit.
func (f Finding) Seal(s Subject, salt canon.Digest) canon.Digest {
	return canon.Hash("starling/report/1",
		[]any{s.Verifier, s.Job, s.Round, s.Unit, s.Attempt, f.DistancePPM, f.CosinePPM, f.End, salt})
}

// Salt is the salt of a verifier's seal: a digest of a secret that only the verifier has.
func Salt(secret canon.Digest, s Subject) canon.Digest {
	return canon.Sum("starling/report-salt/1", secret[:], []byte(s.Job), numbers(s.Round, s.Unit, s.Attempt))
}

// Forfeits is the least probability with which faking a tolerant unit costs the worker its deposit, in parts per
// million: all verifiers of the panel must report it, and a quarter of all draws falls on accomplices.
func Forfeits(ratePPM uint32) uint32 {
	rate := uint64(min(ratePPM, Certain))
	for range Panel {
		rate = rate * (Certain - CollusionPPM) / Certain
	}
	return uint32(rate)
}

// Deposit is the amount that backs the tolerant units of a worker, in uzen, if each is paid price and audited with a
// rate in parts per million: price / q rounded up, with q the probability of Forfeits. A rate of zero has no deposit.
//
// It is Bond with another probability, and deters for the same reason: a worker whose deposit is forfeited is not paid
// for any unit of the round, so that of m faked units m price (1 - q)^m is gained at most, and Deposit (1 - (1 - q)^m)
// lost.
func Deposit(price uint64, ratePPM uint32) uint64 {
	q := uint64(Forfeits(ratePPM))
	switch {
	case price == 0 || ratePPM == 0:
		return 0
	case q == 0:
		return math.MaxUint64
	}
	return Ratio(price, Certain, q)
}

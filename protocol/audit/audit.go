// Package audit decides which units are re-executed: the rate at which a worker is audited, the draw from a beacon
// that was unknown when the commitments were made, and the seal by which a verifier shows that it holds the state and
// did not copy another answer.
//
// It is pure arithmetic over a beacon. It does not know the members (run), the pay of an audit (reward) or what
// follows when an audit fails (dispute).
package audit

import (
	"encoding/binary"
	"math/bits"

	"github.com/starling-network/starling/canon"
)

// Certain is the rate of an audit that is always drawn. Rates are in parts per million.
const Certain = 1_000_000

// SecondPPM is the fraction of passed audits that a second verifier repeats, in parts per million. It raises the cost
// of all audits by this fraction. A verifier that passes wrong work is contradicted at least with this probability.
const SecondPPM = 125_000

// Rate is the audit rate in parts per million of a worker that passed this number of audits since its last failure:
// all units of a new worker, half as many after each audit passed, never less than the floor. A floor of zero is a job
// that wants no audits, and has none.
func Rate(floorPPM uint32, passed uint32) uint32 {
	if floorPPM == 0 {
		return 0
	}
	return min(Certain, max(floorPPM, Certain>>min(passed, 31)))
}

// LeastFactorPPM is the least factor by which a job may lower the floor of its audit rate for workers on attested
// machines, in parts per million.
const LeastFactorPPM = 250_000

// Lowered is a floor of the audit rate times a factor, both in parts per million, rounded up. It is never below a
// quarter of the floor, nor zero where the floor is not.
func Lowered(floorPPM, factorPPM uint32) uint32 {
	factor := uint64(min(max(factorPPM, LeastFactorPPM), Certain))
	return uint32((uint64(min(floorPPM, Certain))*factor + Certain - 1) / Certain)
}

// Draw reports whether an attempt at a unit is audited, under the beacon of a block after its commitment.
func Draw(beacon canon.Digest, job string, round, unit, attempt uint32, ratePPM uint32) bool {
	return Pick(beacon, "draw", job, round, unit, attempt, Certain) < int(ratePPM)
}

// Pick is a uniform index below n (at least 1): the beacon, the purpose of the pick and its subject give 128 bits, of
// which the product with n is cut to its integer part. The bias is below n/2^128, so nothing is rejected and redrawn.
func Pick(beacon canon.Digest, purpose, job string, round, unit, attempt uint32, n int) int {
	d := Seed(beacon, purpose, job, round, unit, attempt)
	high, low := binary.BigEndian.Uint64(d[0:]), binary.BigEndian.Uint64(d[8:])
	whole, fraction := bits.Mul64(high, uint64(n))
	carried, _ := bits.Mul64(low, uint64(n))
	_, carry := bits.Add64(fraction, carried, 0)
	return int(whole + carry)
}

// Seed is the digest of the beacon and an attempt at a unit, for a purpose.
func Seed(beacon canon.Digest, purpose, job string, round, unit, attempt uint32) canon.Digest {
	return canon.Sum("starling/pick/1", beacon[:], []byte(purpose), []byte(job), numbers(round, unit, attempt))
}

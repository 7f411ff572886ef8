package audit

import "github.com/starling-network/starling/canon"

// A planted fault is a commitment that its worker made wrong on purpose, to test whether its verifier executes the
// unit: one of its state roots is replaced, and everything else is right. Each commitment carries Hide of the right
// roots under a nonce that the worker alone knows, also without a planted fault, so that no verifier can tell. When
// the verifier has answered, the worker shows the nonce and the right roots.
//
// Planting excuses no lie. The hidden roots replace the committed ones and are audited for certain; and since Plant is
// a function, all roots but the planted one are those that were committed.

// PlantPPM is how many commitments an honest worker plants, in parts per million.
const PlantPPM = 31_250

// MayPlant is how many planted faults a worker may have shown after a number of commitments: more than an honest
// worker plants by chance, and few enough that a malicious one hardly delays the run.
func MayPlant(commitments uint32) uint32 { return 2 + commitments/8 }

// Nonce hides the roots of one commitment: a digest of a secret that only the worker has.
func Nonce(secret canon.Digest, job string, round, unit, attempt uint32) canon.Digest {
	return canon.Sum("starling/plant-nonce/1", secret[:], []byte(job), numbers(round, unit, attempt))
}

// Plants reports whether a worker plants a fault under a nonce, if it may.
func Plants(nonce canon.Digest) bool { return Pick(nonce, "plant", "", 0, 0, 0, Certain) < PlantPPM }

// Hide is the digest of state roots under a nonce.
func Hide(nonce canon.Digest, roots []canon.Digest) canon.Digest {
	return canon.Hash("starling/plant-hide/1", append([]canon.Digest{nonce}, roots...))
}

// Plant returns the roots with one replaced, of those after the first, which is the state at the start.
func Plant(nonce canon.Digest, roots []canon.Digest) []canon.Digest {
	planted := append([]canon.Digest(nil), roots...)
	if len(planted) > 1 {
		at := 1 + Pick(nonce, "where", "", 0, 0, 0, len(planted)-1)
		planted[at] = canon.Sum("starling/planted/1", nonce[:], roots[at][:])
	}
	return planted
}

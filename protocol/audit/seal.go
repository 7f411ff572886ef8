package audit

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/starling-network/starling/canon"
)

// Seal is what a verifier answers an audit with: a digest over its own identity, the unit, the state root it reached
// and all bytes of that state. The root alone is public in the worker's commitment; without the bytes, which only
// re-execution gives, the seal cannot be made, and another verifier's seal is another digest. How the bytes are cut into
// pieces does not matter. The idea is that of the iExec PoCo seal.
func Seal(verifier string, job string, round, unit uint32, stateRoot canon.Digest, state func(yield func([]byte) bool)) canon.Digest {
	var at [8]byte
	binary.BigEndian.PutUint32(at[0:], round)
	binary.BigEndian.PutUint32(at[4:], unit)
	key := canon.Sum("starling/seal-key/1", []byte(verifier), []byte(job), at[:], stateRoot[:])
	h := sha256.New()
	h.Write(key[:])
	for piece := range state {
		h.Write(piece)
	}
	return canon.Sum("starling/seal/1", key[:], h.Sum(nil))
}

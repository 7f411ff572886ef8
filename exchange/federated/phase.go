package federated

import "github.com/starling-network/starling/exchange/secagg"

// Phase is what a round waits for.
type Phase string

// Phases of a round, in their order.
const (
	Keys      Phase = "keys"      // of owners that have an update
	Shares    Phase = "shares"    // of the secrets of each
	Vectors   Phase = "vectors"   // under masks
	Survivors Phase = "survivors" // signatures under the list of those whose vectors are in the sum
	Secrets   Phase = "secrets"   // shares that remove masks
	Over      Phase = "over"
)

// Phases are those in which owners send a message.
var Phases = []Phase{Keys, Shares, Vectors, Survivors, Secrets}

// next is the phase after p.
func (p Phase) next() Phase {
	for i, q := range Phases[:len(Phases)-1] {
		if q == p {
			return Phases[i+1]
		}
	}
	return Over
}

// Largest is the largest number of bytes of a message of a phase, with vectors of a number of entries, the weight
// included.
func (p Phase) Largest(entries int) int {
	const share = 256 // a sealed pair of shares with its digests, or a signature, and their encoding
	if p == Vectors {
		return 4 * entries
	}
	return 1024 + share*secagg.MaxClients
}

// LargestReply is the same of the answer to a message of a phase.
func (p Phase) LargestReply() int { return 1024 + 512*secagg.MaxClients }

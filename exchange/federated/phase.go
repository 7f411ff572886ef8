package federated

import "github.com/starling-network/starling/exchange/secagg"

// Phase is what a round waits for.
type Phase string

// Phases of a round, in their order.
const (
	Keys      Phase = "keys"      // of owners that have an update
	Shares    Phase = "shares"    // of the secrets of each
	Vectors   Phase = "vectors"   // under masks, or ciphertexts
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

// LargestReply is the largest number of bytes of the answer to a message of a phase.
func (p Phase) LargestReply() int { return 1024 + 512*secagg.MaxClients }

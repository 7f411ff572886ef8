// Package registrypb holds the messages of the registry module, generated from chain/proto, and their conversion to the
// rules of protocol/registry. It decides nothing.
package registrypb

import "github.com/starling-network/starling/protocol/run"

// Rule returns the role as the rules know it; zero, which no rule accepts, for a number that is none.
func (r Role) Rule() run.Role {
	switch r {
	case Role_ROLE_WORKER:
		return run.Worker
	case Role_ROLE_VERIFIER:
		return run.Verifier
	}
	return 0
}

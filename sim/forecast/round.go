// Package forecast says how long the parts of a run take, from the parts of its rounds and without playing it.
package forecast

import (
	"time"

	"github.com/starling-network/starling/sim/link"
)

// Round is what a round of a job consists of, for a worker among equals.
type Round struct {
	Workers, Verifiers int
	Inner              time.Duration // in inner steps
	Finish             time.Duration // computing the state roots of a unit and its update
	Combine            time.Duration // computing the next checkpoint of all updates
	Update             int64         // bytes of the update of a unit
	Sliced             int64         // bytes that a worker receives in a round that is reduced in slices; 0: it is not
	Link               link.Link     // of everybody
	Block              time.Duration // from block to block
}

// Overhead is how long a round takes in addition to its inner steps: Finish, Combine, and what it waits for.
func (r Round) Overhead() time.Duration { return r.Finish + r.Exchange() + r.Combine + r.Chain() }

// Exchange is how long updates are under way: a worker sends its own to every other member, one after the other, and
// gets at most so many at a time, each a question and an answer.
func (r Round) Exchange() time.Duration {
	others := r.Workers + r.Verifiers - 1
	bytes := float64(others) * float64(r.Update)
	if r.Sliced > 0 {
		bytes = float64(r.Sliced)
	}
	move := time.Duration(bytes / min(r.Link.Up, r.Link.Down) * float64(time.Second))
	turns := (others+link.AtOnce-1)/link.AtOnce - 1 // without the one that Chain counts
	return max(move, time.Duration(turns)*3*r.Link.Latency)
}

// Chain is how long what is decided on the chain takes, and its news. That all have committed and what all attest waits
// for half the time between two blocks, each; and six messages go one way, at their slowest: the last commitment and
// the news of its block, the question for an update and the answer, the attestation and the news of its block. That
// slices agree is one more decision, with four messages of its own.
func (r Round) Chain() time.Duration {
	decisions, messages := time.Duration(2), time.Duration(6)
	if r.Sliced > 0 {
		decisions, messages = 3, 10
	}
	return decisions*r.Block/2 + messages*r.Link.Slowest(r.Workers)
}

// Utilisation is the share of its time that a worker is in inner steps.
func (r Round) Utilisation() float64 { return r.Inner.Seconds() / (r.Inner + r.Overhead()).Seconds() }

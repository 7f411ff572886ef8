package transition

import (
	"iter"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Env is the block that a transition runs in.
//
// Draw draws verifiers for an attempt at a unit from the whole network, one after the other, each with a chance in
// proportion to its stake; only ID, Price, Stake and Owner are used. nil: the network has no accounts but the members.
//
// Attested is the digest of the software in the machine of a member, by an attestation that holds in this block; zero:
// its machine is not attested. nil: none is.
//
// Covers tells what the budget covers on top of the cost of the run in a state, and, if spared, on top of all rounds
// to come: more audits, of a unit at a price, as long as it answers true. nil: all.
type Env struct {
	Height          int64
	Last            int64        // for Tick: height of the tick before; 0: the block before
	Beacon          canon.Digest // of this block, unknown before it; zero if the block has none
	BudgetExhausted bool         // for Tick: the escrow does not cover another round, so that none may begin
	Paused          bool         // for Tick: no round may begin, whatever the budget
	Draw            func(id work.UnitID) iter.Seq[crew.Member]
	Attested        func(member string) canon.Digest
	Covers          func(p progress.Progress) (more func(unit uint32, price uint64, spared bool) bool)
	CancelRequested bool // for Tick: the consumer wants no further round; the run ends when every round is final
}

// Attests reports whether an attestation of the machine of a member holds in this block, with a measurement that the
// job lists.
func (e Env) Attests(a terms.Attested, member string) bool {
	return e.Attested != nil && len(a.Measurements) > 0 && a.Lists(e.Attested(member))
}

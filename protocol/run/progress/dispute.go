package progress

import (
	"github.com/starling-network/starling/protocol/run/work"
)

// A party that is silent in a dispute loses its stake. Its time for a move must not depend on the other party, which
// could be fast on purpose. It is moveFactor times the blocks that the party itself needs for a unit, and never less
// than the deadline of an audit, than leastMove, and than the audit deadline of the terms divided by termsMove. Where
// audits are fast, it is also at least moveFactor times their deadline, up to that of the terms.
const (
	// times what a party needs for a unit: it executes it again, traces a step, and may first have to finish another
	moveFactor = 4
	leastMove  = 24 // blocks
	termsMove  = 4  // the part of the terms' deadline of an audit that is the least time for a move
)

// MoveBlocks returns how many blocks the worker of a unit and a challenger have for a move in their dispute. Where
// several challengers dispute the unit, a challenger can prepare its moves while it waits, and has a quarter of its
// blocks, but at least leastMove.
func (p Progress) MoveBlocks(u work.Unit, challenger string) (worker, other int64) {
	blocks := func(needs int64) int64 {
		usual, most := p.AuditDeadline(), p.Terms.Deadlines.Audit
		return max(moveFactor*needs, usual, min(moveFactor*usual, most), most/termsMove, leastMove)
	}
	w, _ := p.Member(u.Worker)
	o, _ := p.Member(challenger)
	worker, other = blocks(max(u.Took, w.Pace())), blocks(o.Pace())
	if len(u.Challengers) > 1 {
		other = max(leastMove, other/moveFactor)
	}
	return worker, other
}

package progress

import (
	"github.com/starling-network/starling/protocol/run/work"
)

// In a dispute silence costs stake. So nobody's time for a move follows from what the other party did, who could be
// quick on purpose: it is some times what it needed itself, and never less than the deadline of an audit, than a share
// of what the terms give for one, and than leastMove. Some times the deadline is no more than what the terms
// give.
const (
	// times what a party needs for a unit: it executes it again, traces a step, and may first have to finish another
	movePatience = 4
	leastMove    = 24 // blocks
	termsMove    = 4  // the part of the terms' deadline of an audit that is the least time for a move
)

// MoveBlocks are the blocks that the worker of a unit and a challenger have for a move in their dispute. Who waits for
// the end of another dispute about the unit may prepare its moves meanwhile, and has less.
func (p Progress) MoveBlocks(u work.Unit, challenger string) (worker, other int64) {
	blocks := func(needs int64) int64 {
		usual, most := p.AuditDeadline(), p.Terms.Deadlines.Audit
		return max(movePatience*needs, usual, min(movePatience*usual, most), most/termsMove, leastMove)
	}
	w, _ := p.Member(u.Worker)
	o, _ := p.Member(challenger)
	worker, other = blocks(max(u.Took, w.Pace())), blocks(o.Pace())
	if len(u.Challengers) > 1 {
		other = max(leastMove, other/movePatience)
	}
	return worker, other
}

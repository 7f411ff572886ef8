package evidence

import (
	"fmt"

	"github.com/starling-network/starling/protocol/dispute"
)

// MaxValues is the room for values in a payload, besides proofs and digests.
const MaxValues = dispute.MaxLeaf - 256<<10

// MaxPart is the room of a part in a payload: for leaves of operands, what proves them, and the state before it. Leaves
// that lie less well than those of the tiles that are looked at for a division have the rest of a MaxLeaf.
const MaxPart = 768 << 10

// DigestBytes is the size of a digest in a list, as it is encoded.
const DigestBytes = 34

// MaxRefutation is the largest size of the payload of a refutation, in bytes.
const MaxRefutation = 3 << 19

// MaxCheck bounds what an order costs a chain: the check that the questions of a job can be answered, in the units of
// recompute.Fit, and ByteCost for each byte of its opening. A unit takes 7 to 40 nanoseconds.
const (
	MaxCheck = 48_000_000
	ByteCost = 20
)

// Budget counts the cost of a check up to a limit.
type Budget struct{ most, spent uint64 }

// Limit returns a budget of a number of units.
func Limit(most uint64) *Budget { return &Budget{most: min(most, MaxCheck)} }

// Spend counts units, and reports whether the sum is within the limit.
func (n *Budget) Spend(units uint64) bool {
	n.spent = min(n.spent+min(units, MaxCheck+1), n.most+1)
	return n.spent <= n.most
}

// Spent is the sum of the units that were counted, or the limit and one if that is more.
func (n *Budget) Spent() uint64 { return n.spent }

// ErrBudget is returned for a job that costs more to check. It wraps ErrTooLarge.
var ErrBudget = fmt.Errorf("%w: to check that all disputes about it can be decided costs more than a chain gives an "+
	"order", ErrTooLarge)

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

// MaxLooked bounds the elements that are counted to check that the questions of a job can be answered, which takes
// about a second.
const MaxLooked = 1 << 29

// Budget counts elements, up to MaxLooked and one.
type Budget uint64

// Spend counts elements, and reports whether the sum is within MaxLooked.
func (n *Budget) Spend(elements uint64) bool {
	*n = Budget(min(uint64(*n)+min(elements, MaxLooked), MaxLooked+1))
	return *n <= MaxLooked
}

// ErrBudget is returned for a job of which more than MaxLooked elements had to be looked at. It wraps ErrTooLarge.
var ErrBudget = fmt.Errorf("%w: more than %d elements of its operators and parameters are looked at", ErrTooLarge,
	MaxLooked)

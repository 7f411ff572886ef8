package registry

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/terms"
)

// Earning bounds the workers that registered without a stake. All that such a worker is paid becomes its stake, all its
// units are audited, and it works in one run at a time, in a place of its own kind. A conviction takes all that it
// holds. Package earning has the rules, and docs/adr/0151 the reasons; governed.
type Earning struct {
	Most   uint32 `cbor:"1,keyasint,omitempty"` // such workers at a time; 0: no worker registers without a stake
	Stake  uint64 `cbor:"2,keyasint,omitempty"` // uzen held that end it, together with Audits
	Audits uint32 `cbor:"3,keyasint,omitempty"` // audits passed in a row
	Rate   uint64 `cbor:"4,keyasint,omitempty"` // measured operations a second, at least, of a worker with a place
	// zero bits of the proof of a registration when no worker earns: fullBits more when Most do
	Bits       uint32 `cbor:"5,keyasint,omitempty"`
	IdleBlocks int64  `cbor:"6,keyasint,omitempty"` // without a passed audit, after which another may take its place
}

// Limits of Earning.
const (
	mostEarning = 1024
	mostBits    = 40
	fullBits    = 8
)

// DefaultEarning admits 64 workers at a time. Eight audits in a row are passed by accomplices alone in one of 65,536
// cases (audit.CollusionPPM).
func DefaultEarning() Earning {
	return Earning{Most: 64, Stake: 10_000_000, Audits: 8, Rate: 1_000_000_000, Bits: 20, IdleBlocks: 7200}
}

// Validate returns why the bounds cannot govern.
func (e Earning) Validate() error {
	switch {
	case e == Earning{}:
		return nil
	case e.Most > mostEarning:
		return fmt.Errorf("%w: %d workers that earn their stake, at most %d", ErrParams, e.Most, mostEarning)
	case e.Stake == 0 || e.Audits == 0 || e.Rate == 0:
		return fmt.Errorf("%w: a stake of %d uzen is earned in %d audits at %d operations a second: wanted some of each",
			ErrParams, e.Stake, e.Audits, e.Rate)
	case e.Bits > mostBits:
		return fmt.Errorf("%w: a proof of %d bits, at most %d", ErrParams, e.Bits, mostBits)
	case e.IdleBlocks < 1 || e.IdleBlocks > terms.MaxBlocks:
		return fmt.Errorf("%w: a worker that passes no audit in %d blocks", ErrParams, e.IdleBlocks)
	}
	return nil
}

// ProofBits is how many zero bits the proof of another registration needs while n workers earn their stake: the fewer
// places are left, the more work each takes.
func (e Earning) ProofBits(n int) uint32 {
	if e.Most == 0 {
		return mostBits + fullBits
	}
	return e.Bits + fullBits*uint32(min(n, int(e.Most)))/e.Most
}

package ledger

import (
	"context"
	"errors"

	"github.com/starling-network/starling/canon"
)

// Attested returns a function that reads the measurement of the machine of a member, for a rule about its run. Its
// errors are joined to failed.
func Attested(ctx context.Context, r Registry, failed *error) func(member string) canon.Digest {
	return func(member string) canon.Digest {
		p, err := r.Get(ctx, member)
		*failed = errors.Join(*failed, err)
		return p.Quote.Measurement
	}
}

package censorship

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
)

// Params are the penalty of a proposer that leaves out moves which more than two thirds of the power have seen.
type Params struct {
	Turns    uint32 `cbor:"1,keyasint"` // in succession, of one account
	Within   int64  `cbor:"2,keyasint"` // blocks after which a turn is forgotten
	SlashPPM uint32 `cbor:"3,keyasint"` // of the validator's stake
}

const maxWithin = 1_000_000

// DefaultParams are the parameters until governance changes them: a thousandth of the stake for six successive turns.
func DefaultParams() Params { return Params{Turns: 6, Within: 10_000, SlashPPM: 1_000} }

// Validate returns an error if governance may not set the parameters.
func (p Params) Validate() error {
	switch {
	case p.Turns < 2 || p.Turns > 1000:
		return fmt.Errorf("%d turns, wanted 2 to 1000", p.Turns)
	case p.Within < 100 || p.Within > maxWithin:
		return fmt.Errorf("turns within %d blocks, wanted 100 to %d", p.Within, maxWithin)
	case p.SlashPPM > 50_000:
		return fmt.Errorf("%d millionths of the stake, at most 50000", p.SlashPPM)
	}
	return nil
}

// Params are the parameters in force.
func (k *Keeper) Params(ctx context.Context) (Params, error) {
	p, err := k.params.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return DefaultParams(), nil
	}
	return p, err
}

// SetParams stores valid parameters.
func (k *Keeper) SetParams(ctx context.Context, p Params) error { return k.params.Set(ctx, p) }

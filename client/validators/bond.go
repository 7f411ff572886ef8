package validators

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cosmossdk.io/math"
	sdk "github.com/cosmos/cosmos-sdk/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"

	"github.com/starling-network/starling/client/query"
)

// Bond is what the operator of a validator has staked for it.
type Bond struct {
	Stake   uint64    // uzen, without those that leave
	Leaving []Leaving // in the order in which they come back
}

// Leaving is a part of a stake that comes back to the operator.
type Leaving struct {
	Amount uint64    `json:"amount_uzen"` // less if it is slashed before
	At     time.Time `json:"at"`
}

// Bond is that of the validator that an account operates; ErrNotFound if it operates none.
func (v Validators) Bond(ctx context.Context, account string) (b Bond, err error) {
	address, err := sdk.AccAddressFromBech32(account)
	if err != nil {
		return b, err
	}
	operator := sdk.ValAddress(address).String()
	q := stakingtypes.NewQueryClient(v.queries)
	if _, err := q.Validator(ctx, &stakingtypes.QueryValidatorRequest{ValidatorAddr: operator}); err != nil {
		return b, query.Known(err)
	}
	own, err := q.Delegation(ctx, &stakingtypes.QueryDelegationRequest{DelegatorAddr: account, ValidatorAddr: operator})
	switch err = query.Known(err); {
	case err == nil:
		if b.Stake, err = uzen(own.DelegationResponse.Balance.Amount); err != nil {
			return b, err
		}
	case !errors.Is(err, query.ErrNotFound):
		return b, err
	}
	leaving, err := q.UnbondingDelegation(ctx,
		&stakingtypes.QueryUnbondingDelegationRequest{DelegatorAddr: account, ValidatorAddr: operator})
	if err = query.Known(err); errors.Is(err, query.ErrNotFound) {
		return b, nil
	}
	if err != nil {
		return b, err
	}
	for _, e := range leaving.Unbond.Entries {
		amount, err := uzen(e.Balance)
		if err != nil {
			return b, err
		}
		b.Leaving = append(b.Leaving, Leaving{Amount: amount, At: e.CompletionTime})
	}
	return b, nil
}

func uzen(amount math.Int) (uint64, error) {
	if !amount.IsUint64() {
		return 0, fmt.Errorf("client: a stake of %s", amount)
	}
	return amount.Uint64(), nil
}

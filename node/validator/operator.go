package validator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"

	"github.com/starling-network/starling/chain/account/words"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/job/quantity"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/operator"
	"github.com/starling-network/starling/node/session"
)

// RestoreValidatorKeys puts the keys of a phrase in a folder, which Join then makes a validator's:
// identity.ErrSecretExists if it has keys, home.ErrPhrase if it is none. With digest the words are those of a folder
// whose operator is not the account of wallets.
func RestoreValidatorKeys(dir, phrase string, digest bool) (operator.Keys, error) {
	seed, err := home.ParsePhrase(phrase)
	if err == nil {
		err = identity.RestoreSecret(dir, words.Secret{Bytes: seed, Digest: digest})
	}
	if err != nil {
		return operator.Keys{}, err
	}
	return operator.ReadKeys(dir)
}

// operate submits messages of the operator of the validator in a folder, through that validator, which runs.
func operate(ctx context.Context, dir string,
	messages func(*client.Client, identity.Keys) ([]sdk.Msg, error)) (r transaction.Result, err error) {
	f, err := keystore.ReadValidator(dir)
	if err != nil {
		return r, err
	}
	secret, err := identity.ReadSecret(dir) // a full node has none
	if err != nil {
		return r, err
	}
	keys := identity.KeysOf(secret)
	err = session.TransactAs(ctx, wallet.NewKey(keys.Operator.Key), "http://"+f.RPC,
		func(ctx context.Context, c *client.Client) error {
			if err := awaitRecent(ctx, c, 2*time.Duration(f.BlockMS)*time.Millisecond); err != nil {
				return err
			}
			msgs, err := messages(c, keys)
			if err != nil {
				return err
			}
			r, err = c.Submit(ctx, msgs...)
			return err
		})
	return r, err
}

// awaitRecent returns when the validator has seen a block that is not old and takes part in consensus: a transaction
// submitted earlier may be too late for the others, and a validator that still fetches blocks passes none on. The time
// of a block is that of the votes for the one before.
func awaitRecent(ctx context.Context, c *client.Client, blockTime time.Duration) error {
	const slack = 2 * time.Second
	blocks, err := c.Blocks(ctx)
	if err != nil {
		return err
	}
	height := int64(0)
	for b := range blocks {
		if height = b.Height; time.Since(b.Time) >= blockTime+slack {
			continue
		}
		switch head, err := c.Ledger.Head(ctx); {
		case err != nil:
			return err
		case !head.CatchingUp:
			return nil
		}
	}
	return fmt.Errorf("%w: it is at height %d", keystore.ErrBehind, height)
}

// Bond stakes coins of the operator, in uzen, for the validator in a folder: it votes from the second block after,
// with one unit of voting power for each ZEN. The new stake is added to its existing stake.
func Bond(ctx context.Context, dir string, stake uint64) (transaction.Result, error) {
	return operate(ctx, dir, func(c *client.Client, k identity.Keys) ([]sdk.Msg, error) {
		exists, err := c.Validators.Operates(ctx, c.Address())
		if err != nil {
			return nil, err
		}
		if exists {
			return []sdk.Msg{k.Add(stake)}, nil
		}
		return k.Bond(filepath.Base(filepath.Clean(dir)), stake)
	})
}

// Errors of Unbond.
var (
	ErrNoStake = errors.New("validator: the operator has not staked so much")
	ErrVotes   = errors.New("validator: the chain would stop without this stake")
)

// Unbonded is a stake that leaves a validator.
type Unbonded struct {
	Height int64     `json:"height"`
	Hash   string    `json:"hash"`
	Amount uint64    `json:"amount_uzen"`
	Left   uint64    `json:"stake_uzen"` // that stays
	At     time.Time `json:"at"`         // when the amount comes back
}

// Unbond takes uzen from the stake of the validator in a folder; 0: all of it. It returns an error that wraps ErrVotes
// if the others who signed the latest block would not have more than two thirds of the votes.
func Unbond(ctx context.Context, dir string, amount uint64) (u Unbonded, err error) {
	r, err := operate(ctx, dir, func(c *client.Client, k identity.Keys) ([]sdk.Msg, error) {
		b, err := c.Validators.Bond(ctx, c.Address())
		switch {
		case errors.Is(err, client.ErrNotFound) || err == nil && b.Stake == 0:
			return nil, fmt.Errorf("%w: %s staked nothing", ErrNoStake, c.Address())
		case err != nil:
			return nil, err
		case amount > b.Stake:
			return nil, fmt.Errorf("%w: %s ZEN of %s", ErrNoStake, quantity.Amount(amount), quantity.Amount(b.Stake))
		}
		u.Amount = cmp.Or(amount, b.Stake)
		u.Left = b.Stake - u.Amount
		return []sdk.Msg{k.Remove(u.Amount)}, othersDecide(ctx, c, u.Amount)
	})
	if err != nil {
		return u, err
	}
	u.Height, u.Hash = r.Height, r.Hash
	var response stakingtypes.MsgUndelegateResponse
	err = r.Response(&response)
	u.At = response.CompletionTime
	return u, err
}

// othersDecide returns an error that wraps ErrVotes if, without uzen of the validator that is asked, those who signed
// the latest block had no more than two thirds of the votes.
func othersDecide(ctx context.Context, c *client.Client, uzen uint64) error {
	head, err := c.Ledger.Head(ctx)
	if err != nil {
		return err
	}
	all, err := c.Validators.Voting(ctx, head.Height)
	if err != nil {
		return err
	}
	var signed, total int64
	for _, v := range all {
		if v.Address == head.Address { // the part of a vote is lost, too
			v.Power = max(0, v.Power-int64((uzen+sdk.DefaultPowerReduction.Uint64()-1)/sdk.DefaultPowerReduction.Uint64()))
		}
		if total += v.Power; v.Signed || v.Address == head.Address {
			signed += v.Power
		}
	}
	if 3*signed <= 2*total {
		return fmt.Errorf("%w: those who sign would have %d of %d votes", ErrVotes, signed, total)
	}
	return nil
}

// Unjail gives the validator in a folder the vote back that it lost over being away.
func Unjail(ctx context.Context, dir string) (transaction.Result, error) {
	return operate(ctx, dir, func(_ *client.Client, k identity.Keys) ([]sdk.Msg, error) {
		return []sdk.Msg{k.Unjail()}, nil
	})
}

package validator

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/account/words"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client"
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

// Unjail gives the validator in a folder the vote back that it lost over being away.
func Unjail(ctx context.Context, dir string) (transaction.Result, error) {
	return operate(ctx, dir, func(_ *client.Client, k identity.Keys) ([]sdk.Msg, error) {
		return []sdk.Msg{k.Unjail()}, nil
	})
}

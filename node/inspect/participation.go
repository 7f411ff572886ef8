package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/validators"
	"github.com/starling-network/starling/node/operator"
	"github.com/starling-network/starling/node/session"
)

// BlockParticipation is what a validator did about one block.
type BlockParticipation struct {
	Height   int64  `json:"height"`
	Signed   bool   `json:"signed"`   // its vote is in the commit
	Proposed bool   `json:"proposed"` // the block is its own
	Power    int64  `json:"power"`    // 0: it was not to vote
	Block    string `json:"block"`    // hash
}

// ValidatorParticipation are those of the validator of a folder about the latest blocks, the latest first. There are
// fewer than so many where older blocks are not kept.
func ValidatorParticipation(ctx context.Context, dir string, blocks int) ([]BlockParticipation, error) {
	c, head, err := session.DialLocal(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	duties := []BlockParticipation{}
	for height := head.Height; height > 0 && len(duties) < blocks; height-- {
		r, err := c.Ledger.Record(ctx, height)
		if errors.Is(err, client.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		d := BlockParticipation{Height: height, Proposed: r.Proposer == head.Address, Block: r.Hash}
		all, err := c.Validators.Voting(ctx, height)
		if err != nil {
			return nil, err
		}
		for _, v := range all {
			if v.Address == head.Address {
				d.Power, d.Signed = v.Power, v.Signed
			}
		}
		duties = append(duties, d)
	}
	return duties, nil
}

// ValidatorEarnings are the fees of transactions that the validator of a folder has earned and not withdrawn, in
// uzen. Pay for work goes to workers and verifiers.
type ValidatorEarnings struct {
	Account    string `json:"account"` // of its operator
	Operator   string `json:"operator"`
	Balance    uint64 `json:"balance_uzen"` // of the account
	Rewards    uint64 `json:"rewards_uzen"`
	Commission uint64 `json:"commission_uzen"`

	Stake   uint64               `json:"stake_uzen"` // without what leaves
	Leaving []validators.Leaving `json:"leaving"`
}

// AskValidatorEarnings asks the chain through the validator of a folder. The error wraps ErrNoBond if it staked nothing
// yet.
func AskValidatorEarnings(ctx context.Context, dir string) (*ValidatorEarnings, error) {
	c, _, err := session.DialLocal(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	keys, err := operator.ReadKeys(dir)
	if err != nil {
		return nil, err
	}
	e := &ValidatorEarnings{Account: keys.Operator, Leaving: []validators.Leaving{}}
	r, err := c.Validators.Rewards(ctx, e.Account)
	if errors.Is(err, client.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoBond, e.Account)
	}
	if err != nil {
		return nil, err
	}
	bond, err := c.Validators.Bond(ctx, e.Account)
	if err != nil {
		return nil, err
	}
	e.Stake, e.Leaving = bond.Stake, append(e.Leaving, bond.Leaving...)
	e.Operator, e.Rewards, e.Commission = r.Operator, r.Rewards, r.Commission
	e.Balance, err = c.Coins.Balance(ctx, e.Account)
	return e, err
}

// ErrNoBond is returned for the earnings of a validator that the chain does not know.
var ErrNoBond = errors.New("the account operates no validator")

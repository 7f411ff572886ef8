package node

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/starling-network/starling/client"
)

// Duty is what a validator did about one block.
type Duty struct {
	Height   int64  `json:"height"`
	Signed   bool   `json:"signed"`   // its vote is in the commit
	Proposed bool   `json:"proposed"` // the block is its own
	Power    int64  `json:"power"`    // 0: it was not to vote
	Block    string `json:"block"`    // hash
}

// ValidatorDuties are those of the validator of a folder about the latest blocks, the latest first. There are fewer than so many
// where older blocks are not kept.
func ValidatorDuties(ctx context.Context, dir string, blocks int) ([]Duty, error) {
	c, head, err := askOwn(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	duties := []Duty{}
	for height := head.Height; height > 0 && len(duties) < blocks; height-- {
		r, err := c.Record(ctx, height)
		if errors.Is(err, client.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		d := Duty{Height: height, Proposed: r.Proposer == head.Address, Block: r.Hash}
		all, err := c.Validators(ctx, height)
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

// askOwn connects to the validator of a folder, for questions only. The caller closes the client.
func askOwn(ctx context.Context, dir string) (*client.Client, client.Head, error) {
	f, err := readValidator(dir)
	if err != nil {
		return nil, client.Head{}, err
	}
	stopped := new(client.Stopped)
	if readJSON(filepath.Join(dir, fileStopped), stopped) == nil {
		return nil, client.Head{}, stopped
	}
	return ask(ctx, "http://"+f.RPC)
}

// ValidatorEarnings are what the validator of a folder has earned of the fees of transactions, in uzen, and not withdrawn. What
// is paid for work goes to workers and verifiers.
type ValidatorEarnings struct {
	Account    string `json:"account"` // of its operator
	Operator   string `json:"operator"`
	Balance    uint64 `json:"balance_uzen"` // of the account
	Rewards    uint64 `json:"rewards_uzen"`
	Commission uint64 `json:"commission_uzen"`
}

// AskValidatorEarnings asks the chain through the validator of a folder. The error wraps ErrNoBond if it staked nothing yet.
func AskValidatorEarnings(ctx context.Context, dir string) (*ValidatorEarnings, error) {
	c, _, err := askOwn(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	keys, err := ReadValidatorKeys(dir)
	if err != nil {
		return nil, err
	}
	e := &ValidatorEarnings{Account: keys.Operator}
	r, err := c.Rewards(ctx, e.Account)
	if errors.Is(err, client.ErrNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNoBond, e.Account)
	}
	if err != nil {
		return nil, err
	}
	e.Operator, e.Rewards, e.Commission = r.Operator, r.Rewards, r.Commission
	e.Balance, err = c.Balance(ctx, e.Account)
	return e, err
}

// ErrNoBond is returned for the earnings of a validator that the chain does not know.
var ErrNoBond = errors.New("the account operates no validator")

// Package validators reads who makes the blocks of a chain: their power and votes, the votes that they missed, their
// peers and their rewards.
package validators

import (
	"context"
	"errors"
	"fmt"
	"time"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
	sdk "github.com/cosmos/cosmos-sdk/types"
	sdkquery "github.com/cosmos/cosmos-sdk/types/query"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
	stakingtypes "github.com/cosmos/cosmos-sdk/x/staking/types"
	"google.golang.org/grpc"

	"github.com/starling-network/starling/client/query"
)

// Validators answers questions about those who make blocks.
type Validators struct {
	rpc     rpcclient.Client
	queries grpc.ClientConnInterface
}

// New returns what asks over a connection to a validator, which also answers queries of state.
func New(rpc rpcclient.Client, queries grpc.ClientConnInterface) Validators {
	return Validators{rpc, queries}
}

// Validator is one of those who vote.
type Validator struct {
	Address string `json:"address"` // of its votes: hexadecimal
	Power   int64  `json:"power"`
	Signed  bool   `json:"signed"` // its vote is in the commit of the block
}

// Validators are those who vote on the block at a height, with whether they did.
func (v Validators) Voting(ctx context.Context, height int64) ([]Validator, error) {
	signed := map[string]bool{}
	if commit, err := v.rpc.Commit(ctx, &height); err == nil && commit.Commit != nil {
		for _, s := range commit.Commit.Signatures {
			if len(s.Signature) > 0 {
				signed[s.ValidatorAddress.String()] = true
			}
		}
	}
	var all []Validator
	for page, most := 1, 100; ; page++ {
		r, err := v.rpc.Validators(ctx, &height, &page, &most)
		if err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		for _, v := range r.Validators {
			all = append(all, Validator{Address: v.Address.String(), Power: v.VotingPower, Signed: signed[v.Address.String()]})
		}
		if len(all) >= r.Total || len(r.Validators) == 0 {
			return all, nil
		}
	}
}

// Signing is how a validator kept up with its duty to vote.
type Signing struct {
	Missed      int64     // blocks of the window that it did not sign
	Window      int64     // blocks
	JailedUntil time.Time // zero: never jailed
	Tombstoned  bool      // it signed two votes for one step, and never votes again
}

// Signing is the record of the validator with a consensus address, starlingvalcons1...
func (v Validators) Signing(ctx context.Context, consensus string) (Signing, error) {
	q := slashingtypes.NewQueryClient(v.queries)
	info, err := q.SigningInfo(ctx, &slashingtypes.QuerySigningInfoRequest{ConsAddress: consensus})
	if err != nil {
		return Signing{}, query.Known(err)
	}
	params, err := q.Params(ctx, &slashingtypes.QueryParamsRequest{})
	if err != nil {
		return Signing{}, query.Known(err)
	}
	i := info.ValSigningInfo
	s := Signing{Missed: i.MissedBlocksCounter, Window: params.Params.SignedBlocksWindow, Tombstoned: i.Tombstoned}
	if i.JailedUntil.Unix() > 0 {
		s.JailedUntil = i.JailedUntil
	}
	return s, nil
}

// Missed is how many blocks of the window each validator did not sign, by the address of its votes in hexadecimal, and
// how many blocks the window has.
func (v Validators) Missed(ctx context.Context) (by map[string]int64, window int64, err error) {
	q := slashingtypes.NewQueryClient(v.queries)
	params, err := q.Params(ctx, &slashingtypes.QueryParamsRequest{})
	if err != nil {
		return nil, 0, query.Known(err)
	}
	by = map[string]int64{}
	for page := (&sdkquery.PageRequest{Limit: 100}); ; {
		r, err := q.SigningInfos(ctx, &slashingtypes.QuerySigningInfosRequest{Pagination: page})
		if err != nil {
			return nil, 0, query.Known(err)
		}
		for _, i := range r.Info {
			address, err := sdk.ConsAddressFromBech32(i.Address)
			if err != nil {
				return nil, 0, fmt.Errorf("client: %w", err)
			}
			by[fmt.Sprintf("%X", address.Bytes())] = i.MissedBlocksCounter
		}
		if r.Pagination == nil || len(r.Pagination.NextKey) == 0 {
			return by, params.Params.SignedBlocksWindow, nil
		}
		page = &sdkquery.PageRequest{Key: r.Pagination.NextKey, Limit: 100}
	}
}

// Operates reports whether an account operates a validator.
func (v Validators) Operates(ctx context.Context, account string) (bool, error) {
	address, err := sdk.AccAddressFromBech32(account)
	if err != nil {
		return false, err
	}
	_, err = stakingtypes.NewQueryClient(v.queries).Validator(ctx,
		&stakingtypes.QueryValidatorRequest{ValidatorAddr: sdk.ValAddress(address).String()})
	if err = query.Known(err); errors.Is(err, query.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

package client

import (
	"context"
	"fmt"
	"time"

	rpcclient "github.com/cometbft/cometbft/rpc/client"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/query"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	slashingtypes "github.com/cosmos/cosmos-sdk/x/slashing/types"
)

// Head is where a validator's copy of the chain stands, and what the validator is.
type Head struct {
	ChainID    string
	Height     int64     // of the last block whose state can be asked for
	Time       time.Time // of the last block, as the validators agreed on it: that one, or one that is being executed
	CatchingUp bool      // the validator is behind the others
	NodeID     string
	Power      int64  // of the validator in consensus; 0: it does not vote
	Address    string // of its votes: hexadecimal
	Consensus  string // the same address in the form of the chain: starlingvalcons1...
	App        string // version of the application: chain/app.Version of its binary
	Peers      int    // other validators' processes that it is connected to
}

// Head asks the validator where it stands.
func (c *Client) Head(ctx context.Context) (Head, error) {
	s, err := c.rpc.Status(ctx)
	if err != nil {
		return Head{}, fmt.Errorf("client: %w", err)
	}
	info, err := c.rpc.ABCIInfo(ctx)
	if err != nil {
		return Head{}, fmt.Errorf("client: %w", err)
	}
	h := Head{
		ChainID: s.NodeInfo.Network, Height: min(s.SyncInfo.LatestBlockHeight, info.Response.LastBlockHeight),
		Time: s.SyncInfo.LatestBlockTime, CatchingUp: s.SyncInfo.CatchingUp,
		NodeID: string(s.NodeInfo.ID()), Power: s.ValidatorInfo.VotingPower, Address: s.ValidatorInfo.Address.String(),
		Consensus: sdk.ConsAddress(s.ValidatorInfo.Address).String(), App: info.Response.Version,
	}
	if n, ok := c.rpc.(rpcclient.NetworkClient); ok {
		if net, err := n.NetInfo(ctx); err == nil {
			h.Peers = net.NPeers
		}
	}
	return h, nil
}

// Validator is one of those who vote.
type Validator struct {
	Address string `json:"address"` // of its votes: hexadecimal
	Power   int64  `json:"power"`
	Signed  bool   `json:"signed"` // its vote is in the commit of the block
}

// Validators are those who vote on the block at a height, with whether they did.
func (c *Client) Validators(ctx context.Context, height int64) ([]Validator, error) {
	signed := map[string]bool{}
	if commit, err := c.rpc.Commit(ctx, &height); err == nil && commit.Commit != nil {
		for _, s := range commit.Commit.Signatures {
			if len(s.Signature) > 0 {
				signed[s.ValidatorAddress.String()] = true
			}
		}
	}
	var all []Validator
	for page, most := 1, 100; ; page++ {
		r, err := c.rpc.Validators(ctx, &height, &page, &most)
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
func (c *Client) Signing(ctx context.Context, consensus string) (Signing, error) {
	q := slashingtypes.NewQueryClient(c.conn)
	info, err := q.SigningInfo(ctx, &slashingtypes.QuerySigningInfoRequest{ConsAddress: consensus})
	if err != nil {
		return Signing{}, known(err)
	}
	params, err := q.Params(ctx, &slashingtypes.QueryParamsRequest{})
	if err != nil {
		return Signing{}, known(err)
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
func (c *Client) Missed(ctx context.Context) (by map[string]int64, window int64, err error) {
	q := slashingtypes.NewQueryClient(c.conn)
	params, err := q.Params(ctx, &slashingtypes.QueryParamsRequest{})
	if err != nil {
		return nil, 0, known(err)
	}
	by = map[string]int64{}
	for page := (&query.PageRequest{Limit: 100}); ; {
		r, err := q.SigningInfos(ctx, &slashingtypes.QuerySigningInfosRequest{Pagination: page})
		if err != nil {
			return nil, 0, known(err)
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
		page = &query.PageRequest{Key: r.Pagination.NextKey, Limit: 100}
	}
}

// At returns a client that reads the state after the block at a height. It is for queries only, and needs no Close.
func (c *Client) At(height int64) *Client {
	at := New(c.rpc, c.signer)
	at.conn = at.conn.WithHeight(height)
	return at
}

// ModuleAddress is the account that holds the coins of a module of the chain, such as "market" with all budgets.
func ModuleAddress(module string) string { return authtypes.NewModuleAddress(module).String() }

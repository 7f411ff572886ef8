package app

import (
	"crypto/sha256"

	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/app/room"
)

// proposals makes and checks proposals of blocks.
type proposals struct{ *App }

// prepare proposes the duties first, in at most three quarters of the bytes and the gas of the block, then the
// transactions of the pool in its order, as long as there is room in the block. If a transaction does not fit, later
// transactions of its account wait too.
func (a proposals) prepare(ctx sdk.Context,
	req *abci.RequestPrepareProposal) (*abci.ResponsePrepareProposal, error) {
	price, err := feesOf(a.App).price(ctx)
	if err != nil {
		return nil, err
	}
	block := room.New(ctx)
	front := block.Front(req.MaxTxBytes)
	txs := a.lane.First(func(d room.Declared) bool {
		if !front.Fits(d) || block.Take(d, d.Pays(price)) != nil {
			return false
		}
		front.Take(d)
		return true
	}, a.sequence(ctx))
	taken := map[[sha256.Size]byte]bool{}
	for _, tx := range txs {
		taken[sha256.Sum256(tx)] = true
	}
	left := map[string]bool{} // accounts with a transaction that waits for another block
	for _, tx := range req.Txs {
		if len(taken) > 0 && taken[sha256.Sum256(tx)] {
			continue
		}
		d := a.declared(tx)
		if d.Account != "" && left[d.Account] {
			continue
		}
		if block.Take(d, d.Pays(price)) != nil {
			left[d.Account] = true
			continue
		}
		txs = append(txs, tx)
	}
	of := *req
	of.Txs = txs
	return keepersOf(a.App).beacon.PrepareProposal(ctx, &of)
}

// sequence returns the sequence of an account in the state before the block.
func (a proposals) sequence(ctx sdk.Context) func(account string) uint64 {
	return func(account string) uint64 {
		address, err := sdk.AccAddressFromBech32(account)
		if err != nil {
			return 0
		}
		if known := keepersOf(a.App).accounts.GetAccount(ctx, address); known != nil {
			return known.GetSequence()
		}
		return 0
	}
}

// process refuses a block whose transactions take more gas than allowed, or whose free transactions take more than
// their part: a proposer cannot fill its blocks with free transactions.
func (a proposals) process(ctx sdk.Context,
	req *abci.RequestProcessProposal) (*abci.ResponseProcessProposal, error) {
	r, err := keepersOf(a.App).beacon.ProcessProposal(ctx, req)
	if err != nil || r.Status != abci.ResponseProcessProposal_ACCEPT {
		return r, err
	}
	price, err := feesOf(a.App).price(ctx)
	if err != nil {
		return nil, err
	}
	block := room.New(ctx)
	for _, tx := range keepersOf(a.App).beacon.Transactions(ctx, req.Height, req.Txs) {
		d := a.declared(tx)
		if err := block.Take(d, d.Pays(price)); err != nil {
			a.Logger().Error("a proposal is refused", "height", req.Height, "why", err)
			return &abci.ResponseProcessProposal{Status: abci.ResponseProcessProposal_REJECT}, nil
		}
	}
	return r, nil
}

// declared reads a transaction. Bytes that are no transaction declare no gas, so that a block has no room for them.
func (a *App) declared(transaction []byte) room.Declared {
	if fewMessages(transaction) != nil {
		return room.Declared{Bytes: int64(len(transaction))}
	}
	tx, err := a.Tx.TxDecoder()(transaction)
	if err != nil {
		return room.Declared{Bytes: int64(len(transaction))}
	}
	return room.Declare(tx, len(transaction))
}

package module

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	chainpayout "github.com/starling-network/starling/chain/x/payout"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/payout"
)

// Payout sends the messages and the queries of x/payout: coins that are paid out on other chains.
type Payout struct{ account Account }

// Name sets how the account is paid out; signature is that of the owner of the address under payout.Text.
func (p Payout) Name(ctx context.Context, to payout.Payee, signature []byte) error {
	return send(ctx, p.account, &payoutpb.MsgSetPayout{Sender: p.account.Address(), Address: to.Bytes(),
		Signature: signature, EvmChain: to.EVM, Keep: to.Keep})
}

// Unset ends the payouts of the account.
func (p Payout) Unset(ctx context.Context) error {
	return send(ctx, p.account, &payoutpb.MsgSetPayout{Sender: p.account.Address()})
}

// Withdraw moves base units of a denomination to the total that the address of the account may claim on a chain.
func (p Payout) Withdraw(ctx context.Context, evm uint64, denom string, amount fmt.Stringer) error {
	return send(ctx, p.account, &payoutpb.MsgWithdraw{Sender: p.account.Address(), EvmChain: evm, Denom: denom,
		Amount: amount.String()})
}

// Sign sends the signatures of a member of the set for the messages of a turn.
func (p Payout) Sign(ctx context.Context, validator []byte, turn uint64, signatures [][]byte) error {
	return send(ctx, p.account, &payoutpb.MsgSign{Sender: p.account.Address(), Validator: validator, Turn: turn,
		Signatures: signatures})
}

// Turn is the messages that the set is signing; query.ErrNotFound if there are none.
func (p Payout) Turn(ctx context.Context) (payout.Turn, error) {
	r, err := payoutpb.NewQueryClient(p.account).Turn(ctx, &payoutpb.QueryTurnRequest{})
	return query.One[payout.Turn](r.GetTurn(), err)
}

// Params are the parameters as messages have them.
func (p Payout) Params(ctx context.Context) (payoutpb.Params, error) {
	r, err := payoutpb.NewQueryClient(p.account).Params(ctx, &payoutpb.QueryParamsRequest{})
	if err != nil {
		return payoutpb.Params{}, query.Known(err)
	}
	return r.Params, nil
}

// Rules are the parameters.
func (p Payout) Rules(ctx context.Context) (payout.Params, error) {
	m, err := p.Params(ctx)
	if err != nil {
		return payout.Params{}, err
	}
	return chainpayout.ToParams(m)
}

// Payee is how an account is paid out; query.ErrNotFound if it is not.
func (p Payout) Payee(ctx context.Context, account string) (payout.Payee, error) {
	r, err := payoutpb.NewQueryClient(p.account).Payee(ctx, &payoutpb.QueryPayeeRequest{Account: account})
	return query.One[payout.Payee](r.GetPayee(), err)
}

// State is that of the bridge of a chain; query.ErrNotFound before its first withdrawal or deposit.
func (p Payout) State(ctx context.Context, evm uint64) (payout.State, error) {
	r, err := payoutpb.NewQueryClient(p.account).Chain(ctx, &payoutpb.QueryChainRequest{EvmChain: evm})
	return query.One[payout.State](r.GetState(), err)
}

// Set is the validators whose signatures count; query.ErrNotFound before there is one.
func (p Payout) Set(ctx context.Context) (payout.Set, error) {
	r, err := payoutpb.NewQueryClient(p.account).Set(ctx, &payoutpb.QuerySetRequest{})
	return query.One[payout.Set](r.GetSet(), err)
}

// Handovers are the next of the signed sets after a number.
func (p Payout) Handovers(ctx context.Context, after uint64) ([]payout.Handover, error) {
	r, err := payoutpb.NewQueryClient(p.account).Handovers(ctx, &payoutpb.QueryHandoversRequest{After: after})
	return query.List[payout.Handover](r.GetHandovers(), err)
}

// Entries are the totals of all addresses on a chain.
func (p Payout) Entries(ctx context.Context, evm uint64) (all []payout.Entry, err error) {
	for next := (&payoutpb.QueryEntriesRequest{EvmChain: evm}); ; {
		r, err := payoutpb.NewQueryClient(p.account).Entries(ctx, next)
		page, err := query.List[payout.Entry](r.GetEntries(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		next.After = page[len(page)-1].Key()
	}
}

// EntriesOf are the totals of one address on a chain, one for each token.
func (p Payout) EntriesOf(ctx context.Context, evm uint64, a payout.Address) ([]payout.Entry, error) {
	r, err := payoutpb.NewQueryClient(p.account).Entries(ctx, &payoutpb.QueryEntriesRequest{EvmChain: evm, After: a[:],
		Limit: payout.MaxTokens + 1}) // those of an address follow the address
	list, err := query.List[payout.Entry](r.GetEntries(), err)
	return slices.DeleteFunc(list, func(e payout.Entry) bool { return e.Account != a }), err
}

// Claims are what an address may claim on a chain by the latest signed root, and the epoch of that root; 0: there is
// none.
func (p Payout) Claims(ctx context.Context, evm uint64, a payout.Address) (uint64, []payout.Proof, error) {
	r, err := payoutpb.NewQueryClient(p.account).Claims(ctx, &payoutpb.QueryClaimsRequest{EvmChain: evm,
		Address: a.String()})
	list, err := query.List[payout.Proof](r.GetClaims(), err)
	return r.GetEpoch(), list, cmp.Or(err, payout.Check(list...))
}

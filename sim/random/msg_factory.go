package random

import (
	"context"
	"errors"

	"github.com/cosmos/cosmos-sdk/testutil/simsx"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/sim/random/ask"
	"github.com/starling-network/starling/sim/random/draw"
)

// msgFactory is an account in the middle of a block, which makes one message, or none.
type msgFactory struct {
	*client.Client // of the account: it reads the state as it is, and hands over what it would send
	draw.Source
	ctx  sdk.Context
	data *simsx.ChainDataSource
	conn ask.Connection
	me   simsx.SimAccount
	said sdk.Msg
}

// Create implements simsx.SimMsgFactoryX.
func (s saying) Create() simsx.FactoryMethod {
	return func(ctx context.Context, data *simsx.ChainDataSource, report simsx.SimulationReporter) ([]simsx.SimAccount,
		sdk.Msg) {
		now := sdk.UnwrapSDKContext(ctx)
		x := &msgFactory{Source: draw.Source{Rand: data.Rand().Rand}, ctx: now, data: data,
			conn: ask.Connection{App: s.app, Ctx: now}}
		x.is(data.AnyAccount(report))
		if err := s.say(x); err != nil && !errors.Is(err, client.ErrNotFound) {
			panic(err) // a query of the program itself fails
		}
		if x.said == nil {
			report.Skip("nothing to say")
		}
		return []simsx.SimAccount{x.me}, x.said
	}
}

// is makes an account the one that speaks.
func (x *msgFactory) is(a simsx.SimAccount) {
	x.me = a
	x.Client = client.NewWithSubmitter(x.conn, wallet.NewKey(a.PrivKey.Bytes()),
		func(_ context.Context, msgs ...sdk.Msg) (transaction.Result, error) {
			x.said = msgs[0]
			return transaction.Result{}, nil
		})
}

// as makes the account with an address the one that speaks, and reports whether there is one.
func (x *msgFactory) as(address string) bool {
	if !x.data.HasAccount(address) {
		return false // that of a module
	}
	x.is(x.data.GetAccount(nil, address))
	return true
}

// anyAccount is the address of an account that is drawn.
func (x *msgFactory) anyAccount() string {
	return x.data.AccountAt(nil, x.Intn(x.data.AccountsCount())).AddressBech32
}

// spend draws an amount that the account has, in uzen, most of the time a small part of it, and 0 if it has nothing.
func (x *msgFactory) spend() uint64 {
	has := x.me.LiquidBalance().AmountOf(adapter.Denom)
	if !has.IsPositive() {
		return 0
	}
	n := 1 + x.Below(has.Uint64())>>x.Intn(20)
	x.me.LiquidBalance().BlockAmount(adapter.Coins(n)[0])
	return n
}

// run draws an active run; none if there is none.
func (x *msgFactory) run() (run.State, error) {
	jobs, err := x.Training.Runs(x.ctx, true)
	if err != nil || len(jobs) == 0 {
		return run.State{}, err
	}
	return x.Training.Run(x.ctx, draw.Pick(x.Source, jobs))
}

// untilSaid goes through a list in any order, until something is said.
func untilSaid[T any](x *msgFactory, list []T, say func(T) error) error {
	for _, one := range draw.Mixed(x.Source, list) {
		if err := say(one); err != nil || x.said != nil {
			return err
		}
	}
	return nil
}

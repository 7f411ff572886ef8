package random

import (
	"context"
	"errors"
	"math/rand"
	"time"

	"github.com/cosmos/cosmos-sdk/baseapp"
	cryptotypes "github.com/cosmos/cosmos-sdk/crypto/types"
	"github.com/cosmos/cosmos-sdk/testutil/sims"
	"github.com/cosmos/cosmos-sdk/testutil/simsx"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/types/module"
	simtypes "github.com/cosmos/cosmos-sdk/types/simulation"
	govv1 "github.com/cosmos/cosmos-sdk/x/gov/types/v1"
	"github.com/cosmos/cosmos-sdk/x/simulation"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/sim/random/draw"
)

// operations are those of all modules, with their weights, and the proposals that governance makes of their parameters.
func (p *player) operations() simulation.WeightedOperations {
	weights := simsx.ParamWeightSource(simtypes.AppParams{})
	proposals, older := simsx.NewUniqueTypeRegistry(), simsx.NewWeightedFactoryMethods()
	for _, m := range p.sim.Manager.Modules {
		switch m := m.(type) {
		case simsx.HasProposalMsgsX:
			m.ProposalMsgsX(weights, proposals)
		case simsx.HasLegacyProposalMsgs:
			for _, w := range m.ProposalMsgs(module.SimulationState{}) {
				older.Add(uint32(w.DefaultWeight()),
					func(ctx context.Context, data *simsx.ChainDataSource, _ simsx.SimulationReporter) ([]simsx.SimAccount, sdk.Msg) {
						return nil, w.MsgSimulatorFn()(data.Rand().Rand, sdk.UnwrapSDKContext(ctx), data.AllAccounts())
					})
			}
		}
	}
	all := &gathered{player: p}
	for _, m := range p.sim.Manager.Modules {
		switch m := m.(type) {
		case simsx.HasWeightedOperationsX:
			m.WeightedOperationsX(weights, all)
		case simsx.HasWeightedOperationsXWithProposals:
			m.WeightedOperationsX(weights, all, simsx.AppendIterators(older.Iterator(), proposals.Iterator()), nil)
		}
	}
	all.Add(300, saying{app: p.app, of: &govv1.MsgVote{}, say: (*msgFactory).agree})
	return all.list
}

// gathered is a simsx.Registry that makes each message in the goroutine of the engine. The SDK's own makes it in
// another, which it leaves behind, still drawing from the seed, when there is nothing to say: what follows would depend
// on the scheduler.
type gathered struct {
	*player
	list simulation.WeightedOperations
}

// Add implements simsx.Registry.
func (r *gathered) Add(weight uint32, f simsx.SimMsgFactoryX) {
	if weight > 0 {
		r.list = append(r.list, simulation.NewWeightedOperation(int(weight), r.operation(f)))
	}
}

// later are the operations that one puts off.
type later struct {
	*player
	ctx  sdk.Context
	list []simtypes.FutureOperation
}

// blockTime is how much later a block of the engine is than the one before, about.
const blockTime = 7500 * time.Second

// Add implements simsx.FutureOpsRegistry. The engine forgets operations put off to a time, not to a height.
func (l *later) Add(at time.Time, f simsx.SimMsgFactoryX) {
	height := l.ctx.BlockHeight() + 1 + int64(at.Sub(l.ctx.BlockTime())/blockTime)
	l.list = append(l.list, simtypes.FutureOperation{BlockHeight: int(height), Op: l.operation(f)})
}

// operation lets an account of a factory's choice say what the factory makes.
func (p *player) operation(f simsx.SimMsgFactoryX) simtypes.Operation {
	return func(r *rand.Rand, _ *baseapp.BaseApp, ctx sdk.Context, accounts []simtypes.Account,
		_ string) (simtypes.OperationMsg, []simtypes.FutureOperation, error) {
		put := &later{player: p, ctx: ctx}
		if f, ok := f.(simsx.HasFutureOpsRegistry); ok {
			f.SetFutureOpsRegistry(put)
		}
		data := simsx.NewChainDataSource(ctx, r, p.sim.Accounts, p.sim.Bank, p.app.Accounts, accounts...)
		report := simsx.NewBasicSimulationReporter().WithScope(f.MsgType())
		signers, msg := say(ctx, data, report, f)
		if !report.IsSkipped() {
			if err := p.deliver(ctx, r, f, msg, signers); err != nil {
				report.Fail(err)
				p.fail(err)
			}
			report.Success(msg)
		}
		return report.ToLegacyOperationMsg(), put.list, nil
	}
}

// say makes a message. A factory without one has an account that does not exist, and may fail because of it.
func say(ctx sdk.Context, data *simsx.ChainDataSource, report simsx.SimulationReporter,
	f simsx.SimMsgFactoryX) (signers []simsx.SimAccount, msg sdk.Msg) {
	defer func() {
		if r := recover(); r != nil && !report.IsSkipped() {
			panic(r)
		}
	}()
	return f.Create()(ctx, data, report)
}

// deliver executes a signed message with a fee. One that is neither executed nor refused by a rule is an error.
func (p *player) deliver(ctx sdk.Context, r *rand.Rand, f simsx.SimMsgFactoryX, msg sdk.Msg,
	signers []simsx.SimAccount) error {
	if len(signers) == 0 {
		return errors.New("a message without a signer")
	}
	var numbers, sequences []uint64
	var keys []cryptotypes.PrivKey
	for _, s := range signers {
		a := p.sim.Accounts.GetAccount(ctx, s.Address)
		numbers, sequences, keys = append(numbers, a.GetAccountNumber()), append(sequences, a.GetSequence()),
			append(keys, s.PrivKey)
	}
	fee := draw.Source{Rand: r}.Fee(signers[0].LiquidBalance().Coins)
	tx, err := sims.GenSignedMockTx(r, p.app.Tx, []sdk.Msg{msg}, fee, sims.DefaultGenTxGas, chainID, numbers, sequences,
		keys...)
	if err != nil {
		return err
	}
	_, _, err = p.app.SimDeliver(p.app.Tx.TxEncoder(), tx)
	url := sdk.MsgTypeURL(msg)
	t := p.result.Messages[url]
	if err == nil {
		t.Executed++
	} else {
		t.Refused++
	}
	p.result.Messages[url] = t
	if err := refusable(f.DeliveryResultHandler()(err)); err != nil {
		return errors.Join(errors.New(url), err)
	}
	return nil
}

// refusable passes over refusals of our modules, which have codes. Any other error is a fault.
func refusable(err error) error {
	if _, refused := errors.AsType[*adapter.Error](err); refused {
		return nil
	}
	return err
}

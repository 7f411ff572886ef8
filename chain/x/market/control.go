package market

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/coin"
	rules "github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/transition"
)

// own returns the job of a message if the sender ordered it and the job is in one of the states.
func (k messages) own(ctx context.Context, sender, id string, states ...Status) (Job, error) {
	job, err := k.Job(ctx, id)
	switch {
	case err != nil:
		return job, err
	case job.Order.Consumer != sender:
		return job, fmt.Errorf("%w: %s ordered %s", ErrNotYours, job.Order.Consumer, id)
	}
	for _, s := range states {
		if job.State() == s {
			return job, nil
		}
	}
	return job, fmt.Errorf("%w: %s is %s", ErrState, id, job.State())
}

// State is the status of a job, including the requests of its consumer.
func (j Job) State() Status {
	switch {
	case j.Status == Running && j.Ending:
		return Ending
	case j.Status == Running && (j.Paused > 0 || j.Short > 0):
		return Paused
	}
	return j.Status
}

// CancelOrder implements marketpb.MsgServer.
func (k messages) CancelOrder(ctx context.Context,
	m *marketpb.MsgCancelOrder) (*marketpb.MsgCancelOrderResponse, error) {
	job, err := k.own(ctx, m.Sender, m.Job, Open, Running, Paused)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if job.Status == Open {
		return &marketpb.MsgCancelOrderResponse{}, k.refund(ctx, job, Cancelled, "")
	}
	job.Ending, job.Paused = true, 0
	return &marketpb.MsgCancelOrderResponse{}, k.steer(ctx, job)
}

// PauseJob implements marketpb.MsgServer.
func (k messages) PauseJob(ctx context.Context, m *marketpb.MsgPauseJob) (*marketpb.MsgPauseJobResponse, error) {
	job, err := k.own(ctx, m.Sender, m.Job, Running)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	job.Paused = sdk.UnwrapSDKContext(ctx).BlockHeight()
	return &marketpb.MsgPauseJobResponse{}, k.steer(ctx, job)
}

// ResumeJob implements marketpb.MsgServer.
func (k messages) ResumeJob(ctx context.Context, m *marketpb.MsgResumeJob) (*marketpb.MsgResumeJobResponse, error) {
	job, err := k.own(ctx, m.Sender, m.Job, Paused)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if job.Paused == 0 {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: the budget of %s covers no further round: raise it", ErrState, m.Job))
	}
	job.Paused = 0
	return &marketpb.MsgResumeJobResponse{}, k.steer(ctx, job)
}

// FeedJob implements marketpb.MsgServer.
func (k messages) FeedJob(ctx context.Context, m *marketpb.MsgFeedJob) (*marketpb.MsgFeedJobResponse, error) {
	root, err := runpb.Digest(m.Root)
	if err == nil {
		_, err = k.own(ctx, m.Sender, m.Job, Running, Paused)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &marketpb.MsgFeedJobResponse{}, k.runs.Feed(ctx, m.Job, m.Round, root, m.CID)
}

// TopUpJob implements marketpb.MsgServer.
func (k messages) TopUpJob(ctx context.Context, m *marketpb.MsgTopUpJob) (*marketpb.MsgTopUpJobResponse, error) {
	job, err := k.own(ctx, m.Sender, m.Job, Open, Running, Paused)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	before, err := k.Escrow(ctx, m.Job)
	if err != nil {
		return nil, err
	}
	after, err := before.TopUp(m.Amount)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	if m.Denom != job.Order.Coin.Denom {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: the budget of %s is in %s", coin.ErrCoin, m.Job, job.Order.Coin.Name()))
	}
	if err := k.lock(ctx, m.Sender, job.Order.Coin, m.Amount); err != nil {
		return nil, err
	}
	if job.Status == Open {
		if err := k.open.leave(ctx, job.Order); err != nil {
			return nil, err
		}
	}
	job.Order.Budget = after.Budget
	if job.Status == Open {
		if err := k.open.enter(ctx, job.Order); err != nil {
			return nil, err
		}
	}
	return &marketpb.MsgTopUpJobResponse{}, errors.Join(k.escrows.Set(ctx, m.Job, after), k.steer(ctx, job))
}

// lock moves an amount of a coin from a consumer to the budgets.
func (k messages) lock(ctx context.Context, sender string, c coin.Coin, amount uint64) error {
	from, err := sdk.AccAddressFromBech32(sender)
	if err != nil {
		return err
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, from, Name, adapter.CoinsOf(c, amount)); err != nil {
		return ErrorTable.Wrap(fmt.Errorf("%w: %w", ErrFunds, err))
	}
	return nil
}

func (k *Keeper) steer(ctx context.Context, job Job) error {
	return errors.Join(k.jobs.Set(ctx, job.Order.ID, job),
		emit(ctx, &marketpb.EventSteered{Job: job.Order.ID, State: string(job.State()), Budget: job.Order.Budget}))
}

// Hold completes the input of a run at the end of a block: whether the budget covers another round, and what the
// consumer requests. If a pause, or the wait for a higher budget, takes too long, the job ends.
func (k *Keeper) Hold(ctx context.Context, s run.State, env transition.Env) (transition.Env, error) {
	job, err := k.Job(ctx, s.Terms.Job)
	if err != nil {
		return env, err
	}
	escrow, err := k.Escrow(ctx, s.Terms.Job)
	if err != nil {
		return env, err
	}
	var params rules.Params
	if job.Paused > 0 || job.Short > 0 {
		if params, err = k.Params(ctx); err != nil {
			return env, err
		}
	}
	was := job
	if job.Paused > 0 && env.Height > job.Paused+params.PauseBlocks {
		job.Ending, job.Paused = true, 0
	}
	broke := cost.Exposure(s) > escrow.Remaining()
	// wait for open rounds, which may cost less than their bound, or for a higher budget
	waits := broke && job.Order.OnExceed == rules.PauseExceeded
	switch {
	case !waits || len(s.Open) > 0:
		job.Short = 0
	case job.Short == 0:
		job.Short = env.Height
	case env.Height > job.Short+params.PauseBlocks:
		waits = false
	}
	env.CancelRequested, env.Paused, env.BudgetExhausted = job.Ending, job.Paused > 0 || waits, broke && !waits
	if job.Short == was.Short && job.Paused == was.Paused {
		return env, nil
	}
	return env, k.steer(ctx, job)
}

// Params are the parameters in force.
func (k *Keeper) Params(ctx context.Context) (rules.Params, error) {
	p, err := k.params.Get(ctx)
	if missing(err) {
		return rules.DefaultParams(), nil
	}
	return p, err
}

// RegisterCoin implements marketpb.MsgServer.
func (k messages) RegisterCoin(ctx context.Context,
	m *marketpb.MsgRegisterCoin) (*marketpb.MsgRegisterCoinResponse, error) {
	err := adapter.OnlyBy(k.authority, m.Authority)
	if err == nil {
		err = k.Coins.Register(ctx, m.Rule())
	}
	return &marketpb.MsgRegisterCoinResponse{}, ErrorTable.Wrap(err)
}

// UpdateParams implements marketpb.MsgServer.
func (k messages) UpdateParams(ctx context.Context,
	m *marketpb.MsgUpdateParams) (*marketpb.MsgUpdateParamsResponse, error) {
	if err := adapter.OnlyBy(k.authority, m.Authority); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	now, err := k.Params(ctx)
	if err != nil {
		return nil, err
	}
	p := m.Params.Rule()
	err = errors.Join(p.Validate(), p.Follows(now, sdk.UnwrapSDKContext(ctx).BlockHeight()))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &marketpb.MsgUpdateParamsResponse{}, k.params.Set(ctx, p)
}

// Package registry stores who takes part in the network and holds their stakes: the rules of protocol/registry on the
// chain. The coins of all stakes lie in one module account; a participant's record says how much of it is its own.
package registry

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"cosmossdk.io/core/store"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run"
)

// Name of the module, its store, its account and its codespace.
const Name = "registry"

// Stakes are the smallest stakes with which a role may be taken.
var Stakes = registry.Params{WorkerStake: 1_000_000, VerifierStake: 1_000_000}

// Errors of the module, beside those of protocol/registry.
var (
	ErrUnknown = errors.New("registry: not a participant")
	ErrFunds   = errors.New("registry: the account cannot pay the stake")
)

// Refusals of the module.
var Refusals = &adapter.Refusals{Space: Name, List: []adapter.Refusal{
	{Code: 2, Rule: registry.ErrInvalid, Fix: "Correct the registration and send it again."},
	{Code: 3, Rule: registry.ErrStake, Fix: "Register with a larger stake."},
	{Code: 4, Rule: registry.ErrOverflow, Fix: "Add a smaller stake."},
	{Code: 5, Rule: ErrUnknown, Fix: "Register the account first."},
	{Code: 6, Rule: ErrFunds, Fix: "Fund the account or stake less."},
}}

// Bank moves coins.
type Bank interface {
	SendCoinsFromAccountToModule(ctx context.Context, from sdk.AccAddress, module string, amount sdk.Coins) error
	SendCoinsFromModuleToAccount(ctx context.Context, module string, to sdk.AccAddress, amount sdk.Coins) error
}

// Pool is the community pool.
type Pool interface {
	FundCommunityPool(ctx context.Context, amount sdk.Coins, from sdk.AccAddress) error
}

// Keeper reads and writes the participants.
type Keeper struct {
	Schema collections.Schema

	account      sdk.AccAddress
	bank         Bank
	pool         Pool
	participants collections.Map[string, registry.Participant]
}

// NewKeeper returns a keeper over a store of its own.
func NewKeeper(s store.KVStoreService, account sdk.AccAddress, bank Bank, pool Pool) (*Keeper, error) {
	b := collections.NewSchemaBuilder(s)
	k := &Keeper{
		account: account, bank: bank, pool: pool,
		participants: collections.NewMap(b, collections.NewPrefix(0), "participants", collections.StringKey, adapter.Record[registry.Participant]()),
	}
	var err error
	k.Schema, err = b.Build()
	return k, err
}

// Get returns a participant.
func (k *Keeper) Get(ctx context.Context, id string) (registry.Participant, error) {
	p, err := k.participants.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		return p, fmt.Errorf("%w: %s", ErrUnknown, id)
	}
	return p, err
}

// Eligible reports whether an account may be matched in a role.
func (k *Keeper) Eligible(ctx context.Context, id string, role run.Role) (bool, error) {
	p, err := k.Get(ctx, id)
	if errors.Is(err, ErrUnknown) {
		return false, nil
	}
	return p.Eligible(role, Stakes), err
}

// Take moves an amount of a participant's stake to an account, or to reward.CommunityPool.
func (k *Keeper) Take(ctx context.Context, id, to string, amount uint64) error {
	p, err := k.Get(ctx, id)
	if err != nil {
		return err
	}
	if amount > p.Stake {
		return fmt.Errorf("registry: %d uzen from the stake of %s, which is %d", amount, id, p.Stake)
	}
	if err := k.participants.Set(ctx, id, p.Take(amount)); err != nil {
		return err
	}
	if to == reward.CommunityPool {
		return k.pool.FundCommunityPool(ctx, adapter.Coins(amount), k.account)
	}
	account, err := sdk.AccAddressFromBech32(to)
	if err != nil {
		return err
	}
	return k.bank.SendCoinsFromModuleToAccount(ctx, Name, account, adapter.Coins(amount))
}

// Audited adds the outcome of an audit to the history of a worker.
func (k *Keeper) Audited(ctx context.Context, id string, passed bool) error {
	p, err := k.Get(ctx, id)
	if err != nil {
		return err
	}
	return k.participants.Set(ctx, id, p.Audited(passed))
}

// Jail bars a participant who was slashed over a job from being matched.
func (k *Keeper) Jail(ctx context.Context, id, job string, slashed uint64) error {
	p, err := k.Get(ctx, id)
	if err != nil {
		return err
	}
	if err := k.participants.Set(ctx, id, p.Jail()); err != nil {
		return err
	}
	return sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(&registrypb.EventSlashed{Participant: id, Amount: slashed, Job: job})
}

// Register implements registrypb.MsgServer.
func (k *Keeper) Register(ctx context.Context, m *registrypb.MsgRegister) (*registrypb.MsgRegisterResponse, error) {
	old, err := k.Get(ctx, m.Sender)
	if err != nil && !errors.Is(err, ErrUnknown) {
		return nil, err
	}
	known := err == nil
	p := registry.Participant{ID: m.Sender, Addrs: m.Addresses, PeerID: m.PeerId, Device: m.Device, Stake: old.Stake}
	for _, role := range m.Roles {
		p.Roles = append(p.Roles, role.Rule())
	}
	if p, err = p.TopUp(m.Stake); err != nil {
		return nil, Refusals.Wrap(err)
	}
	if p, err = registry.Register(p, Stakes, sdk.UnwrapSDKContext(ctx).BlockHeight()); err != nil {
		return nil, Refusals.Wrap(err)
	}
	if known {
		p = history(p, old)
	}
	if err := k.lock(ctx, m.Sender, m.Stake); err != nil {
		return nil, err
	}
	return &registrypb.MsgRegisterResponse{}, k.set(ctx, p)
}

// history keeps in a new registration what the old one cannot lose.
func history(p, old registry.Participant) registry.Participant {
	p.Slashed, p.Jailed, p.Since, p.Passed = old.Slashed, old.Jailed, old.Since, old.Passed
	return p
}

// UpdateAddresses implements registrypb.MsgServer.
func (k *Keeper) UpdateAddresses(ctx context.Context, m *registrypb.MsgUpdateAddresses) (*registrypb.MsgUpdateAddressesResponse, error) {
	old, err := k.Get(ctx, m.Sender)
	if err != nil {
		return nil, Refusals.Wrap(err)
	}
	p := old
	p.PeerID, p.Addrs = m.PeerId, m.Addresses
	// The stake does not matter for an address: somebody who was slashed still has to be reachable.
	if p, err = registry.Register(p, registry.Params{}, old.Since); err != nil {
		return nil, Refusals.Wrap(err)
	}
	return &registrypb.MsgUpdateAddressesResponse{}, k.set(ctx, history(p, old))
}

func (k *Keeper) lock(ctx context.Context, sender string, stake uint64) error {
	from, err := sdk.AccAddressFromBech32(sender)
	if err != nil || stake == 0 {
		return err
	}
	if err := k.bank.SendCoinsFromAccountToModule(ctx, from, Name, adapter.Coins(stake)); err != nil {
		return Refusals.Wrap(fmt.Errorf("%w: %w", ErrFunds, err))
	}
	return nil
}

func (k *Keeper) set(ctx context.Context, p registry.Participant) error {
	if err := k.participants.Set(ctx, p.ID, p); err != nil {
		return err
	}
	return sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(&registrypb.EventRegistered{Participant: p.ID, Stake: p.Stake})
}

// Participant implements registrypb.QueryServer.
func (k *Keeper) Participant(ctx context.Context, q *registrypb.QueryParticipantRequest) (*registrypb.QueryParticipantResponse, error) {
	p, err := k.Get(ctx, q.Id)
	if errors.Is(err, ErrUnknown) {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	return &registrypb.QueryParticipantResponse{Participant: canon.MustMarshal(p)}, err
}

// Participants implements registrypb.QueryServer.
func (k *Keeper) Participants(ctx context.Context, q *registrypb.QueryParticipantsRequest) (*registrypb.QueryParticipantsResponse, error) {
	r := &registrypb.QueryParticipantsResponse{}
	most := adapter.Most(q.Limit)
	err := k.participants.Walk(ctx, new(collections.Range[string]).StartExclusive(q.After), func(_ string, p registry.Participant) (bool, error) {
		r.Participants = append(r.Participants, canon.MustMarshal(p))
		return len(r.Participants) == most, nil
	})
	return r, err
}

// Module wires the keeper into the application.
type Module struct {
	adapter.Module
	keeper *Keeper
}

// NewModule returns the module of a keeper.
func NewModule(k *Keeper) Module {
	return Module{Module: adapter.Module{
		ID: Name, Messages: &registrypb.Msg_serviceDesc, State: k.Schema,
		Queries: adapter.NewRoutes(registrypb.NewQueryClient, registrypb.RegisterQueryHandlerClient),
	}, keeper: k}
}

// RegisterServices registers messages and queries.
func (m Module) RegisterServices(r grpc.ServiceRegistrar) error {
	registrypb.RegisterMsgServer(r, m.keeper)
	registrypb.RegisterQueryServer(r, m.keeper)
	return nil
}

package reward

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/reward/rewardpb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/reward"
)

// EndBlock settles an epoch at its end.
func (k *Keeper) EndBlock(ctx context.Context) error {
	now := sdk.UnwrapSDKContext(ctx)
	params, err := k.registry.Params(ctx)
	if err != nil {
		return err
	}
	number, ends := params.Epoch(now.BlockHeight())
	if !ends {
		return nil
	}
	err = adapter.Isolate(ctx, func(ctx context.Context) error { return k.settle(ctx, number, params) })
	if err != nil {
		now.Logger().Error("reward: the epoch is not settled", "epoch", number, "error", err)
	}
	return nil
}

func (k *Keeper) settle(ctx context.Context, number int64, params registry.Params) error {
	schedule, err := k.Params(ctx)
	if err != nil {
		return err
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	e := reward.Epoch{Number: number, Height: height, Schedule: schedule, Registry: params}
	links, err := k.measured(ctx)
	if err != nil {
		return err
	}
	if e.Efforts, err = k.efforts(ctx, links); err != nil {
		return err
	}
	if e.Pool, err = k.pool.Available(ctx); err != nil {
		return err
	}
	settled := reward.SettleEpoch(e)
	made, err := k.execute(ctx, settled.Transfers)
	if err != nil {
		return err
	}
	for _, r := range settled.Receipts {
		if err := k.Issue(ctx, r); err != nil {
			return err
		}
	}
	latency, clusters := group(e.Efforts, links, params)
	return errors.Join(
		k.registry.Turn(ctx, height, latency, clusters),
		k.worked.Clear(ctx, nil), k.serves.Clear(ctx, nil), k.links.Clear(ctx, nil),
		sdk.UnwrapSDKContext(ctx).EventManager().EmitTypedEvent(&rewardpb.EventEpoch{Epoch: number, Receipts: settled.Seq,
			Made: made}),
	)
}

func (k *Keeper) measured(ctx context.Context) (all []registry.Measured, err error) {
	err = k.links.Walk(ctx, nil, func(key collections.Pair[string, string], l registry.Link) (bool, error) {
		all = append(all, registry.Measured{Of: key.K1(), By: key.K2(), Link: l})
		return false, nil
	})
	return all, err
}

// efforts collects the efforts of all participants that committed to a tier, worked, served, were measured, or were
// drawn for an audit, sorted by account.
func (k *Keeper) efforts(ctx context.Context, links []registry.Measured) ([]reward.Effort, error) {
	uptimes, err := k.registry.Uptimes(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]*reward.Effort{}
	of := func(id string) *reward.Effort {
		if found[id] == nil {
			found[id] = &reward.Effort{}
		}
		return found[id]
	}
	for id, u := range uptimes { // into a map: the order does not matter
		of(id).Uptime = &u
	}
	err = k.worked.Walk(ctx, nil, func(id string, w work) (bool, error) {
		of(id).Flops, of(id).Fees = w.Flops, w.Fees
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		f := of(l.Of)
		f.Bytes = max(f.Bytes+l.Bytes, f.Bytes) // saturates above what the participant had to serve
		if f.Serves, err = k.serves.Get(ctx, l.Of); err != nil && !errors.Is(err, collections.ErrNotFound) {
			return nil, err
		}
		of(l.By)
	}
	for id, speeds := range registry.Speeds(links) { // into a map: the order does not matter
		of(id).Speeds = speeds
	}
	presences, err := k.registry.Presences(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(presences)) {
		p, f := presences[id], of(id)
		f.Presence = &p
		if f.Offers, err = k.orders.Audits(ctx, id, p.Price); err != nil {
			return nil, err
		}
	}
	var all []reward.Effort
	for _, id := range slices.Sorted(maps.Keys(found)) {
		f := found[id]
		if f.Participant, err = k.registry.Get(ctx, id); err != nil {
			return nil, err
		}
		all = append(all, *f)
	}
	return all, nil
}

// execute mints the coins of the emission, and executes the transfers.
func (k *Keeper) execute(ctx context.Context, transfers []reward.Transfer) (made uint64, err error) {
	for _, t := range transfers {
		if t.From == reward.Emission {
			made += t.Amount
		}
	}
	if made > 0 {
		if err := k.bank.MintCoins(ctx, Name, adapter.Coins(made)); err != nil {
			return 0, err
		}
	}
	for _, t := range transfers {
		if id, staked := strings.CutPrefix(t.From, reward.Stake("")); staked {
			if err := k.registry.Take(ctx, id, t.To, t.Amount); err != nil {
				return 0, err
			}
			continue
		}
		to, err := k.registry.Payee(ctx, t.To)
		if err != nil {
			return 0, err
		}
		give := func(amount sdk.Coins) error { return k.bank.SendCoinsFromModuleToAccount(ctx, Name, to, amount) }
		if t.From == reward.CommunityPool {
			give = func(amount sdk.Coins) error { return k.pool.DistributeFromFeePool(ctx, amount, to) }
		}
		if err := give(adapter.Coins(t.Amount)); err != nil {
			return 0, err
		}
	}
	return made, nil
}

// maxGrouped is the most participants that are grouped: the time is quadratic in the measured pairs.
const maxGrouped = 1024

// group returns the latency of each participant to those that measured it, and its cluster. The distance of a pair is
// the larger of its two measurements.
func group(efforts []reward.Effort, links []registry.Measured,
	params registry.Params) (map[string]uint32, map[string]string) {
	latency := map[string]uint32{}
	measured, rtt := map[string][]uint32{}, map[registry.Pair]uint32{}
	for _, l := range links {
		if l.RTT == 0 {
			continue
		}
		measured[l.Of] = append(measured[l.Of], l.RTT)
		pair := registry.PairOf(l.Of, l.By)
		rtt[pair] = max(rtt[pair], l.RTT)
	}
	for id, all := range measured { // into a map: the order does not matter
		latency[id] = registry.Median(all)
	}
	var nodes []registry.Node
	for _, f := range efforts[:min(len(efforts), maxGrouped)] {
		nodes = append(nodes, registry.Node{ID: f.ID, Class: f.Class(params), Region: f.Hardware.Region,
			Upload: f.Bandwidth(f.Speeds), Cluster: f.Cluster})
	}
	return latency, registry.Clusters(nodes, rtt, params)
}

package registry

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/bits"
	"slices"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run"
)

// seat is the place of a verifier in the tree of stakes, from 1, and the stake that the tree has for it.
type seat struct {
	At    uint64 `cbor:"1,keyasint"`
	Stake uint64 `cbor:"2,keyasint"`
}

// absence is how often in a row a verifier missed an audit that was drawn for it, and until when it is not drawn again.
type absence struct {
	Missed uint32 `cbor:"1,keyasint"`
	Until  int64  `cbor:"2,keyasint"`
}

// Of draws of verifiers.
const (
	drawTries  = 32 // stakes that one draw looks at
	firstLeave = 20 // blocks that a verifier is not drawn after it missed an audit; twice as many after each further one
	mostLeaves = 12 // from which on they grow no more
)

// put stores a participant, and its weight as a verifier.
func (k *Keeper) put(ctx context.Context, p registry.Participant) error {
	if err := k.participants.Set(ctx, p.ID, p); err != nil {
		return err
	}
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	weight := uint64(0)
	if p.Eligible(run.Verifier, params) {
		weight = p.Firm()
	}
	return k.weigh(ctx, p.ID, weight)
}

// weigh sets the weight of a verifier in a Fenwick tree: node n has the sum of the weights of the places after n minus
// its lowest bit, up to n. A draw and a change take as many steps as the number of verifiers has bits.
func (k *Keeper) weigh(ctx context.Context, id string, weight uint64) error {
	at, err := k.seats.Get(ctx, id)
	switch {
	case errors.Is(err, collections.ErrNotFound):
		if weight == 0 {
			return nil
		}
		if at.At, err = k.grow(ctx, id); err != nil {
			return err
		}
	case err != nil || at.Stake == weight:
		return err
	}
	last, err := k.last(ctx)
	if err != nil {
		return err
	}
	for n := at.At; n <= last; n += n & -n {
		sum, err := k.sum(ctx, n)
		if err != nil {
			return err
		}
		if err := k.sums.Set(ctx, n, sum-at.Stake+weight); err != nil {
			return err
		}
	}
	at.Stake = weight
	return k.seats.Set(ctx, id, at)
}

// grow gives a verifier the place after the last.
func (k *Keeper) grow(ctx context.Context, id string) (uint64, error) {
	last, err := k.last(ctx)
	if err != nil {
		return 0, err
	}
	at, sum := last+1, uint64(0)
	for n := last; n > at-at&-at; n -= n & -n { // what lies below the new node
		below, err := k.sum(ctx, n)
		if err != nil {
			return 0, err
		}
		sum += below
	}
	return at, errors.Join(k.sums.Set(ctx, at, sum), k.ids.Set(ctx, at, id), k.places.Set(ctx, at))
}

func (k *Keeper) last(ctx context.Context) (uint64, error) { return orZero(k.places.Get(ctx)) }

func (k *Keeper) sum(ctx context.Context, n uint64) (uint64, error) {
	return orZero(k.sums.Get(ctx, n))
}

func orZero(n uint64, err error) (uint64, error) {
	if errors.Is(err, collections.ErrNotFound) {
		return 0, nil
	}
	return n, err
}

// at returns the verifier in whose stake a number below the sum of all falls.
func (k *Keeper) at(ctx context.Context, number, last uint64) (string, error) {
	place := uint64(0)
	for bit := uint64(1) << (bits.Len64(last) - 1); bit > 0; bit >>= 1 {
		if place+bit > last {
			continue
		}
		sum, err := k.sum(ctx, place+bit)
		if err != nil {
			return "", err
		}
		if sum <= number {
			place += bit
			number -= sum
		}
	}
	return k.ids.Get(ctx, place+1)
}

// Verifiers draws verifiers one after the other from all that are registered, each with a chance in proportion to its
// stake, and hands them to take until that has enough. Those that missed an audit lately are left out. Some may come
// twice, and after some tries no more come.
func (k *Keeper) Verifiers(ctx context.Context, seed canon.Digest,
	take func(p registry.Participant) (enough bool, err error)) error {
	last, err := k.last(ctx)
	if err != nil || last == 0 {
		return err
	}
	total := uint64(0)
	for n := last; n > 0; n -= n & -n {
		sum, err := k.sum(ctx, n)
		if err != nil {
			return err
		}
		total += sum
	}
	params, err := k.Params(ctx)
	if err != nil || total == 0 {
		return err
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	for try := range uint64(drawTries) {
		d := canon.Sum("starling/draw-verifier/1", seed[:], binary.BigEndian.AppendUint64(nil, try))
		number, _ := bits.Mul64(binary.BigEndian.Uint64(d[:8]), total)
		id, err := k.at(ctx, number, last)
		if err != nil {
			return err
		}
		if away, err := k.absences.Get(ctx, id); err == nil && away.Until > height {
			continue
		} else if err != nil && !errors.Is(err, collections.ErrNotFound) {
			return err
		}
		p, err := k.Get(ctx, id)
		if err != nil {
			return err
		}
		if !p.Eligible(run.Verifier, params) {
			continue
		}
		if enough, err := take(p); err != nil || enough {
			return err
		}
	}
	return nil
}

// Absent says that a verifier missed an audit that was drawn for it: for a while others are drawn.
func (k *Keeper) Absent(ctx context.Context, id string) error {
	away, err := k.absences.Get(ctx, id)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	away.Until = sdk.UnwrapSDKContext(ctx).BlockHeight() + firstLeave<<min(away.Missed, mostLeaves)
	away.Missed++
	return errors.Join(k.absences.Set(ctx, id, away),
		k.note(ctx, id, func(p *registry.Presence, height int64) { p.Missed = height }))
}

// Answered says that a verifier answered an audit that was drawn for it, at a price.
func (k *Keeper) Answered(ctx context.Context, id string, price uint64) error {
	return errors.Join(k.There(ctx, id),
		k.note(ctx, id, func(p *registry.Presence, height int64) { p.Answered, p.Price = height, price }))
}

func (k *Keeper) note(ctx context.Context, id string, change func(p *registry.Presence, height int64)) error {
	p, err := k.presences.Get(ctx, id)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	change(&p, sdk.UnwrapSDKContext(ctx).BlockHeight())
	return k.presences.Set(ctx, id, p)
}

// Presences are those of the verifiers for which audits were drawn.
func (k *Keeper) Presences(ctx context.Context) (map[string]registry.Presence, error) {
	all := map[string]registry.Presence{}
	return all, k.presences.Walk(ctx, nil, func(id string, p registry.Presence) (bool, error) {
		all[id] = p
		return false, nil
	})
}

// forget drops presences that say nothing any more.
func (k *Keeper) forget(ctx context.Context, height int64) error {
	params, err := k.Params(ctx)
	if err != nil {
		return err
	}
	all, err := k.Presences(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if answered, missed := all[id].Shows(params, height); answered || missed {
			continue
		}
		if err := k.presences.Remove(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// There says that a verifier has answered, or is back.
func (k *Keeper) There(ctx context.Context, id string) error { return k.absences.Remove(ctx, id) }

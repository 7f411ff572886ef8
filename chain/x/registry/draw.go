package registry

import (
	"context"
	"encoding/binary"
	"errors"
	"math/bits"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// absence is how many consecutive audits a verifier missed that were drawn for it, and until when it is not drawn
// again.
type absence struct {
	Missed uint32 `cbor:"1,keyasint"`
	Until  int64  `cbor:"2,keyasint"`
}

// Limits of draws of verifiers.
const (
	drawTries  = 32 // stakes that one draw considers
	firstLeave = 20 // blocks that a verifier is not drawn after a missed audit; doubled by each further miss
	mostLeaves = 12 // misses after which these blocks no longer grow
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
	if p.Earning {
		if err := k.Earners.Note(ctx, p); err != nil {
			return err
		}
	}
	weight := uint64(0)
	if p.Eligible(crew.Verifier, params) {
		weight = p.Firm()
	}
	return k.tree.Weigh(ctx, p.ID, weight)
}

// putEarner is put for a participant that earned its stake, and takes one that does no longer off the list.
func putEarner(ctx context.Context, k *Keeper, p registry.Participant) error {
	err := k.put(ctx, p)
	if err != nil || p.Earning {
		return err
	}
	return k.Earners.Note(ctx, p)
}

// Verifiers draws registered verifiers in sequence, each with a chance in proportion to its stake, and passes them to
// take until take returns true. It skips verifiers that missed an audit lately. It may draw a verifier twice, and stops
// after drawTries tries.
func (k *Keeper) Verifiers(ctx context.Context, seed canon.Digest,
	take func(p registry.Participant) (enough bool, err error)) error {
	last, err := k.tree.Last(ctx)
	if err != nil || last == 0 {
		return err
	}
	total, err := k.tree.Total(ctx, last)
	if err != nil {
		return err
	}
	params, err := k.Params(ctx)
	if err != nil || total == 0 {
		return err
	}
	height := sdk.UnwrapSDKContext(ctx).BlockHeight()
	for try := range uint64(drawTries) {
		d := canon.Sum("starling/draw-verifier/1", seed[:], binary.BigEndian.AppendUint64(nil, try))
		number, _ := bits.Mul64(binary.BigEndian.Uint64(d[:8]), total)
		id, err := k.tree.At(ctx, number, last)
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
		if !p.Eligible(crew.Verifier, params) {
			continue
		}
		if enough, err := take(p); err != nil || enough {
			return err
		}
	}
	return nil
}

// Absent records that a verifier missed an audit that was drawn for it: it is not drawn for a while.
func (k *Keeper) Absent(ctx context.Context, id string) error {
	away, err := k.absences.Get(ctx, id)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return err
	}
	away.Until = sdk.UnwrapSDKContext(ctx).BlockHeight() + firstLeave<<min(away.Missed, mostLeaves)
	away.Missed++
	return errors.Join(k.absences.Set(ctx, id, away),
		k.presences.Note(ctx, id, func(p *registry.Presence, height int64) { p.Missed = height }))
}

// Answered records that a verifier answered an audit that was drawn for it, at a price.
func (k *Keeper) Answered(ctx context.Context, id string, price uint64, own bool) error {
	return errors.Join(k.There(ctx, id),
		k.presences.Answered(ctx, id, price, own))
}

// Presences returns the presences of the verifiers for which audits were drawn.
func (k *Keeper) Presences(ctx context.Context) (map[string]registry.Presence, error) {
	return k.presences.All(ctx)
}

// There records that a verifier has answered, or is back.
func (k *Keeper) There(ctx context.Context, id string) error { return k.absences.Remove(ctx, id) }

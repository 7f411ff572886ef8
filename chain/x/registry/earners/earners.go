// Package earners lists the workers that earn their stake, and decides which accounts may register without one. The
// rules are in protocol/registry/earning; the module stores the participants.
package earners

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/registry/earning"
)

// Surroundings are the participants of the network, the beacons of blocks, and the accounts with a part in a run. Find
// reports whether there is a participant.
type Surroundings interface {
	Find(ctx context.Context, id string) (p registry.Participant, known bool, err error)
	Params(ctx context.Context) (registry.Params, error)
	At(ctx context.Context, height int64) (canon.Digest, error)
	Part(ctx context.Context, id string) (bool, error)
}

// List is the list of the workers that earn their stake.
type List struct {
	around Surroundings
	placed collections.KeySet[string]
	spoke  collections.Map[string, int64] // height of the latest transaction that was free, and no duty
	proofs collections.Map[string, int64] // block of the latest proof of an account that paid no fee
}

// New returns a list inside the store of the module.
func New(b *collections.SchemaBuilder, around Surroundings) List {
	id := collections.StringKey
	return List{
		around: around,
		placed: collections.NewKeySet(b, collections.NewPrefix(24), "earning", id),
		spoke:  collections.NewMap(b, collections.NewPrefix(25), "spoke", id, collections.Int64Value),
		proofs: collections.NewMap(b, collections.NewPrefix(26), "proofs", id, collections.Int64Value),
	}
}

// Note lists a participant that has a place, or takes it off the list.
func (l List) Note(ctx context.Context, p registry.Participant) error {
	if earning.Placed(p) {
		return l.placed.Set(ctx, p.ID)
	}
	return errors.Join(l.placed.Remove(ctx, p.ID), l.spoke.Remove(ctx, p.ID))
}

// Number returns the number of the workers that earn their stake.
func (l List) Number(ctx context.Context) (n int, err error) {
	err = l.placed.Walk(adapter.Unmetered(ctx), nil, func(string) (bool, error) { n++; return false, nil })
	return n, err
}

// Count returns what Number does, and the worker that was idle for the longest time and has
// no part in a run; "" if none was idle for long enough.
func (l List) Count(ctx context.Context, params registry.Params) (n int, idle string, err error) {
	free := adapter.Unmetered(ctx)
	since := int64(0)
	err = l.placed.Walk(free, nil, func(id string) (bool, error) {
		n++
		p, _, err := l.around.Find(free, id)
		if err != nil || !earning.Idle(p, params, free.BlockHeight()) || idle != "" && p.EarnedAt >= since {
			return false, err
		}
		works, err := l.around.Part(free, id)
		if err == nil && !works {
			idle, since = id, p.EarnedAt
		}
		return false, err
	})
	return n, idle, err
}

// Early returns why an account may not register without a stake, as far as that is known without the other workers: its
// registration is invalid, it has a stake, or was convicted, or its proof is wrong for the first place, or too old.
func (l List) Early(ctx context.Context, m *registrypb.MsgRegister) error {
	_, _, err := l.early(adapter.Unmetered(ctx), m)
	return err
}

// early is Early. proves returns why the proof is too weak for another worker while n earn their stake.
func (l List) early(free sdk.Context, m *registrypb.MsgRegister) (params registry.Params, proves func(n int) error,
	err error) {
	if params, err = l.around.Params(free); err != nil {
		return params, nil, err
	}
	old, known, err := l.around.Find(free, m.Sender)
	height := free.BlockHeight()
	switch {
	case err != nil:
		return params, nil, err
	case known && (old.Jailed || len(old.Roles) > 0 || old.Stake > 0 && !old.Earning || old.Machine.Owner != ""):
		return params, nil, fmt.Errorf("%w: %s is registered", earning.ErrRefused, m.Sender)
	case !m.Earns || m.Stake > 0 || params.Earning.Most == 0:
		return params, nil, fmt.Errorf("%w: wanted a registration without a stake, in a network that takes them",
			earning.ErrRefused)
	case m.ProofHeight < 1 || m.ProofHeight > height || m.ProofHeight < height-earning.ProofBlocks:
		return params, nil, fmt.Errorf("%w: a proof for block %d in block %d, at most %d later", earning.ErrRefused,
			m.ProofHeight, height, earning.ProofBlocks)
	}
	p := m.Rule(old)
	if err := earning.Begin(p, params); err != nil {
		return params, nil, err
	}
	if _, err := registry.Register(p, params, height); err != nil {
		return params, nil, err
	}
	beacon, err := l.around.At(free, m.ProofHeight)
	if err != nil {
		return params, nil, err
	}
	proves = func(n int) error {
		wanted := params.Earning.ProofBits(n)
		if beacon.IsZero() || !earning.Proves(m.Sender, beacon, wanted, m.Proof) {
			return fmt.Errorf("%w: its number is no proof of %d bits with the beacon of block %d", earning.ErrRefused, wanted,
				m.ProofHeight)
		}
		return nil
	}
	return params, proves, proves(0)
}

// Check is Early, and returns as well why the account gets no place: none is left, or its proof is too weak for one
// more. It returns the worker whose place the account gets; "" if one is free.
func (l List) Check(ctx context.Context, m *registrypb.MsgRegister) (idle string, err error) {
	free := adapter.Unmetered(ctx)
	params, proves, err := l.early(free, m)
	if err != nil {
		return "", err
	}
	n, idle, err := l.Count(free, params)
	switch {
	case err != nil:
		return "", err
	case n < int(params.Earning.Most):
		idle = ""
	case idle == "":
		return "", fmt.Errorf("%w: %d workers earn theirs, and no more may", earning.ErrRefused, n)
	}
	return idle, proves(n)
}

// FreeMessages is the most messages of a registration without a stake and without a fee: the registration, an offer, a
// measurement and a payee.
const FreeMessages = 4

// Spend records the proof of a registration that pays no fee. A proof serves once, also if its registration fails: the
// next one of the account needs a proof for a later block.
func (l List) Spend(ctx context.Context, m *registrypb.MsgRegister) error {
	free := adapter.Unmetered(ctx)
	last, err := l.proofs.Get(free, m.Sender)
	switch {
	case err != nil && !errors.Is(err, collections.ErrNotFound):
		return err
	case m.ProofHeight <= last:
		return fmt.Errorf("%w: a proof of it for block %d was used: wanted one for a later block", earning.ErrRefused, last)
	}
	return l.proofs.Set(free, m.Sender, m.ProofHeight)
}

// SparedGas is the most gas of a transaction that an account sends without a fee while it earns its stake.
const SparedGas = 1_000_000

// Spares reports whether an account earns its stake and may send a transaction that is no duty without a fee: one of
// its first, or one in each window of beat_blocks.
func (l List) Spares(ctx context.Context, account string, first bool) bool {
	free := adapter.Unmetered(ctx)
	p, _, err := l.around.Find(free, account)
	if err != nil || !earning.Active(p) {
		return false
	}
	params, err := l.around.Params(free)
	if err != nil {
		return false
	}
	if first {
		return true
	}
	last, err := l.spoke.Get(free, account)
	return errors.Is(err, collections.ErrNotFound) || err == nil && free.BlockHeight() >= last+params.BeatBlocks
}

// Speak records a transaction of an account that paid no fee and was no duty.
func (l List) Speak(ctx context.Context, account string) error {
	free := adapter.Unmetered(ctx)
	if p, _, err := l.around.Find(free, account); err != nil || !earning.Active(p) {
		return err
	}
	return l.spoke.Set(free, account, free.BlockHeight())
}

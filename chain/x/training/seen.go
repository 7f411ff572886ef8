package training

import (
	"context"
	"errors"
	"fmt"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/beacon/censorship"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/run/work"
)

// Sighted returns what a vote reports about a message that is its sender's next transaction: a sighting if the message
// is the move that a dispute waits for, otherwise false.
func (k *Keeper) Sighted(ctx context.Context, account string, sequence uint64,
	m sdk.Msg) (s censorship.Sighting, ok bool) {
	move, is := m.(*trainingpb.MsgMove)
	if !is || move.Sender != account {
		return s, false
	}
	free := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	_, g, err := k.current(free, move.Job, unitID(move))
	if err != nil || g.Mover() != account {
		return s, false
	}
	return censorship.Sighting{Job: move.Job, Round: move.Round, Unit: move.Unit, Attempt: move.Attempt, Ply: g.Ply(),
		Sequence: sequence}, true
}

// Awaited implements censorship.Duties.
func (k *Keeper) Awaited(ctx context.Context, s censorship.Sighting) (string, error) {
	_, g, err := k.current(ctx, s.Job, sighted(s))
	if errors.Is(err, ErrNoDispute) || err == nil && (g.Ply() != s.Ply || g.Mover() == "") {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	address, err := sdk.AccAddressFromBech32(g.Mover())
	if err != nil {
		return "", err
	}
	account := k.accounts.GetAccount(ctx, address)
	if account == nil || account.GetSequence() != s.Sequence {
		return "", nil
	}
	return g.Mover(), nil
}

func sighted(s censorship.Sighting) work.UnitID {
	return work.UnitID{Round: s.Round, Unit: s.Unit, Attempt: s.Attempt}
}

// Stand implements censorship.Duties.
func (k *Keeper) Stand(ctx context.Context, s censorship.Sighting) error {
	key, g, err := k.current(ctx, s.Job, sighted(s))
	if err != nil {
		return err
	}
	after := g.Stand()
	if after.Deadline == g.Deadline {
		return nil
	}
	line := fmt.Sprintf("the block leaves out the move of the %s, which most validators have seen: its clock stands "+
		"still, up to height %d", g.Turn, after.Deadline)
	c := g.Config
	return errors.Join(k.disputes.Set(ctx, key, after),
		emit(ctx, &trainingpb.EventDispute{Job: c.Job, Round: c.Round, Unit: c.Unit, Line: line}))
}

var _ censorship.Duties = (*Keeper)(nil)

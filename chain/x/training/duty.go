package training

import (
	"context"
	"iter"

	"cosmossdk.io/collections"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Owed returns the rank of a kind of message, if it is a duty, and its job: 1 is a move of a dispute, 2 opens a
// dispute, 3 answers for an audit, 4 is work. The rank is 0 for kinds that are never duties.
func Owed(m sdk.Msg) (rank int, job string) {
	switch m := m.(type) {
	case *trainingpb.MsgMove:
		return 1, m.Job
	case *trainingpb.MsgChallenge:
		return 2, m.Job
	case *trainingpb.MsgRefute:
		return 2, m.Job
	case *trainingpb.MsgUnseal:
		return 3, m.Job
	case *trainingpb.MsgUnmask:
		return 3, m.Job
	case *trainingpb.MsgConfess:
		return 3, m.Job
	case *trainingpb.MsgReport:
		return 3, m.Job
	case *trainingpb.MsgShowReport:
		return 3, m.Job
	case *trainingpb.MsgSuspect:
		return 3, m.Job
	case *trainingpb.MsgPass:
		return 3, m.Job
	case *trainingpb.MsgCommit:
		return 4, m.Job
	case *trainingpb.MsgSealSlice:
		return 4, m.Job
	case *trainingpb.MsgShowSlice:
		return 4, m.Job
	case *trainingpb.MsgAttest:
		return 4, m.Job
	}
	return 0, ""
}

// Duty returns the rank of a message of an account (see Owed): a move by the party whose turn it is, or a message of an
// active member of the run. It returns 0 for other messages and for accounts without such a duty, so that no account
// gets priority without one.
func (k *Keeper) Duty(ctx context.Context, account string, m sdk.Msg) int {
	free := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	rank, job := Owed(m)
	if rank == 0 {
		return 0
	}
	if m, ok := m.(*trainingpb.MsgMove); ok {
		_, g, err := k.current(free, m.Job, unitID(m))
		if err == nil && m.Sender == account && account == g.Mover() {
			return rank
		}
		return 0
	}
	s, err := k.State(free, job)
	if err != nil {
		return 0
	}
	member, ok := s.Member(account)
	if !ok || !member.Active && !(member.Why == reason.Guest && s.Liable(account)) { // guests must answer too
		return 0
	}
	return rank
}

// Accuses reports whether a message is an accusation that the run would not refuse, by an account that does not work in
// the run: a challenge of a unit that stands, or the refutation of a checkpoint of an open round.
func (k *Keeper) Accuses(ctx context.Context, account string, m sdk.Msg) bool {
	now := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	env := transition.Env{Height: now.BlockHeight(), Draw: func(work.UnitID) iter.Seq[crew.Member] {
		return func(func(crew.Member) bool) {}
	}}
	switch m := m.(type) {
	case *trainingpb.MsgChallenge:
		commitment, err := runpb.Digest(m.Commitment)
		s, wrong := k.State(now, m.Job)
		if err != nil || wrong != nil || m.Sender != account || s.Stands(unitID(m), commitment) != nil {
			return false
		}
		_, _, err = s.Challenge(env, account, unitID(m))
		return err == nil
	case *trainingpb.MsgRefute:
		root, err := runpb.Digest(m.Root)
		if err != nil || m.Sender != account {
			return false
		}
		s, err := k.State(now, m.Job)
		entry, wrong := k.lineage.Get(now, collections.Join(m.Job, m.Checkpoint))
		if err != nil || wrong != nil || entry.Attestation.Checkpoint.Root != root {
			return false
		}
		_, _, err = s.Refute(env, account, entry)
		return err == nil
	}
	return false
}

package training

import (
	"context"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/training/trainingpb"
	"github.com/starling-network/starling/protocol/run"
)

// Duty is how urgent it is that a message of an account comes into a block: 1 is a move of a dispute by the party whose turn it is, 2 what
// opens one, 3 what answers for an audit, 4 work. It is 0 for other messages, and for those of accounts that have no such duty in
// the run: who only wants to be served first has none.
func (k *Keeper) Duty(ctx context.Context, account string, m sdk.Msg) int {
	free := sdk.UnwrapSDKContext(ctx).WithGasMeter(storetypes.NewInfiniteGasMeter())
	rank, job := 0, ""
	switch m := m.(type) {
	case *trainingpb.MsgMove:
		_, g, err := k.current(free, m.Job, m.Round, m.Unit, m.Attempt)
		if err == nil && m.Sender == account && account == g.Mover() {
			return 1
		}
		return 0
	case *trainingpb.MsgChallenge:
		rank, job = 2, m.Job
	case *trainingpb.MsgRefute:
		rank, job = 2, m.Job
	case *trainingpb.MsgUnseal:
		rank, job = 3, m.Job
	case *trainingpb.MsgUnmask:
		rank, job = 3, m.Job
	case *trainingpb.MsgConfess:
		rank, job = 3, m.Job
	case *trainingpb.MsgReport:
		rank, job = 3, m.Job
	case *trainingpb.MsgSuspect:
		rank, job = 3, m.Job
	case *trainingpb.MsgPass:
		rank, job = 3, m.Job
	case *trainingpb.MsgCommit:
		rank, job = 4, m.Job
	case *trainingpb.MsgSealSlice:
		rank, job = 4, m.Job
	case *trainingpb.MsgShowSlice:
		rank, job = 4, m.Job
	case *trainingpb.MsgAttest:
		rank, job = 4, m.Job
	default:
		return 0
	}
	s, err := k.State(free, job)
	if err != nil {
		return 0
	}
	member, ok := s.Member(account)
	if !ok || !member.Active && !(member.Why == run.WhyGuest && s.Liable(account)) { // guests owe answers, too
		return 0
	}
	return rank
}

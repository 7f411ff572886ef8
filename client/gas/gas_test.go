package gas

import (
	"testing"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/x/market/marketpb"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/trainingpb"
)

// A transaction declares the gas that such messages need, first from a table and later from the gas that they used, and
// never more than a chain accepts.
func TestLimits(t *testing.T) {
	beat, commit := &registrypb.MsgHeartbeat{}, &trainingpb.MsgCommit{}
	if one, two := Limit(beat), Limit(beat, beat); one != perMessage || two != 2*one {
		t.Errorf("a heartbeat declares %d, two %d", one, two)
	}
	if n := Limit(&marketpb.MsgOrder{Opening: make([]byte, 1<<20)}); n < 50_000_000 || n > Most {
		t.Errorf("an order of a megabyte declares %d", n)
	}
	if n := Limit(&marketpb.MsgOrder{Opening: make([]byte, 4<<20)}); n != Most {
		t.Errorf("a larger one declares %d", n)
	}
	var u Usage
	first := u.Limit([]sdk.Msg{commit})
	u.Learn([]sdk.Msg{commit}, first, 100_000, false)
	if n := u.Limit([]sdk.Msg{commit}); n != base(commit) {
		t.Errorf("after a commitment that took 100,000 the next declares %d", n)
	}
	u.Learn([]sdk.Msg{commit}, 300_000, 300_001, true)
	if n := u.Limit([]sdk.Msg{commit}); n != 1_200_004 {
		t.Errorf("after one that ran short of 300,000 the next declares %d", n)
	}
	u.Learn([]sdk.Msg{commit}, 1_200_004, 100_000, false)
	if n := u.Limit([]sdk.Msg{commit}); n > 1_100_000 || n < 1_000_000 {
		t.Errorf("after one that took little the next declares %d", n)
	}
	long := &trainingpb.MsgCommit{Job: string(make([]byte, 10_000))}
	var cheap Usage
	cheap.Learn([]sdk.Msg{commit}, first, 37_157, false)
	if n, least := cheap.Limit([]sdk.Msg{long}), uint64(perMessage+perByte*10_000); n < least || n > least+perMessage {
		t.Errorf("after commitments that took little one of 10 kB declares %d", n)
	}
	if n := cheap.Limit([]sdk.Msg{commit}); n != base(commit) {
		t.Errorf("after a commitment that took 37,157 the next declares %d", n)
	}
}

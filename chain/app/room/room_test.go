package room

import (
	"strings"
	"testing"

	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// block returns the room in a block of a new network.
func block() *Room {
	return New(sdk.Context{}.WithConsensusParams(cmtproto.ConsensusParams{
		Block: &cmtproto.BlockParams{MaxBytes: 12 << 20, MaxGas: BlockGas}}))
}

// Transactions that pay nothing have a limited part of a block: duties three quarters, others an eighth, one account
// sixteen transactions.
func TestWhatIsFreeLeavesRoomInABlock(t *testing.T) {
	const price = 10_000
	of := func(i int) string { return strings.Repeat("a", 1+i) }
	for name, c := range map[string]struct {
		each func(i int) Declared
		fit  int
	}{
		"ten thousand accounts": {func(i int) Declared { return Declared{Account: of(i), Bytes: 200, Gas: 1_000_000} }, 25},
		"small ones":            {func(i int) Declared { return Declared{Account: of(i), Bytes: 200, Gas: 1} }, mostGranted},
		"large ones":            {func(i int) Declared { return Declared{Account: of(i), Bytes: 1 << 20, Gas: 1} }, 1},
		"duties": {func(i int) Declared {
			return Declared{Account: of(i), Bytes: 200, Gas: 1_000_000,
				Owed: true}
		}, 150},
		"large duties": {func(i int) Declared {
			return Declared{Account: of(i), Bytes: 1 << 20, Gas: 1,
				Owed: true}
		}, 9},
		"one account's duties": {func(int) Declared {
			return Declared{Account: "a", Bytes: 200, Gas: 1_000_000,
				Owed: true}
		}, mostOfOne},
		"one's large duties": {func(int) Declared {
			return Declared{Account: "a", Bytes: 200, Gas: 10_000_000,
				Owed: true}
		}, 2},
		"one's moves": {func(int) Declared {
			return Declared{Account: "a", Bytes: 200, Gas: 5_000_000, Owed: true, Moves: true}
		}, mostOfOne},
		"too little paid": {func(i int) Declared {
			return Declared{Account: of(i), Bytes: 200, Gas: 1_000_000,
				Fee: 9_999}
		}, 25},
		"paid":            {func(i int) Declared { return Declared{Bytes: 200, Gas: 1_000_000, Fee: 10_000} }, 200},
		"paid for no gas": {func(i int) Declared { return Declared{Account: of(i), Bytes: 200, Fee: 10_000} }, 0},
		"paid for too much": {func(i int) Declared {
			return Declared{Account: of(i), Bytes: 200, Gas: MaxGas + 1,
				Fee: 1 << 40}
		}, 0},
		"of two": {func(int) Declared { return Declared{Bytes: 200, Gas: 1} }, 0},
	} {
		r, n := block(), 0
		for d := c.each(n); n < 1000 && r.Take(d, d.Pays(price)) == nil; d = c.each(n) {
			n++
		}
		if n != c.fit {
			t.Errorf("%s: %d are in a block, not %d", name, n, c.fit)
		}
	}
}

// Free transactions leave room in the block for those that pay.
func TestWhoPaysHasRoom(t *testing.T) {
	r := block()
	for i := 0; r.Take(Declared{Account: strings.Repeat("a", 1+i), Bytes: 200, Gas: 500_000, Owed: true},
		false) == nil; i++ {
	}
	n := 0
	for r.Take(Declared{Account: "payer", Bytes: 200, Gas: 1_000_000}, true) == nil {
		n++
	}
	if n != 50 {
		t.Errorf("%d that pay are in a block with as many free ones as may be", n)
	}
}

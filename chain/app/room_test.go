package app

import (
	"strings"
	"testing"

	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	sdk "github.com/cosmos/cosmos-sdk/types"
)

// block is the room of a block of a new network.
func block() *room {
	return newRoom(sdk.Context{}.WithConsensusParams(cmtproto.ConsensusParams{Block: &cmtproto.BlockParams{MaxBytes: 12 << 20, MaxGas: BlockGas}}))
}

// What pays nothing has a part of a block, whoever sends it: duties three quarters, others an eighth, an account
// sixteen transactions.
func TestWhatIsFreeLeavesRoomInABlock(t *testing.T) {
	const price = 10_000
	of := func(i int) string { return strings.Repeat("a", 1+i) }
	for name, c := range map[string]struct {
		each func(i int) declared
		fit  int
	}{
		"ten thousand accounts": {func(i int) declared { return declared{account: of(i), bytes: 200, gas: 1_000_000} }, 25},
		"small ones":            {func(i int) declared { return declared{account: of(i), bytes: 200, gas: 1} }, mostGranted},
		"large ones":            {func(i int) declared { return declared{account: of(i), bytes: 1 << 20, gas: 1} }, 1},
		"duties": {func(i int) declared {
			return declared{account: of(i), bytes: 200, gas: 1_000_000,
				owed: true}
		}, 150},
		"large duties": {func(i int) declared {
			return declared{account: of(i), bytes: 1 << 20, gas: 1,
				owed: true}
		}, 9},
		"one account's duties": {func(int) declared {
			return declared{account: "a", bytes: 200, gas: 1_000_000,
				owed: true}
		}, mostOfOne},
		"one's large duties": {func(int) declared {
			return declared{account: "a", bytes: 200, gas: 10_000_000,
				owed: true}
		}, 2},
		"one's moves": {func(int) declared {
			return declared{account: "a", bytes: 200, gas: 5_000_000, owed: true, moves: true}
		}, mostOfOne},
		"too little paid": {func(i int) declared {
			return declared{account: of(i), bytes: 200, gas: 1_000_000,
				fee: 9_999}
		}, 25},
		"paid":            {func(i int) declared { return declared{bytes: 200, gas: 1_000_000, fee: 10_000} }, 200},
		"paid for no gas": {func(i int) declared { return declared{account: of(i), bytes: 200, fee: 10_000} }, 0},
		"paid for too much": {func(i int) declared {
			return declared{account: of(i), bytes: 200, gas: MaxGas + 1,
				fee: 1 << 40}
		}, 0},
		"of two": {func(int) declared { return declared{bytes: 200, gas: 1} }, 0},
	} {
		r, n := block(), 0
		for d := c.each(n); n < 1000 && r.take(d, d.pays(price)) == nil; d = c.each(n) {
			n++
		}
		if n != c.fit {
			t.Errorf("%s: %d are in a block, not %d", name, n, c.fit)
		}
	}
}

// The free transactions of a block leave room for those that pay.
func TestWhoPaysHasRoom(t *testing.T) {
	r := block()
	for i := 0; r.take(declared{account: strings.Repeat("a", 1+i), bytes: 200, gas: 500_000, owed: true},
		false) == nil; i++ {
	}
	n := 0
	for r.take(declared{account: "payer", bytes: 200, gas: 1_000_000}, true) == nil {
		n++
	}
	if n != 50 {
		t.Errorf("%d that pay are in a block with as many free ones as may be", n)
	}
}

package works

import (
	"errors"
	"fmt"
	"testing"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
)

// A move that asks the referee costs the same gas whether its work is in the cache or not, and a program is read once.
func TestWorkIsOpenedOnceForTheSameGas(t *testing.T) {
	opens := 0
	k := &Works{referee: func(canon.Digest, []byte) (Case, error) {
		opens++
		return struct{ Case }{}, nil
	}}
	gas := func(spec canon.Digest, opening []byte) uint64 {
		ctx := sdk.Context{}.WithContext(t.Context()).WithGasMeter(storetypes.NewInfiniteGasMeter())
		if _, err := k.open(ctx, spec, opening); err != nil {
			t.Fatal(err)
		}
		return ctx.GasMeter().GasConsumed()
	}
	spec := canon.Sum("a")
	first, again := gas(spec, []byte("opening")), gas(spec, []byte("opening"))
	if first != again || first < gasOpen+gasJudge || opens != 1 {
		t.Errorf("%d gas, then %d, opened %d times", first, again, opens)
	}
	if more := gas(spec, make([]byte, 1000)); more != first+1000-7 {
		t.Errorf("%d gas for 1000 bytes", more)
	}
	for i := range 3 * remembers {
		gas(canon.Sum(fmt.Sprint(i)), nil)
	}
	if n := len(k.cache.last); n != remembers {
		t.Errorf("%d works are remembered, wanted %d", n, remembers)
	}
}

// A move that is refused before it asks the referee opens no work.
func TestWorkIsOpenedWhenItIsAsked(t *testing.T) {
	bad, opens := errors.New("bad"), 0
	l := NewLazy(func() (Case, error) { opens++; return nil, bad })
	g, err := dispute.Open(dispute.Config{
		Job: "job", Asserter: "worker", Challenger: "verifier", Segments: make([]canon.Digest, 2), Steps: []uint32{1},
		Operators: 1, Parameters: 1, MoveBlocks: 10,
	}, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	leaf := dispute.Move{Leaf: &dispute.Leaf{Payload: []byte("leaf")}}
	for _, c := range []struct {
		height int64
		from   string
		move   dispute.Move
	}{
		{2, "stranger", leaf}, {2, "worker", leaf}, {12, "verifier", leaf},
		{2, "verifier", dispute.Move{Bind: &dispute.BindClaim{}}},
		{2, "verifier", dispute.Move{Leaf: &dispute.Leaf{Index: 1}}},
	} {
		if _, err := g.Apply(c.height, c.from, c.move, l); err == nil || opens > 0 {
			t.Errorf("a move of %s at height %d opened the work %d times: %v", c.from, c.height, opens, err)
		}
	}
	if _, err := g.Apply(2, "verifier", leaf, l); err != nil || opens != 1 || !errors.Is(l.Err, bad) {
		t.Errorf("the move of who owes it: %v, opened %d times, %v", err, opens, l.Err)
	}
}

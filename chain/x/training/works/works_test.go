package works

import (
	"errors"
	"fmt"
	"testing"

	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
)

// A move that asks the referee costs the same gas whether its work is in the cache or not, and a program is read once.
func TestWorkIsOpenedOnceForTheSameGas(t *testing.T) {
	opens := 0
	k := &Works{referee: func(canon.Digest, []byte, uint32) (Case, error) {
		opens++
		return struct{ Case }{}, nil
	}}
	gas := func(spec canon.Digest, opening []byte) uint64 {
		ctx := sdk.Context{}.WithContext(t.Context()).WithGasMeter(storetypes.NewInfiniteGasMeter())
		if _, err := k.open(ctx, spec, opening, 0); err != nil {
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

// An order pays for the check of its work, as far as its gas goes, whether the work is in the cache or not. Work of
// which a dispute could not be decided is refused.
func TestAnOrderPaysForItsCheck(t *testing.T) {
	const cost = 10_000_000
	bad := errors.New("not decidable")
	refused := map[string]error{}
	w, ctx := onEmptyStore(t, func(_ canon.Digest, opening []byte, _ uint32) (Case, error) {
		return checked{shown{rounds: 3}, cost, refused[string(opening)]}, nil
	})
	work := terms.Terms{Spec: canon.Sum("spec"), Rounds: 3}
	admit := func(limit uint64, opening string) (used uint64, out bool, err error) {
		m := storetypes.NewGasMeter(limit)
		defer func() {
			if p := recover(); p != nil {
				used, out = m.GasConsumed(), true
			}
		}()
		err = w.Admit(ctx.WithGasMeter(m), "", work, []byte(opening), 1)
		return m.GasConsumed(), false, err
	}
	const enough = 60_000_000
	first, _, err := admit(enough, "a")
	again, _, err2 := admit(enough, "a")
	if err != nil || err2 != nil || first < gasOpen+gasJudge+GasCheck*cost || first-again > 1<<16 {
		t.Errorf("%d gas, then %d: %v, %v", first, again, err, err2)
	}
	for _, opening := range []string{"a", "b"} {
		if used, out, _ := admit(GasCheck*cost, opening); !out || used > GasCheck*cost+GasCheck {
			t.Errorf("%s with too little gas: %d, out of gas %t", opening, used, out)
		}
	}
	refused["c"] = bad
	if _, _, err := admit(enough, "c"); !errors.Is(err, bad) || !errors.Is(err, dispute.ErrWork) {
		t.Errorf("undecidable work is admitted with %v", err)
	}
}

// checked is work whose check has a cost and an outcome.
type checked struct {
	Case
	cost uint64
	err  error
}

func (c checked) Decidable(most uint64) (uint64, error) {
	if c.cost > most {
		return most + 1, errors.New("more than may be spent")
	}
	return c.cost, c.err
}

// A move that is refused before it asks the referee opens no work.
func TestWorkIsOpenedWhenItIsAsked(t *testing.T) {
	bad, opens := errors.New("bad"), 0
	l := NewLazy(func() (dispute.Referee, error) { opens++; return nil, bad })
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

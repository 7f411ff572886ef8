package app

import (
	"errors"
	"fmt"
	"testing"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"
)

// Fifty thousand transactions of a spammer come before the move of a dispute: most wait, the others are refused, and the move finds
// room and is proposed first, after what its sender sent before it.
func TestSpamKeepsNoMoveOut(t *testing.T) {
	l := newLane()
	refused := 0
	for i := range 50_000 {
		err := l.add(waiting{tx: fmt.Appendf(nil, "spam %d", i), account: fmt.Sprint("spammer ", i%2000), sequence: uint64(i / 2000)})
		if err != nil && !errors.Is(err, sdkerrors.ErrMempoolIsFull) {
			t.Fatal(err)
		}
		if err != nil {
			refused++
		}
	}
	if refused != 50_000-maxOrdinary {
		t.Errorf("%d are refused", refused)
	}
	l.drop([]byte("spam 0"))
	for _, w := range []waiting{
		{tx: []byte("heartbeat"), account: "worker", sequence: 7},
		{tx: []byte("commit"), account: "worker", sequence: 8, rank: 4},
		{tx: []byte("move"), account: "challenger", sequence: 3, rank: 1},
		{tx: []byte("after a gap"), account: "late", sequence: 2, rank: 1},
	} {
		if err := l.add(w); err != nil {
			t.Fatalf("%s: %v", w.tx, err)
		}
	}
	sequences := map[string]uint64{"worker": 7, "challenger": 3, "late": 1}
	first := func(bytes int64) string {
		return fmt.Sprintf("%s", l.first(bytes, func(a string) uint64 { return sequences[a] }))
	}
	if got := first(1 << 20); got != "[move heartbeat commit]" {
		t.Errorf("first are %s", got)
	}
	if got := first(15); got != "[move]" {
		t.Errorf("first in 15 bytes are %s", got)
	}
	l.drop([]byte("move"))
	l.drop([]byte("commit"))
	l.drop([]byte("after a gap"))
	if got := first(1 << 20); got != "[]" {
		t.Errorf("after they are in a block, first are %s", got)
	}
	for i := range 2 * maxDuties {
		if err := l.add(waiting{tx: fmt.Appendf(nil, "duty %d", i), account: "worker", sequence: uint64(8 + i), rank: 4}); errors.Is(err, sdkerrors.ErrMempoolIsFull) != (i > maxDuties) && i != maxDuties {
			t.Errorf("duty %d: %v", i, err)
		}
	}
}

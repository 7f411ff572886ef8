package lane

import (
	"errors"
	"fmt"
	"testing"

	sdkerrors "github.com/cosmos/cosmos-sdk/types/errors"

	"github.com/starling-network/starling/chain/app/room"
)

// arrived returns a transaction as it waits in the lane, of a spammer or of an account with a duty.
func arrived(tx, account string, sequence uint64, rank int) Waiting {
	d := room.Declared{Account: account, Sequence: sequence, Bytes: int64(len(tx)), Gas: 1, Fee: 1}
	return Waiting{Declared: d, Tx: []byte(tx), Rank: rank, Charged: true}
}

// inOrder lists the transactions that the lane proposes first, in at most the given bytes.
func (l *Lane) inOrder(bytes int64, sequences map[string]uint64) string {
	left := room.Share{Count: 1000, Bytes: bytes, Gas: room.BlockGas}
	return fmt.Sprintf("%s", l.First(func(d room.Declared) bool {
		if !left.Fits(d) {
			return false
		}
		left.Take(d)
		return true
	}, func(a string) uint64 { return sequences[a] }))
}

// Fifty thousand transactions of a spammer arrive before the move of a dispute. Most of them wait, the others are
// refused. The move finds room and is proposed first, after the earlier transactions of its sender.
func TestSpamKeepsNoMoveOut(t *testing.T) {
	l := New()
	refused := 0
	for i := range 50_000 {
		err := l.Add(arrived(fmt.Sprint("spam ", i), fmt.Sprint("spammer ", i%2000), uint64(i/2000), 0))
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
	l.Drop([]byte("spam 0"))
	for _, w := range []Waiting{
		arrived("heartbeat", "worker", 7, 0), arrived("commit", "worker", 8, 4), arrived("move", "challenger", 3, 1),
		arrived("after a gap", "late", 2, 1),
	} {
		if err := l.Add(w); err != nil {
			t.Fatalf("%s: %v", w.Tx, err)
		}
	}
	sequences := map[string]uint64{"worker": 7, "challenger": 3, "late": 1}
	if got := l.inOrder(1<<20, sequences); got != "[move heartbeat commit]" {
		t.Errorf("first are %s", got)
	}
	if got := l.inOrder(5, sequences); got != "[move]" {
		t.Errorf("first in 5 bytes are %s", got)
	}
	l.Drop([]byte("move"))
	l.Drop([]byte("commit"))
	l.Drop([]byte("after a gap"))
	if got := l.inOrder(1<<20, sequences); got != "[]" {
		t.Errorf("after they are in a block, first are %s", got)
	}
	for i := range 2 * maxDuties {
		err := l.Add(arrived(fmt.Sprint("duty ", i), "worker", uint64(8+i), 4))
		if errors.Is(err, sdkerrors.ErrMempoolIsFull) != (i > maxDuties) && i != maxDuties {
			t.Errorf("duty %d: %v", i, err)
		}
	}
}

// The pool is full of spam and of accusations by outsiders with coins for a bond. A challenge by an outsider with a
// locked stake is proposed before all of them, after the moves of disputes. Outsiders leave room for the duties of
// members.
func TestOutsidersChallengeIsProposedUnderSpam(t *testing.T) {
	l := New()
	sequences := map[string]uint64{}
	for i := range maxOrdinary {
		if err := l.Add(arrived(fmt.Sprint("spam ", i), fmt.Sprint("spammer ", i), 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	accuse := func(tx, account string, rank int) error {
		w := arrived(tx, account, 0, rank)
		w.Outsider = true
		return l.Add(w)
	}
	for i := range maxOutsiders - 1 {
		if err := accuse(fmt.Sprint("a", i), fmt.Sprint("stranger ", i), 3); err != nil {
			t.Fatal(err)
		}
	}
	if err := accuse("challenge", "whistleblower", 2); err != nil {
		t.Fatal(err)
	}
	if err := accuse("too many", "late", 3); !errors.Is(err, sdkerrors.ErrMempoolIsFull) {
		t.Errorf("one accusation more than wait: %v", err)
	}
	for _, w := range []Waiting{arrived("move", "party", 0, 1), arrived("commit", "worker", 0, 4)} {
		if err := l.Add(w); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.inOrder(1<<20, sequences); got != "[move challenge a0 a1 a2 a3 a4 a5 a6 commit]" {
		t.Errorf("first are %s", got)
	}
	l.Drop([]byte("challenge"))
	if err := accuse("another", "late", 3); err != nil {
		t.Errorf("when one is in a block: %v", err)
	}
}

// Ten thousand accounts that pay nothing have a bounded part of the pool, and leave the rest to transactions that pay.
func TestNewcomersFillNoPool(t *testing.T) {
	l := New()
	taken := 0
	for i := range 10_000 {
		w := arrived(fmt.Sprint("free ", i), fmt.Sprint("account ", i), 0, 0)
		w.Fee, w.Gas = 0, 1_000_000
		switch err := l.Add(w); {
		case err == nil:
			taken++
		case !errors.Is(err, sdkerrors.ErrInsufficientFee):
			t.Fatal(err)
		}
	}
	if taken != maxGrantedGas/1_000_000 {
		t.Errorf("%d free transactions wait", taken)
	}
	for i := range maxOrdinary - taken {
		if err := l.Add(arrived(fmt.Sprint("paid ", i), fmt.Sprint("account ", i), 1, 0)); err != nil {
			t.Fatal(err)
		}
	}
}

// An account that sends many duties has its next turn after all other accounts have had theirs.
func TestDutiesTakeTurns(t *testing.T) {
	l := New()
	for i := range 3 {
		for s := range 4 {
			if err := l.Add(arrived(fmt.Sprintf("%d.%d", i, s), fmt.Sprint("greedy ", i), uint64(s), 4)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := l.Add(arrived("honest", "honest", 0, 4)); err != nil {
		t.Fatal(err)
	}
	sequences := map[string]uint64{}
	for block, want := range []string{"[0.0]", "[1.0]", "[2.0]"} {
		if got := l.inOrder(3, sequences); got != want {
			t.Fatalf("block %d has %s, not %s", block, got, want)
		}
		l.Drop(fmt.Appendf(nil, "%d.0", block))
		sequences[fmt.Sprint("greedy ", block)] = 1
	}
	if got := l.inOrder(6, sequences); got != "[honest]" {
		t.Errorf("then comes %s", got)
	}
}

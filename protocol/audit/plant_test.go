package audit

import (
	"testing"

	"github.com/starling-network/starling/canon"
)

func TestPlantReplacesOneRoot(t *testing.T) {
	secret := canon.Sum("secret")
	at := map[int]int{}
	for unit := range uint32(400) {
		roots := []canon.Digest{canon.Sum("0"), canon.Sum("1"), canon.Sum("2"), canon.Sum("3"), canon.Sum("4")}
		nonce := Nonce(secret, "job", 1, unit, 0)
		planted, differ := Plant(nonce, roots), 0
		for i := range roots {
			if planted[i] != roots[i] {
				differ++
				at[i]++
			}
		}
		if differ != 1 || len(planted) != len(roots) {
			t.Fatalf("unit %d: %d roots differ", unit, differ)
		}
		if Hide(nonce, roots) == Hide(nonce, planted) || Hide(nonce, roots) == Hide(Nonce(secret, "job", 1, unit, 1), roots) {
			t.Fatal("what is hidden does not bind the nonce and the roots")
		}
	}
	if at[0] != 0 || len(at) != 4 {
		t.Errorf("planted at %v, wanted every place but the first", at)
	}
	if got := Plant(canon.Sum("n"), []canon.Digest{canon.Sum("0")}); got[0] != canon.Sum("0") {
		t.Error("the start is nobody's work")
	}
}

// An honest worker plants by chance no more faults than it may.
func TestPlantingStaysWithinWhatIsAllowed(t *testing.T) {
	planted, over := uint32(0), 0
	for unit := range uint32(100_000) {
		if Plants(Nonce(canon.Sum("secret"), "job", 0, unit, 0)) {
			if planted < MayPlant(unit) {
				planted++
			} else {
				over++
			}
		}
	}
	if planted < 2800 || planted > 3450 || over != 0 {
		t.Errorf("%d of 100000 planted, %d withheld; wanted about 3125", planted, over)
	}
}

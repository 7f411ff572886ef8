package check

import (
	"testing"

	"github.com/starling-network/starling/protocol/reward"
)

// A canary: the checker must not let a unit pass that is paid twice.
func TestUnitIsPaidTwice(t *testing.T) {
	twice := &PaidOnce{commits: map[duty]int{{who: "a"}: 1, {who: "b"}: 1}}
	if err := twice.once([]reward.Receipt{{Kind: reward.Work, Amount: 1, Who: "a"},
		{Seq: 1, Kind: reward.Work, Amount: 1, Who: "b"}}); err == nil {
		t.Error("nothing was found")
	}
}

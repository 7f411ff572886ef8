package coinstake

import (
	"errors"
	"math"
	"testing"

	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/registry"
)

// A stake is added, leaves in part, can be slashed while it leaves, and covers by its firm part alone.
func TestStake(t *testing.T) {
	params := registry.DefaultParams()
	s := Stake{ID: "a", Coin: coin.Coin{Denom: "ibc/usdc", Symbol: "usdc", Exponent: 6}}
	if _, err := s.Add(0); !errors.Is(err, ErrStake) {
		t.Error(err)
	}
	s, err := s.Add(1000)
	if err != nil || s.Firm() != 1000 {
		t.Fatalf("%+v: %v", s, err)
	}
	if _, err := s.Add(math.MaxUint64); !errors.Is(err, ErrStake) {
		t.Error("a sum beyond 64 bits is taken")
	}
	whole := s.Cover(params, 0)
	if want := (registry.Participant{Stake: 1000}).Collateral(params, 0); whole != want || s.Cover(params, whole+1) != 0 {
		t.Errorf("it covers %d, want %d", whole, want)
	}
	if _, err := s.Leave(1001, params, 5); !errors.Is(err, ErrStake) {
		t.Error("more leaves than there is")
	}
	if s, err = s.Leave(400, params, 5); err != nil || s.Firm() != 600 || s.LeavesAt != 5+params.UnstakeBlocks ||
		s.Cover(params, 0) >= whole {
		t.Errorf("%+v: %v", s, err)
	}
	if s, err = s.Take(700); err != nil || s.Amount != 300 || s.Leaving != 300 || s.Slashed != 700 || s.Firm() != 0 {
		t.Errorf("%+v: %v", s, err)
	}
	if _, err := s.Take(301); !errors.Is(err, ErrStake) {
		t.Error("more is slashed than there is")
	}
	s, amount := s.Release()
	if amount != 300 || s.Amount != 0 || s.LeavesAt != 0 || s.Leaving != 0 {
		t.Errorf("%+v, %d paid out", s, amount)
	}
	if s, err = s.Leave(0, params, 9); err != nil || s.LeavesAt != 0 {
		t.Errorf("%+v: %v", s, err)
	}
}

package coins

import (
	"math"
	"testing"

	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Millionths of a coin are whole ones, with more reported, and saturate.
func TestMillionths(t *testing.T) {
	dai, yen := coin.Coin{Denom: "ibc/B", Symbol: "dai", Exponent: 18}, coin.Coin{Denom: "ibc/C", Symbol: "yen"}
	for _, c := range []struct {
		in     coin.Coin
		grains uint64
		want   uint64
		more   bool
	}{{coin.Coin{}, 7, 7, false}, {dai, 7000, 7, false}, {dai, 7001, 7, true}, {yen, 7, 7_000_000, false},
		{yen, math.MaxUint64, math.MaxUint64, false}, {dai, math.MaxUint64, math.MaxUint64 / 1000, true}} {
		if n, more := Millionths(c.in, c.grains); n != c.want || more != c.more {
			t.Errorf("%d grains of %s: %d, %v", c.grains, c.in.Name(), n, more)
		}
	}
}

// The offers of an account in classes that it names no longer are withdrawn, and no others.
func TestDropped(t *testing.T) {
	offers := []market.Offer{{ID: "me", Role: crew.Worker, Slots: 1}, {ID: "me", Role: crew.Verifier, Slots: 1},
		{ID: "you", Role: crew.Verifier, Slots: 1}, {ID: "me", Role: crew.Generator, Slots: 1, Pool: true}}
	gone := Several{{Class: crew.Worker}}.Dropped(offers, "me")
	if len(gone) != 1 || gone[0].Role != crew.Verifier || gone[0].Slots != 0 {
		t.Errorf("withdraws %+v", gone)
	}
	if gone := (Several{{Class: crew.Worker}, {Class: crew.Verifier}}).Dropped(offers, "me"); len(gone) != 0 {
		t.Errorf("of the classes that it offers, it withdraws %+v", gone)
	}
}

package node_test

import (
	"testing"

	"github.com/starling-network/starling/node/ending"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
)

// A conviction takes parts of stakes in two coins: they are added up apart, each with the decimals of its coin.
func TestSlashedInTwoCoins(t *testing.T) {
	dai := coin.Coin{Denom: "ibc/A", Symbol: "dai", Exponent: 18}
	got := ending.Slashed([]reward.Receipt{{Amount: 1_500_000_000, Coin: dai}, {Amount: 2_000_000},
		{Amount: 1, Coin: dai}})
	if got != "1.500000001 DAI and 2.00 ZEN" || ending.Slashed(nil) != "" {
		t.Errorf("%q", got)
	}
}

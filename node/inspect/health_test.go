package inspect

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run/crew"
)

func TestPricesOfOffers(t *testing.T) {
	lot := func(role crew.Role, price uint64, slots uint32, rate uint64) MarketOffer {
		l := market.Listing{Offer: market.Offer{Role: role, Price: price, Slots: slots}}
		l.Rate = rate
		return MarketOffer{Listing: l}
	}
	usdc := coin.Coin{Denom: "ibc/A", Symbol: "usdc", Exponent: 6}
	in := func(c coin.Coin, o MarketOffer) MarketOffer {
		o.Coin = c
		return o
	}
	got := pricesOf([]MarketOffer{lot(crew.Worker, 30, 1, 0), lot(crew.Worker, 10, 2, 1e12), lot(crew.Worker, 20, 1, 0),
		lot(crew.Verifier, 7, 1, 0), in(usdc, lot(crew.Worker, 2000, 1, 0))})
	want := []Prices{{Role: "worker", Offers: 3, Slots: 4, Lowest: 10, Median: 20, Highest: 30,
		Hourly: cost.Hourly(10, 1e12)}, {Role: "verifier", Offers: 1, Slots: 1, Lowest: 7, Median: 7, Highest: 7},
		{Role: "worker", Offers: 1, Slots: 1, Lowest: 2000, Median: 2000, Highest: 2000, Coin: usdc}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := pricesOf(nil); got == nil || len(got) > 0 {
		t.Errorf("of nothing: %+v", got)
	}
}

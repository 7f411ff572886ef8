// Package draw draws numbers and members of lists from the seed of a random play. It makes no messages and has no
// seed of its own.
package draw

import (
	"math/rand"
	"slices"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
)

// Source is the generator of a play.
type Source struct{ *rand.Rand }

// Below is any number below n, which is above 0.
func (d Source) Below(n uint64) uint64 { return d.Uint64() % n }

// UpTo is any number from one to another.
func (d Source) UpTo(from, to int64) int64 { return from + d.Int63n(to-from+1) }

// Often is true with a probability in percent.
func (d Source) Often(percent int) bool { return d.Intn(100) < percent }

// Pick is one of a list that is not empty.
func Pick[T any](d Source, list []T) T { return list[d.Intn(len(list))] }

// Mixed is a list in any order.
func Mixed[T any](d Source, list []T) []T {
	list = slices.Clone(list)
	d.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// most is the largest fee. The SDK's own operations give away half of all that the account has with each message.
const most = 1000

// Fee draws a fee in the network's own coin for an account with some coins.
func (d Source) Fee(coins sdk.Coins) sdk.Coins {
	has := int64(most)
	if a := coins.AmountOf(adapter.Denom); a.IsInt64() {
		has = min(has, a.Int64())
	}
	return sdk.NewCoins(sdk.NewInt64Coin(adapter.Denom, d.Int63n(has+1)))
}

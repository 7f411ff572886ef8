package node_test

import (
	"context"
	"testing"

	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/server/spending"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/web/access"
)

// The limit of a token covers the budgets of its jobs that are not over, and what the others cost. A job that is
// submitted again is counted once, and other tokens do not matter. Each coin has a limit of its own, and one without a
// limit is not spent.
func TestSpendingLimit(t *testing.T) {
	cost, usdc := uint64(10), coin.Coin{Denom: "ibc/A", Symbol: "usdc", Exponent: 6}
	dai := coin.Coin{Denom: "ibc/B", Symbol: "dai", Exponent: 18}
	s, me := spending.ByToken{}, access.Caller{Token: "me", Limits: map[string]uint64{"": 100, "usdc": 50}}
	s.Count("open", runs.Submitted{Token: "me", Budget: 60})
	s.Count("over", runs.Submitted{Token: "me", Budget: 60, Spent: &cost})
	s.Count("foreign", runs.Submitted{Token: "me", Budget: 30, Coin: usdc})
	s.Count("other", runs.Submitted{Token: "you", Budget: 1000})
	s.Count("free", runs.Submitted{Budget: 1000})
	for _, c := range []struct {
		caller access.Caller
		run    string
		budget uint64
		in     coin.Coin
		ok     bool
	}{
		{me, "", 30, coin.Coin{}, true}, {me, "", 31, coin.Coin{}, false}, {me, "open", 90, coin.Coin{}, true},
		{me, "open", 91, coin.Coin{}, false}, {me, "", 20, usdc, true}, {me, "", 21, usdc, false},
		{me, "foreign", 50, usdc, true}, {me, "", 1, dai, false}, {access.Caller{Token: "me"}, "", 1000, dai, true},
		{access.CallerOf(context.Background()), "", 1000, coin.Coin{}, true},
	} {
		if err := s.Allows(c.caller, c.run, runs.Submitted{Token: c.caller.Token, Budget: c.budget,
			Coin: c.in}); (err == nil) != c.ok {
			t.Errorf("%q, a budget of %d of %s: %v", c.run, c.budget, c.in.Name(), err)
		}
	}
}

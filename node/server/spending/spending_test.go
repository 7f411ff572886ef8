package spending

import (
	"context"
	"testing"

	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/web/access"
)

// The limit of a token covers the budgets of its jobs that are not over, and what the others cost. A job that is
// submitted again is counted once, and other tokens do not matter.
func TestSpendingLimit(t *testing.T) {
	limit, cost := uint64(100), uint64(10)
	s, me := ByToken{}, access.Caller{Token: "me", Limit: &limit}
	s.Count("open", runs.Submitted{Token: "me", Budget: 60})
	s.Count("over", runs.Submitted{Token: "me", Budget: 60, Spent: &cost})
	s.Count("other", runs.Submitted{Token: "you", Budget: 1000})
	s.Count("free", runs.Submitted{Budget: 1000})
	for _, c := range []struct {
		caller access.Caller
		run    string
		budget uint64
		ok     bool
	}{
		{me, "", 30, true}, {me, "", 31, false}, {me, "open", 90, true}, {me, "open", 91, false},
		{access.Caller{Token: "me"}, "", 1000, true}, {access.CallerOf(context.Background()), "", 1000, true},
	} {
		if err := s.Allows(c.caller, c.run, runs.Submitted{Token: c.caller.Token, Budget: c.budget}); (err == nil) != c.ok {
			t.Errorf("%q, a budget of %d: %v", c.run, c.budget, err)
		}
	}
}

// Package spending counts the cost of the jobs of each token, and holds tokens to their limits. It keeps nothing.
package spending

import (
	"fmt"
	"net/http"

	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
)

// ByToken is what the jobs of each token cost, in uzen, by the token and by the run: the budget of one that is not
// over, and of one that is, what was paid. It is read from the folders of the runs.
type ByToken map[string]map[string]uint64

// Count notes what a run costs.
func (s ByToken) Count(run string, asked runs.Submitted) {
	if asked.Token == "" {
		return
	}
	if s[asked.Token] == nil {
		s[asked.Token] = map[string]uint64{}
	}
	s[asked.Token][run] = asked.Budget
	if asked.Spent != nil {
		s[asked.Token][run] = *asked.Spent
	}
}

// Allows returns why a job is more than the token of its sender may spend, or nil. A job that is submitted again costs
// the token that it was submitted with first.
func (s ByToken) Allows(caller access.Caller, run string, asked runs.Submitted) error {
	if caller.Limit == nil || caller.Token != asked.Token {
		return nil
	}
	var spent uint64
	for other, uzen := range s[caller.Token] {
		if other != run {
			spent += uzen
		}
	}
	left := *caller.Limit - min(*caller.Limit, spent)
	if asked.Budget <= left {
		return nil
	}
	return failure.New(http.StatusForbidden, "SPENDING_LIMIT",
		fmt.Sprintf("the budget of the job is %s ZEN, and the token may spend %s ZEN more: %s of its limit of %s are spent, "+
			"or are budgets of jobs that are not over", ZEN(asked.Budget), ZEN(left), ZEN(spent), ZEN(*caller.Limit)),
		"lower budget.max_cost, wait until jobs of the token are over, or raise its limit in the file of --token-file")
}

// ZEN is an amount in uzen, as text in ZEN.
func ZEN(uzen uint64) string { return fmt.Sprintf("%.6g", float64(uzen)/1e6) }

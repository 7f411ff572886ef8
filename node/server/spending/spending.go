// Package spending counts the cost of the jobs of each token, in each coin, and holds tokens to their limits. It keeps
// nothing.
package spending

import (
	"fmt"
	"math"
	"net/http"
	"sync"

	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/web/access"
	"github.com/starling-network/starling/web/failure"
)

// cost is what a job costs, in millionths of its coin.
type cost struct {
	symbol string
	amount uint64
}

// ByToken is what the jobs of each token cost, by the token and by the run: the budget of one that is not over, and of
// one that is, what was paid. It is read from the folders of the runs.
type ByToken map[string]map[string]cost

// Count notes what a run costs.
func (s ByToken) Count(run string, asked runs.Submitted) {
	if asked.Token == "" {
		return
	}
	if s[asked.Token] == nil {
		s[asked.Token] = map[string]cost{}
	}
	c := cost{asked.Coin.Symbol, asked.Budget}
	if asked.Spent != nil {
		c.amount = *asked.Spent
	}
	s[asked.Token][run] = c
}

// Allows returns why a job is more than the token of its sender may spend of its coin, or nil. A job that is submitted
// again costs the token that it was submitted with first. A token with limits spends no coin without one.
func (s ByToken) Allows(caller access.Caller, run string, asked runs.Submitted) error {
	if caller.Limits == nil || caller.Token != asked.Token {
		return nil
	}
	symbol, spent := asked.Coin.Symbol, uint64(0)
	for other, c := range s[caller.Token] {
		if other != run && c.symbol == symbol {
			spent += min(c.amount, math.MaxUint64-spent)
		}
	}
	limit := caller.Limits[symbol]
	left := limit - min(limit, spent)
	if asked.Budget <= left {
		return nil
	}
	text := Millionths(symbol).Text
	return failure.New(http.StatusForbidden, "SPENDING_LIMIT",
		fmt.Sprintf("the budget of the job is %s, and the token may spend %s more: %s of its limit of %s are spent, "+
			"or are budgets of jobs that are not over", text(asked.Budget), text(left), text(spent), text(limit)),
		"lower budget.max_cost, wait until jobs of the token are over, or raise its limit in this coin in the file of "+
			"--token-file")
}

// Shared are costs that several parts of a server count, each while it holds the lock. It is a loop.Ledger.
type Shared struct {
	Lock sync.Locker
	By   ByToken
}

// Reserve counts the budget of an order in ZEN against the limit of a caller, or says why that cannot be.
func (s Shared) Reserve(by access.Caller, order string, budget uint64) error {
	s.Lock.Lock()
	defer s.Lock.Unlock()
	asked := runs.Submitted{Token: by.Token, Budget: budget}
	err := s.By.Allows(by, order, asked)
	if err == nil {
		s.By.Count(order, asked)
	}
	return err
}

// Note counts an order in ZEN of a token without looking at its limit: its budget, or what was spent of it.
func (s Shared) Note(token, order string, budget uint64, spent *uint64) {
	s.Lock.Lock()
	defer s.Lock.Unlock()
	s.By.Count(order, runs.Submitted{Token: token, Budget: budget, Spent: spent})
}

// Millionths is the coin with a symbol, as job files and limits count it: in millionths, whatever its decimals.
func Millionths(symbol string) coin.Coin {
	if symbol == "" {
		return coin.Coin{}
	}
	return coin.Coin{Denom: symbol, Symbol: symbol, Exponent: uint32(coin.Coin{}.Digits())}
}

// Package module has a type for each module of the chain, which sends its messages and its queries in the types of
// protocol/. It signs nothing and keeps no connection; that is package client.
package module

import (
	"github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/client/module/catalog"
	"github.com/starling-network/starling/client/module/delegation"
	"github.com/starling-network/starling/client/module/submit"
)

// Account is the account that messages are of.
type Account = submit.Account

// Catalog is the client of x/catalog.
type Catalog = catalog.Client

// Modules are all of them, for one account.
type Modules struct {
	Arena      arena.Client
	Catalog    Catalog
	Coins      Coins
	Delegation delegation.Client
	Hosting    Hosting
	Market     Market
	Payout     Payout
	Registry   Registry
	Reward     Reward
	Sale       Sale
	Stakes     Stakes
	Training   Training
	Work       Work
}

// Of returns the modules for an account.
func Of(a Account) Modules {
	t := Training{a}
	return Modules{Arena: arena.Client{Account: a}, Catalog: Catalog{Account: a}, Coins: Coins{a}, Hosting: Hosting{a},
		Delegation: delegation.Client{Account: a}, Market: Market{a}, Payout: Payout{a}, Registry: Registry{a},
		Reward: Reward{a, t}, Sale: Sale{a}, Training: t, Stakes: Stakes{a}, Work: Work{a}}
}

var send, ask = submit.Send, submit.Ask

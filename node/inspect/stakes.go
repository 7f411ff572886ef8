package inspect

import (
	"cmp"
	"context"
	"slices"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/reward"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Stake is what answers for the work of a participant, in uzen.
type Stake struct {
	Account  string   `json:"account"`
	Roles    []string `json:"roles"`
	Stake    uint64   `json:"stake_uzen"`
	Slashed  uint64   `json:"slashed_uzen"` // so far
	Leaving  uint64   `json:"leaving_uzen"`
	LeavesAt int64    `json:"leaves_at,omitempty"` // height
	Jailed   bool     `json:"jailed"`
}

// Stakes are those of all participants of a network, the largest first.
func Stakes(ctx context.Context, network string) ([]Stake, error) {
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	all, err := c.Registry.Participants(ctx)
	stakes := make([]Stake, 0, len(all))
	for _, p := range all {
		s := Stake{Account: p.ID, Roles: []string{}, Stake: p.Stake, Slashed: p.Slashed, Leaving: p.Leaving,
			LeavesAt: p.LeavesAt, Jailed: p.Jailed}
		for _, r := range p.Roles {
			s.Roles = append(s.Roles, r.String())
		}
		stakes = append(stakes, s)
	}
	slices.SortStableFunc(stakes, func(a, b Stake) int { return cmp.Compare(b.Stake, a.Stake) })
	return stakes, err
}

// Slashes are the receipts of slashed stakes: of an account, including slashes for broken promises of uptime, or, if
// account is "", of all accounts in all jobs.
func Slashes(ctx context.Context, network, account string) ([]rundir.Explanation, error) {
	if account != "" {
		all, _, err := Earnings(ctx, network, account)
		return append([]rundir.Explanation{},
			slices.DeleteFunc(all, func(e rundir.Explanation) bool { return e.Kind != reward.Slash })...), err
	}
	c, _, err := session.DialReadOnly(ctx, network)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return SlashesOf(ctx, c)
}

func SlashesOf(ctx context.Context, c *client.Client) (found []rundir.Explanation, err error) {
	found = []rundir.Explanation{}
	jobs, err := c.Training.Runs(ctx, false)
	if err != nil {
		return nil, err
	}
	for _, job := range jobs {
		all, err := jobExplanations(ctx, c, job)
		if err != nil {
			return nil, err
		}
		found = append(found, slices.DeleteFunc(all, func(e rundir.Explanation) bool { return e.Kind != reward.Slash })...)
	}
	return found, nil
}

// Prices are what is asked for work in a role in one coin, in its grains per 10^15 floating-point operations.
type Prices struct {
	Role    string `json:"role"`
	Offers  int    `json:"offers"`
	Slots   int    `json:"slots"` // that are free
	Lowest  uint64 `json:"lowest"`
	Median  uint64 `json:"median"`
	Highest uint64 `json:"highest"`
	// median price of an hour of the measured machines; 0: none is measured
	Hourly uint64 `json:"hourly_uzen,omitempty"`
	// of the prices; absent: ZEN
	Coin coin.Coin `json:"coin,omitzero"`
}

// MarketPrices are what is asked on a network.
func MarketPrices(ctx context.Context, network string) ([]Prices, error) {
	lots, err := MarketOffers(ctx, network)
	if err != nil {
		return nil, err
	}
	return pricesOf(lots), nil
}

// pricesOf are prices by role and coin, in ZEN first.
func pricesOf(lots []MarketOffer) []Prices {
	list, coins := []Prices{}, []coin.Coin{{}}
	for _, l := range lots {
		if !slices.Contains(coins, l.Coin) {
			coins = append(coins, l.Coin)
		}
	}
	slices.SortFunc(coins, func(a, b coin.Coin) int { return cmp.Compare(a.Denom, b.Denom) })
	for _, in := range coins {
		for _, role := range crew.Classes {
			if p := pricesIn(in, role, lots); p.Offers > 0 {
				list = append(list, p)
			}
		}
	}
	return list
}

// pricesIn are the prices of a role in a coin.
func pricesIn(in coin.Coin, role crew.Role, lots []MarketOffer) Prices {
	var prices, hours []uint64
	p := Prices{Role: role.String(), Coin: in}
	for _, l := range lots {
		if l.Role != role || l.Coin != in {
			continue
		}
		prices, p.Slots = append(prices, l.Price), p.Slots+int(l.Slots)
		if l.Rate > 0 {
			hours = append(hours, cost.Hourly(l.Price, l.Rate))
		}
	}
	slices.Sort(prices)
	slices.Sort(hours)
	if p.Offers = len(prices); p.Offers > 0 {
		p.Lowest, p.Median, p.Highest = prices[0], prices[len(prices)/2], prices[len(prices)-1]
	}
	if len(hours) > 0 {
		p.Hourly = hours[len(hours)/2]
	}
	return p
}

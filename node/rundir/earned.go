package rundir

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/reward"
)

// JobSum is the coins that an account received and lost in a job, or in an epoch.
type JobSum struct {
	Job          string `json:"job"`
	ReceivedUzen uint64 `json:"received_uzen"`
	LostUzen     uint64 `json:"lost_uzen"` // of the stake
	Receipts     int    `json:"receipts"`
	Unpaid       int    `json:"unpaid"` // receipts of nothing
}

// ByJob sums receipts up by job, in the order of the first of each.
func ByJob(receipts []Explanation) []JobSum {
	list := []JobSum{}
	index := map[string]int{}
	for _, r := range receipts {
		i, ok := index[r.Job]
		if !ok {
			i = len(list)
			index[r.Job] = i
			list = append(list, JobSum{Job: r.Job})
		}
		s := &list[i]
		s.Receipts++
		add(r, &s.ReceivedUzen, &s.LostUzen, &s.Unpaid)
	}
	return list
}

// ByDay sums receipts up by the day of their blocks, the latest first. day is asked what day a height is of, which
// never falls as heights rise; it is asked about few of them.
func ByDay(receipts []Explanation, day func(height int64) (string, error)) ([]api.EarnedDay, error) {
	var heights []int64
	for _, r := range receipts {
		heights = append(heights, r.Height)
	}
	slices.Sort(heights)
	of := map[int64]string{}
	if err := dates(slices.Compact(heights), day, of); err != nil {
		return nil, err
	}
	list := []api.EarnedDay{}
	for _, r := range receipts {
		i := slices.IndexFunc(list, func(d api.EarnedDay) bool { return d.Day == of[r.Height] })
		if i < 0 {
			i = len(list)
			list = append(list, api.EarnedDay{Day: of[r.Height]})
		}
		d := &list[i]
		d.Receipts++
		add(r, &d.ReceivedUzen, &d.LostUzen, &d.Unpaid)
	}
	slices.SortFunc(list, func(a, b api.EarnedDay) int { return cmp.Compare(b.Day, a.Day) })
	return list, nil
}

// dates finds the days of heights in order: between two of one day all are of that day.
func dates(heights []int64, day func(int64) (string, error), of map[int64]string) (err error) {
	if len(heights) == 0 {
		return nil
	}
	first, last := heights[0], heights[len(heights)-1]
	for _, h := range []int64{first, last} {
		if _, known := of[h]; known {
			continue
		}
		if of[h], err = day(h); err != nil {
			return err
		}
	}
	if of[first] == of[last] {
		for _, h := range heights {
			of[h] = of[first]
		}
		return nil
	}
	half := len(heights) / 2
	if err := dates(heights[:half], day, of); err != nil {
		return err
	}
	return dates(heights[half:], day, of)
}

// CoinSum is an account's amounts in a coin other than ZEN, in its grains.
type CoinSum struct {
	Coin     coin.Coin `json:"coin"`
	Received uint64    `json:"received"`
	Lost     uint64    `json:"lost"` // of its stake in the coin, and to its delegators
}

// ByCoin sums receipts in other coins than ZEN, by coin.
func ByCoin(receipts []Explanation) []CoinSum {
	list := []CoinSum{}
	for _, r := range receipts {
		if r.Coin.Own() || r.Kind == reward.Refund || r.Kind == reward.Deposit {
			continue
		}
		i := slices.IndexFunc(list, func(s CoinSum) bool { return s.Coin == r.Coin })
		if i < 0 {
			i, list = len(list), append(list, CoinSum{Coin: r.Coin})
		}
		if r.Kind.Lost() {
			list[i].Lost += r.Amount
		} else {
			list[i].Received += r.Amount
		}
	}
	slices.SortFunc(list, func(a, b CoinSum) int { return cmp.Compare(a.Coin.Denom, b.Coin.Denom) })
	return list
}

// add adds a receipt to sums in ZEN; ByCoin has amounts in other coins.
func add(r Explanation, received, lost *uint64, unpaid *int) {
	switch {
	case !r.Coin.Own() && r.Amount > 0:
	case r.Kind.Lost():
		*lost += r.Amount
	case r.Amount == 0:
		*unpaid++
	default:
		*received += r.Amount
	}
}

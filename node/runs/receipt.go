package runs

import (
	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/coins"
	"github.com/starling-network/starling/protocol/reward"
)

// line is one record of receipts.jsonl. Its rounds are counted from 1, those of a reward.Receipt from 0.
type line struct {
	reward.Receipt
	Round uint32 `json:"round"`
}

func explain(lines []line, disputes []api.Dispute) []api.Receipt {
	all := make([]reward.Receipt, len(lines))
	for i, l := range lines {
		all[i] = l.Receipt
		all[i].Round = max(l.Round, 1) - 1
	}
	return Explain(all, disputes)
}

// Explain says of all receipts of a job what can be said about them.
func Explain(all []reward.Receipt, disputes []api.Dispute) []api.Receipt {
	out := make([]api.Receipt, len(all))
	for i, r := range all {
		out[i] = api.Receipt{
			Seq: r.Seq, Height: r.Height, Round: int(r.Round) + 1, Unit: r.Unit, Who: r.Who, Kind: string(r.Kind),
			Flops: r.Flops, Price: r.Price, Amount: r.Amount, Fee: r.Fee,
			Reason: r.Reason, Fix: r.Fix, Explanation: reward.Explain(r), Why: reward.Reason(r),
			Arithmetic: reward.Arithmetic(r, all), Payer: r.Payer, Coin: coins.Shown(r.Coin),
		}
		if r.Role != 0 {
			out[i].Role = r.Role.String()
		}
		if out[i].Arithmetic == nil {
			out[i].Arithmetic = []string{}
		}
		if r.OfDispute() {
			out[i].Dispute = disputeOf(out[i], disputes)
		}
	}
	return out
}

// disputeOf finds the dispute that a receipt comes from: it ended in the same block, over the same unit.
func disputeOf(r api.Receipt, disputes []api.Dispute) *int {
	for i, d := range disputes {
		if d.Round == r.Round && d.Unit == r.Unit && d.Height == r.Height {
			return &i
		}
	}
	return nil
}

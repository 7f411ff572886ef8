package ledger

import (
	"context"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"

	"github.com/starling-network/starling/chain/adapter"
)

// Transfer is coins that a message sends.
type Transfer struct {
	From, To string
	Uzen     uint64
}

// transfers are the coins that a message sends from one account to another.
func transfers(m sdk.Msg) (list []Transfer) {
	switch m := m.(type) {
	case *banktypes.MsgSend:
		list = append(list, Transfer{m.FromAddress, m.ToAddress, uzenOf(m.Amount)})
	case *banktypes.MsgMultiSend:
		from := ""
		if len(m.Inputs) == 1 { // the chain takes no more
			from = m.Inputs[0].Address
		}
		for _, out := range m.Outputs {
			list = append(list, Transfer{from, out.Address, uzenOf(out.Coins)})
		}
	}
	return list
}

// uzenOf is an amount of the coin of the network; one that 64 bits do not hold, which no account has, is 0.
func uzenOf(coins sdk.Coins) uint64 {
	for _, c := range coins {
		if c.Denom == adapter.Denom && !c.Amount.IsNil() && c.Amount.IsUint64() {
			return c.Amount.Uint64()
		}
	}
	return 0
}

// metasOfPage is how many headers of blocks a validator tells at a time.
const metasOfPage = 20

// Busy lists the heights of blocks with transactions, of the count blocks below a height, the latest first. It ends
// early at a block that is not kept any more.
func (l Ledger) Busy(ctx context.Context, before int64, count int) (heights []int64, err error) {
	last := max(1, before-int64(count))
	for top := before - 1; top >= last; top -= metasOfPage {
		r, err := l.rpc.BlockchainInfo(ctx, max(last, top-metasOfPage+1), top)
		if err != nil {
			return nil, fmt.Errorf("client: %w", err)
		}
		if len(r.BlockMetas) == 0 {
			break
		}
		for _, m := range r.BlockMetas {
			busy, err := l.busy(ctx, m.Header.Height, m.NumTxs)
			if err != nil {
				return nil, err
			}
			if busy {
				heights = append(heights, m.Header.Height)
			}
		}
	}
	return heights, nil
}

// busy reports whether a block has a signed transaction: its first may be the extensions of the votes.
func (l Ledger) busy(ctx context.Context, height int64, txs int) (bool, error) {
	if txs != 1 {
		return txs > 1, nil
	}
	b, err := l.rpc.Block(ctx, &height)
	if err != nil {
		return false, fmt.Errorf("client: %w", err)
	}
	_, ok := describe(b.Block.Txs[0])
	return ok, nil
}

package ledger

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/starling-network/starling/client/query"
)

// ReceiptID names a receipt: a job, an epoch or a model, and the number in it.
type ReceiptID struct {
	Job string
	Seq uint64
}

// Issued is the time of a block, and the transactions of it that issued receipts, by these: hashes in hexadecimal. A
// receipt that is not in it was issued by the rules of the block itself, as those of final rounds and of epochs are.
// The error wraps query.ErrNotFound if the validator does not keep the block.
func (l Ledger) Issued(ctx context.Context, height int64) (at time.Time, by map[ReceiptID]string, _ error) {
	b, err := l.rpc.Block(ctx, &height)
	if err != nil {
		return at, nil, fmt.Errorf("%w: block %d: %w", query.ErrNotFound, height, err)
	}
	results, err := l.rpc.BlockResults(ctx, &height)
	if err != nil {
		return at, nil, fmt.Errorf("client: %w", err)
	}
	by = map[ReceiptID]string{}
	for i, raw := range b.Block.Txs[:min(len(b.Block.Txs), len(results.TxsResults))] {
		ids, err := receiptsOf(results.TxsResults[i].Events)
		if err != nil {
			return at, nil, fmt.Errorf("client: block %d: %w", height, err)
		}
		for _, id := range ids {
			by[id] = hex.EncodeToString(cmttypes.Tx(raw).Hash())
		}
	}
	return b.Block.Time, by, nil
}

// receiptsOf are the receipts that events tell of.
func receiptsOf(events []abci.Event) (ids []ReceiptID, err error) {
	for _, e := range events {
		if e.Type != "starling.training.v1.EventReceipt" {
			continue
		}
		var id ReceiptID
		for _, a := range e.Attributes { // as JSON; numbers of 64 bits are texts
			switch a.Key {
			case "job":
				err = errors.Join(err, json.Unmarshal([]byte(a.Value), &id.Job))
			case "seq":
				var text string
				err = errors.Join(err, json.Unmarshal([]byte(a.Value), &text))
				if _, failed := fmt.Sscan(text, &id.Seq); failed != nil {
					err = errors.Join(err, failed)
				}
			}
		}
		ids = append(ids, id)
	}
	return ids, err
}

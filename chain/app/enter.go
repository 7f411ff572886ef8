package app

import (
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/app/lane"
	"github.com/starling-network/starling/chain/app/room"
)

// enters adds a transaction that passed every other check to the lane.
type enters struct{ app *App }

// AnteHandle implements sdk.AnteDecorator.
func (e enters) AnteHandle(ctx sdk.Context, tx sdk.Tx, simulate bool, next sdk.AnteHandler) (sdk.Context, error) {
	if !ctx.IsCheckTx() || ctx.IsReCheckTx() || simulate {
		return next(ctx, tx, simulate)
	}
	price, err := feesOf(e.app).price(ctx)
	if err != nil {
		return ctx, err
	}
	w := lane.Waiting{Declared: room.Declare(tx, len(ctx.TxBytes())), Tx: ctx.TxBytes()}
	w.Charged = feesOf(e.app).asks(ctx, price, w.Gas) > 0
	if w.Account != "" {
		w.Rank = feesOf(e.app).rank(ctx, w.Account, tx.GetMsgs())
		w.Look(ctx, keepersOf(e.app).training, tx)
	}
	if w.Rank == 0 {
		accuses, bonded := feesOf(e.app).outsider(ctx, w.Account, tx.GetMsgs())
		switch {
		case accuses && bonded:
			w.Outsider, w.Rank = true, 2
		case accuses:
			w.Outsider, w.Rank = true, 3
		}
	}
	if err := e.app.lane.Add(w); err != nil {
		return ctx, err
	}
	return next(ctx, tx, simulate)
}

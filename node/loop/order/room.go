package order

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"time"

	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/tinker"
)

// Bytes is what the data of a step take: seven numbers of four bytes for each token.
func (s Shape) Bytes() int64 { return 28 * int64(s.Rows) * int64(s.Length) }

// Fits reports why sequences have no place in a step.
func Fits(data []tinker.Datum, s Shape) error {
	if len(data) > s.Rows {
		return failure.New(http.StatusUnprocessableEntity, "BATCH_TOO_LARGE",
			fmt.Sprintf("the batches of a step have %d sequences, and the run of the model is for %d", len(data), s.Rows),
			"send the whole batch again, with fewer sequences before optim_step, or start the server for more of them")
	}
	for i, d := range data {
		if len(d.Tokens) > s.Length {
			return failure.New(http.StatusUnprocessableEntity, "BATCH_TOO_LARGE",
				fmt.Sprintf("sequence %d of the step has %d tokens, and the run of the model is for %d", i, len(d.Tokens),
					s.Length), "send the whole batch again, with shorter sequences")
		}
	}
	return nil
}

// NoRoom is an error of a disk that has no room for clients; nil: another error.
func NoRoom(err error) error {
	if !errors.Is(err, blob.ErrFull) && !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return nil
	}
	return errors.Join(&failure.Error{Status: http.StatusInsufficientStorage, Code: "DISK_FULL",
		Detail: "the disk of the server has no room for the data of the step, which is not taken",
		Fix:    "make room on the disk of the server, then send the batch and the step again", Retry: time.Minute}, err)
}

// DataFull says that the data of runs in a folder take as many bytes as they may.
func DataFull(dir string, most int64) error {
	return failure.New(http.StatusInsufficientStorage, "DATA_FULL", fmt.Sprintf(
		"the data of the step do not fit: those of all runs in %s may take %d MiB together", dir, most>>20),
		"unload models that are done, or start the server with fewer --runs-kept or a larger --run-data, then send the "+
			"batch and the step again")
}

// fees is what is left in the account for the fees of an order and of the data of its first rounds, in uzen.
const fees = 200_000

// Funded reports why an account cannot pay for a run with a budget in uzen.
func Funded(ctx context.Context, chain *client.Client, budget uint64) error {
	has, err := chain.Coins.Balance(ctx, chain.Address())
	if err != nil && !errors.Is(err, client.ErrNotFound) {
		return Unreachable(err)
	}
	if need := budget + fees; has < need {
		text := coin.Coin{}.Text
		return failure.New(http.StatusPaymentRequired, "WALLET_EMPTY",
			fmt.Sprintf("the account of the server, %s, has %s, and a run needs %s, for its budget and fees", chain.Address(),
				text(has), text(need)),
			"send it more, wait until jobs and runs are over, or start the server with a smaller budget of runs")
	}
	return nil
}

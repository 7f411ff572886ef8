// Package sale has the two sides of a sale of files for coins, by the rules of protocol/sale: a seller that encrypts
// the files of a folder, serves them over HTTP and answers orders, and a buyer that downloads, checks, orders, decrypts
// and complains. Both keep their state in a folder, and continue after a restart.
//
// The package knows no chain: an interface of a few methods reads and writes the orders.
package sale

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/protocol/sale"
)

// SellerMarket is the part of a network that a seller needs.
type SellerMarket interface {
	Offer(ctx context.Context, id uint64) (sale.Offer, error)
	// Orders lists all orders of an offer, including those that are over.
	Orders(ctx context.Context, offer uint64) ([]sale.Order, error)
	Answer(ctx context.Context, order uint64, answer []byte) error
	// Reject gives up orders that are paid and not answered, at most sale.MaxRejected.
	Reject(ctx context.Context, orders []uint64) error
}

// BuyerMarket is the part of a network that a buyer needs. The network takes an order of a buyer with a mask once:
// Place fails if an earlier transaction with it was taken.
type BuyerMarket interface {
	Offer(ctx context.Context, id uint64) (sale.Offer, error)
	// Orders lists all orders of an offer, including those that are over.
	Orders(ctx context.Context, offer uint64) ([]sale.Order, error)
	Order(ctx context.Context, id uint64) (sale.Order, error)
	Place(ctx context.Context, offer uint64, mask canon.Digest, box []byte) (order uint64, err error)
	Complain(ctx context.Context, order uint64, mask []byte, e sale.Evidence) error
}

// hasOnly refuses a folder that has other entries than these and its lock.
func hasOnly(dir string, names ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Name() != ".lock" && !slices.Contains(names, e.Name()) {
			return &fault.Error{Code: fault.Exists, What: dir + " has a file that is of no sale: " + e.Name(),
				Fix: "give a folder that is empty or does not exist"}
		}
	}
	return err
}

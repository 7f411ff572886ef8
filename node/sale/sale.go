// Package sale has the two sides of a sale of files for coins, by the rules of protocol/sale: a seller that encrypts
// the files of a folder, serves them over HTTP and answers orders, and a buyer that downloads, checks, orders, decrypts
// and complains. Both keep their state in a folder, and continue after a restart.
//
// The package knows no chain: an interface of a few methods reads and writes the orders.
package sale

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
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
}

// BuyerMarket is the part of a network that a buyer needs. Place signs with the next sequence number of the account
// that the network knows, so that of two transactions with one order the network takes one.
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

// writeSecret replaces a file that only its owner can read with a value as JSON. After a crash it is either the old or
// the new one.
func writeSecret(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	part := path + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil {
		_ = d.Sync() // some systems cannot
		_ = d.Close()
	}
	return nil
}

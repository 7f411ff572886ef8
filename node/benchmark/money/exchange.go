package money

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/protocol/sale"
)

// exchange seals a file for a sale, checks it as a buyer does before it pays, and unseals it.
func exchange(ctx context.Context, dir string, size int) (x Exchange, err error) {
	x.Bytes = size
	folder := filepath.Join(dir, "goods")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return x, err
	}
	// the work does not depend on the bytes
	if err := os.WriteFile(filepath.Join(folder, "model.safetensors"), make([]byte, size), 0o644); err != nil {
		return x, err
	}
	key := canon.Sum("starling/bench/money/key")
	sealed := filepath.Join(dir, "sealed")
	began := time.Now()
	content, err := goods.Seal(ctx, goods.Source{Folder: folder}, sealed, sale.OneKey, key[:], nil)
	if err != nil {
		return x, err
	}
	x.Seal = lap(&began)
	index, err := goods.Examine(sealed, content)
	if err != nil {
		return x, err
	}
	if err := goods.CheckSealed(ctx, sealed, index, content); err != nil {
		return x, err
	}
	x.Check = lap(&began)
	if err := goods.Unseal(ctx, sealed, filepath.Join(dir, "unsealed"), content, index, key[:], nil); err != nil {
		return x, err
	}
	x.Unseal = lap(&began)
	return x, nil
}

// lap returns the seconds since a time, and moves it to now.
func lap(since *time.Time) float64 {
	now := time.Now()
	seconds := now.Sub(*since).Seconds()
	*since = now
	return seconds
}

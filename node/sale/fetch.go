package sale

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/node/download"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/protocol/sale"
)

// stall is the longest time without a byte, after which the next location is tried. A large file that is continued is
// read first.
const stall = 5 * time.Minute

// fetch gets the index and the encrypted file from the locations of an offer, and the opening of drawn leaves if the
// buyer wants one, and checks them. Files that are there and right are not downloaded again.
func (b Buyer) fetch(ctx context.Context, o sale.Offer) (x *goods.Index, err error) {
	t, c := o.Terms, o.Terms.Content
	err = b.get(ctx, t, goods.FileIndex, goods.MaxIndex, func() error {
		x, err = goods.Examine(b.Dir, c)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = b.get(ctx, t, goods.FileSealed, int64(c.Bytes), func() error { return goods.CheckSealed(ctx, b.Dir, x, c) })
	if err != nil || b.Openings == nil {
		return x, err
	}
	leaves := o.Drawn(b.Openings.Leaves())
	if leaves == nil {
		return nil, unproven(o)
	}
	return x, b.get(ctx, t, goods.FileOpening, opening.MaxOpening, func() error {
		return goods.CheckOpening(b.Dir, x, c, leaves, b.Openings)
	})
}

// unproven says why an offer has no drawn leaves.
func unproven(o sale.Offer) error {
	e := &fault.Error{Code: fault.BadOpening, What: fmt.Sprintf("offer %d has no proof about drawn leaves", o.ID),
		Fix: "buy from another seller, or without a proof: nothing is paid"}
	if o.Draws() {
		e.What = fmt.Sprintf("the leaves of offer %d are not drawn yet", o.ID)
		e.Fix = "run the command again after the next block: nothing is paid"
	}
	return e
}

// get gets a file that passes a check. A file that does not is removed.
func (b Buyer) get(ctx context.Context, t sale.Terms, name string, most int64, check func() error) error {
	path := filepath.Join(b.Dir, name)
	err := check()
	if bad, ok := errors.AsType[*fault.Error](err); err == nil || ctx.Err() != nil ||
		ok && bad.Code == fault.Disk && !errors.Is(err, fs.ErrNotExist) { // it may be right
		return err
	}
	var failures []error
	for _, location := range t.Locations {
		_, err := os.Stat(path + ".part")
		resumed := err == nil // perhaps the bytes of another location
		for range 2 {
			if err = b.try(ctx, location, name, most, check); err == nil || ctx.Err() != nil {
				return err
			}
			if bad, ok := errors.AsType[*fault.Error](err); !resumed || !ok || bad.Code == fault.Disk {
				break
			}
		}
		failures = append(failures, fmt.Errorf("%s: %w", location, err))
	}
	return &fault.Error{Code: fault.Unreachable, Err: errors.Join(failures...),
		What: "no location of the offer gives the file " + name,
		Fix:  "try later, or buy from another seller: this purchase pays nothing before it has the files"}
}

// try downloads a file from one location, and checks it.
func (b Buyer) try(ctx context.Context, location, name string, most int64, check func() error) error {
	path := filepath.Join(b.Dir, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fault.OnDisk(err)
	}
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("it is no URL of HTTP")
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer idle.Stop()
	say := b.progress(name)
	_, err = download.Get(inner, download.File{URL: u.JoinPath(name).String(), Path: path, Max: most, Retry: b.retry,
		Say: func(done, whole int64) {
			idle.Reset(stall)
			if say != nil {
				say(done, whole)
			}
		}})
	if err != nil {
		if errors.Is(context.Cause(inner), errStalled) {
			return errStalled
		}
		return err
	}
	idle.Stop()
	if err := check(); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

var errStalled = errors.New("no byte arrived for five minutes")

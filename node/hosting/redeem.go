package hosting

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/starling-network/starling/protocol/hosting"
)

// Network is the part of a network that a provider needs.
type Network interface {
	// Channels lists the open channels of an account, as provider or as payer.
	Channels(ctx context.Context, account string, provider bool) ([]hosting.Channel, error)
	Redeem(ctx context.Context, v hosting.Voucher, total uint64) (hosting.Split, error)
	Close(ctx context.Context, channel uint64) error
}

// Redeemer redeems the vouchers of a provider.
type Redeemer struct {
	Network  Network
	Provider string
	Model    uint64 // number: its channels alone
	Vouchers *Vouchers
	Least    uint64 // grains for which a voucher is redeemed while its channel is open
	Log      *slog.Logger

	mu     sync.Mutex
	earned hosting.Split

	looking sync.Mutex
	looked  time.Time // when the latest look began
}

// Look looks at the channels of the network. Calls at the same time share one look: strangers cause them.
func (r *Redeemer) Look(ctx context.Context) error {
	asked := time.Now()
	r.looking.Lock()
	defer r.looking.Unlock()
	if r.looked.After(asked) {
		return nil
	}
	began := time.Now()
	channels, err := r.Network.Channels(ctx, r.Provider, true)
	if err != nil {
		return err
	}
	r.looked = began
	r.Vouchers.Seen(slices.DeleteFunc(channels, func(c hosting.Channel) bool { return c.Model != r.Model }))
	return nil
}

// Run redeems vouchers until the context ends. next waits for the next block. A voucher is redeemed when it is worth
// its transaction, and when its channel closes, which the provider then settles.
func (r *Redeemer) Run(ctx context.Context, next func(ctx context.Context) (int64, error)) error {
	for {
		r.turn(ctx, r.Least)
		if _, err := next(ctx); err != nil {
			if ctx.Err() == nil {
				return err
			}
			return nil
		}
	}
}

// Finish redeems everything that was earned.
func (r *Redeemer) Finish(ctx context.Context) { r.turn(ctx, 1) }

// Earned are the grains that were redeemed since the process began, as they were divided.
func (r *Redeemer) Earned() hosting.Split {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.earned
}

// turn redeems the vouchers that are due. A failure is tried again in the next turn.
func (r *Redeemer) turn(ctx context.Context, least uint64) {
	if err := r.Look(ctx); err != nil {
		r.Log.Warn("the channels of the network are not known", "error", err)
		return
	}
	for _, d := range r.Vouchers.Due(least) {
		if d.Amount > 0 {
			s, err := r.Network.Redeem(ctx, d.Voucher, d.Total)
			if err != nil {
				r.Log.Warn("a voucher is not redeemed; the next block tries again", "channel", d.Voucher.Channel, "error", err)
				continue
			}
			if err := r.Vouchers.Redeemed(d.Voucher.Channel, d.Total); err != nil {
				r.Log.Warn("a redemption is not recorded", "channel", d.Voucher.Channel, "error", err)
			}
			r.add(s)
			r.Log.Info("a voucher is redeemed", "channel", d.Voucher.Channel, "grains", d.Amount, "provider", s.Provider,
				"shares", s.Part, "fee", s.Fee)
		}
		if d.Closes {
			if err := r.Network.Close(ctx, d.Voucher.Channel); err != nil {
				r.Log.Warn("a channel is not closed; the next block tries again", "channel", d.Voucher.Channel, "error", err)
			}
		}
	}
	lost, err := r.Vouchers.Forget()
	for id, grains := range lost {
		r.Log.Warn("a channel is closed, and not all of it was redeemed; its voucher is kept", "channel", id, "grains",
			grains)
	}
	if err != nil {
		r.Log.Warn("files of settled channels are left", "error", err)
	}
}

func (r *Redeemer) add(s hosting.Split) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.earned.Fee, r.earned.Part, r.earned.Provider = r.earned.Fee+s.Fee, r.earned.Part+s.Part, r.earned.Provider+s.Provider
}

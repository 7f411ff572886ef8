package hosting

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/protocol/hosting"
)

// Errors of payments.
var (
	ErrChannel = errors.New("no open channel pays this provider by this voucher")
	ErrShort   = errors.New("the voucher is for less than was earned and this request can cost")
)

// account is what a provider knows of a channel.
type account struct {
	channel hosting.Channel
	kept    kept
	open    bool   // on the network, when it was last looked at
	pending uint64 // grains that requests under way can cost
	told    bool   // that it was settled before all was redeemed
}

// kept is the file of a channel.
type kept struct {
	Channel uint64          `json:"channel"`
	Voucher hosting.Voucher `json:"voucher"` // for the largest amount
	Earned  uint64          `json:"earned"`  // grains that answers cost since the channel was opened

	Redeemed uint64 `json:"redeemed"` // grains of them
}

// Vouchers are the vouchers of a provider, which it keeps in a folder: it writes a voucher before it answers the
// request, and the cost after it. A provider that is killed loses the cost of the requests under way at most.
type Vouchers struct {
	dir, chain string
	unlock     func() error

	mu       sync.Mutex
	accounts map[uint64]*account
}

// OpenVouchers opens a folder of vouchers of a network. One process at a time uses it. The caller closes it.
func OpenVouchers(dir, chain string) (*Vouchers, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := folder.Lock(dir)
	if err != nil {
		return nil, err
	}
	v := &Vouchers{dir: dir, chain: chain, unlock: unlock, accounts: map[uint64]*account{}}
	if err := v.read(); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return v, nil
}

// Close lets another process use the folder.
func (v *Vouchers) Close() error { return v.unlock() }

func (v *Vouchers) read() error {
	entries, err := os.ReadDir(v.dir)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		id, bad := strconv.ParseUint(name, 10, 64)
		if err != nil || !ok || bad != nil {
			continue
		}
		a := &account{}
		err = folder.ReadJSON(filepath.Join(v.dir, e.Name()), &a.kept)
		if err == nil && a.kept.Channel == id && a.kept.Voucher.Chain == v.chain {
			v.accounts[id] = a
		}
	}
	return err
}

// Seen takes over the open channels of the provider, as the network has them.
func (v *Vouchers) Seen(channels []hosting.Channel) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.accounts {
		a.open = false
	}
	for _, c := range channels {
		a := v.accounts[c.ID]
		if a == nil {
			a = &account{kept: kept{Channel: c.ID}}
			v.accounts[c.ID] = a
		}
		a.channel, a.open, a.told = c, true, false
		a.redeemed(c.Redeemed)
		a.kept.Earned = max(a.kept.Earned, c.Redeemed) // the file was lost
	}
}

// Knows reports whether a channel was open when the network was last looked at.
func (v *Vouchers) Knows(channel uint64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.accounts[channel]
	return a != nil && a.open
}

// Total is the amount that a voucher of a channel must be for, at least, before a request that can cost most grains.
func (v *Vouchers) Total(channel, most uint64) uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	if a := v.accounts[channel]; a != nil {
		return a.kept.Earned + a.pending + most
	}
	return 0
}

// Hold is the part of a channel that a request under way can cost.
type Hold struct {
	of   *Vouchers
	at   *account
	most uint64
	done bool
}

// Admit takes a voucher for a request that can cost most grains. The error wraps ErrChannel, ErrShort or a rule of
// protocol/hosting.
func (v *Vouchers) Admit(x hosting.Voucher, most uint64) (*Hold, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.accounts[x.Channel]
	if a == nil || !a.open || a.channel.Until > 0 {
		return nil, fmt.Errorf("%w: channel %d is closed, or closes", ErrChannel, x.Channel)
	}
	if err := x.Check(a.channel, v.chain); err != nil {
		return nil, err
	}
	if need := a.kept.Earned + a.pending + most; x.Amount < need {
		return nil, fmt.Errorf("%w: %d grains, wanted %d", ErrShort, x.Amount, need)
	}
	if x.Amount > a.kept.Voucher.Amount {
		next := a.kept
		next.Voucher = x
		if err := v.write(next); err != nil {
			return nil, err
		}
		a.kept = next
	}
	a.pending += most
	return &Hold{of: v, at: a, most: most}, nil
}

// Settle ends a hold with the cost of the request, at most that of the hold. It returns the payer, and the grains that
// the channel has earned in all.
func (h *Hold) Settle(cost uint64) (payer string, earned uint64, _ error) {
	h.of.mu.Lock()
	defer h.of.mu.Unlock()
	if h.done {
		return h.at.channel.Payer, h.at.kept.Earned, nil
	}
	h.done = true
	h.at.pending -= h.most
	h.at.kept.Earned += min(cost, h.most)
	return h.at.channel.Payer, h.at.kept.Earned, h.of.write(h.at.kept)
}

func (v *Vouchers) write(k kept) error { return folder.WriteSecretJSON(v.path(k.Channel), k) }

func (v *Vouchers) path(channel uint64) string {
	return filepath.Join(v.dir, strconv.FormatUint(channel, 10)+".json")
}

// Due is a channel that a provider can redeem.
type Due struct {
	Voucher hosting.Voucher
	Total   uint64 // grains to redeem in all
	Amount  uint64 // grains that are not redeemed of them
	Closes  bool   // the payer asked to close, and no request is under way
}

// Due lists the channels with at least an amount to redeem, and those that close: a reader that is slow to read its
// answer keeps none from being redeemed.
func (v *Vouchers) Due(least uint64) (list []Due) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.accounts {
		if !a.open {
			continue
		}
		d := Due{Voucher: a.kept.Voucher, Total: min(a.kept.Earned, a.kept.Voucher.Amount),
			Closes: a.channel.Until > 0 && a.pending == 0}
		d.Voucher.Channel = a.channel.ID
		d.Amount = d.Total - min(d.Total, a.channel.Redeemed)
		if d.Closes || d.Amount > 0 && (d.Amount >= least || a.channel.Until > 0) {
			list = append(list, d)
		}
	}
	return list
}

// Redeemed records that a channel was redeemed up to a total.
func (v *Vouchers) Redeemed(channel, total uint64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := v.accounts[channel]
	if a == nil {
		return nil
	}
	a.redeemed(total)
	return v.write(a.kept)
}

// redeemed takes over a total of the network, or of a redemption that a node behind does not know yet.
func (a *account) redeemed(total uint64) {
	a.kept.Redeemed = max(a.kept.Redeemed, total)
	a.channel.Redeemed = a.kept.Redeemed
}

// Forget removes the files of channels that are settled and redeemed. It returns the grains of those that were not
// redeemed, once, by channel. Their vouchers stay: a node that is behind may not know the channels yet.
func (v *Vouchers) Forget() (lost map[uint64]uint64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	lost = map[uint64]uint64{}
	for id, a := range v.accounts {
		if a.open || a.pending > 0 {
			continue
		}
		if a.kept.Earned > a.kept.Redeemed {
			if !a.told {
				lost[id] = a.kept.Earned - a.kept.Redeemed
			}
			a.told = true
			continue
		}
		delete(v.accounts, id)
		if removed := os.Remove(v.path(id)); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	return lost, err
}

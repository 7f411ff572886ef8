package sale

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/sale/fault"
	"github.com/starling-network/starling/node/sale/goods"
	"github.com/starling-network/starling/proof/opening"
	"github.com/starling-network/starling/protocol/sale"
)

const (
	fileOrder = "order.json"
	// patience is the number of blocks in which the network takes an order that was sent before a restart.
	patience = 5
)

// Buyer buys the files of one offer.
type Buyer struct {
	Market  BuyerMarket
	Address string // account that pays
	Offer   uint64
	Dir     string // of its work: the mask, the index and the encrypted file; of one offer
	To      string // folder of the files
	// of proofs about drawn leaves, one of which the buyer wants before it pays; nil: it wants none
	Openings *opening.Verifier
	Next     func(ctx context.Context) error
	Say      func(step string, done, total int64) // reports progress in bytes; may be nil
	retry    time.Duration
}

// Kind is how a purchase ended.
type Kind string

// Ends of a purchase.
const (
	Bought     Kind = "bought"     // the files are there
	Unanswered Kind = "unanswered" // the seller did not answer: the price is back
	Lied       Kind = "lied"       // the seller lied: the price is back, and half of the bond for the first complaint
)

// Outcome is the end of a purchase.
type Outcome struct {
	Kind   Kind
	Order  uint64
	Folder string // of the files that were bought
	Leaf   int64  // first leaf that is not its digest; -1: the key is another
	Amount uint64 // grains that the buyer got back
	Opened int    // drawn leaves that a proof showed before the order
}

// ticket is the file of a buyer that only its owner can read. It is written before the order.
type ticket struct {
	Offer  uint64 `json:"offer"`
	Mask   []byte `json:"mask"`
	Sent   bool   `json:"sent"`             // the order may be on the network
	Opened int    `json:"opened,omitempty"` // leaves that a proof showed before that
	Leaf   int64  `json:"leaf,omitempty"`   // of the complaint
	Amount uint64 `json:"amount,omitempty"` // of the complaint
}

// Buy buys the files. It may end at any moment: another call with the same folders continues, and orders nothing twice.
func (b Buyer) Buy(ctx context.Context) (Outcome, error) {
	if err := os.MkdirAll(b.Dir, 0o700); err != nil {
		return Outcome{}, fault.OnDisk(err)
	}
	unlock, err := folder.Lock(b.Dir)
	if err != nil {
		return Outcome{}, err
	}
	out, err := b.buy(ctx)
	return out, errors.Join(err, unlock())
}

func (b Buyer) buy(ctx context.Context) (out Outcome, _ error) {
	offer, err := b.Market.Offer(ctx, b.Offer)
	if err != nil {
		return Outcome{}, err
	}
	t, err := b.ticket()
	if err != nil {
		return Outcome{}, err
	}
	defer func() { out.Opened = t.Opened }()
	order, placed, err := b.placed(ctx, t)
	if err != nil {
		return Outcome{}, err
	}
	if out, over := t.refunded(offer, order); placed && over {
		return out, nil
	}
	if !placed && offer.Closed() {
		return Outcome{}, &fault.Error{Code: fault.Closed, What: fmt.Sprintf("offer %d takes no new orders", b.Offer),
			Fix: "buy from another seller: nothing is paid"}
	}
	if placed { // what a proof shows before the payment is of no use any more
		b.Openings = nil
	}
	x, err := b.fetch(ctx, offer)
	if err != nil {
		return Outcome{}, err
	}
	if had, err := b.had(ctx, x, placed); err != nil || had {
		return b.bought(offer, order), err
	}
	if !placed {
		if order, err = b.place(ctx, offer, t); err != nil {
			return Outcome{}, err
		}
	}
	return b.settle(ctx, offer, order, t, x)
}

// ticket reads the file of the order, or draws a mask and writes it.
func (b Buyer) ticket() (*ticket, error) {
	t, path := &ticket{}, filepath.Join(b.Dir, fileOrder)
	err := folder.ReadJSON(path, t)
	if errors.Is(err, fs.ErrNotExist) {
		t.Offer, t.Mask = b.Offer, make([]byte, sale.KeyBytes)
		_, _ = rand.Read(t.Mask) // it never fails
		if err = hasOnly(b.Dir, fileOrder+".part"); err == nil {
			err = b.keep(t)
		}
	}
	if err == nil && t.Offer != b.Offer {
		err = &fault.Error{Code: fault.OtherOffer, What: fmt.Sprintf("%s is of a purchase from offer %d", b.Dir, t.Offer),
			Fix: "give another folder for this purchase"}
	}
	if err == nil && len(t.Mask) != sale.KeyBytes {
		err = fmt.Errorf("%s: a mask of %d bytes, wanted %d", path, len(t.Mask), sale.KeyBytes)
	}
	return t, fault.OnDisk(err)
}

func (b Buyer) keep(t *ticket) error {
	return fault.OnDisk(folder.WriteSecretJSON(filepath.Join(b.Dir, fileOrder), t))
}

// placed finds the order of the mask. If it was sent and the network has it not, it may come with one of the next
// blocks.
func (b Buyer) placed(ctx context.Context, t *ticket) (order sale.Order, found bool, err error) {
	if !t.Sent {
		return order, false, nil
	}
	for n := 0; ; n++ {
		if order, found, err = b.find(ctx, t); err != nil || found || n == patience {
			return order, found, err
		}
		if err := b.Next(ctx); err != nil {
			return order, false, err
		}
	}
}

func (b Buyer) find(ctx context.Context, t *ticket) (sale.Order, bool, error) {
	orders, err := b.Market.Orders(ctx, b.Offer)
	for _, o := range orders {
		if o.Buyer == b.Address && o.Mask == sale.MaskDigest(t.Mask) {
			return o, true, err
		}
	}
	return sale.Order{}, false, err
}

// had reports whether the folder has the files from an earlier call. One that has anything else is refused.
func (b Buyer) had(ctx context.Context, x *goods.Index, placed bool) (bool, error) {
	same, err := goods.Present(ctx, b.To, x)
	if err == nil && same && !placed {
		err = &fault.Error{Code: fault.Exists, What: b.To + " has the files of the offer already",
			Fix: "use them, or give a folder that is empty or does not exist: nothing is paid"}
	}
	return same, err
}

// place orders. The file of the order says so before the network knows it.
func (b Buyer) place(ctx context.Context, offer sale.Offer, t *ticket) (sale.Order, error) {
	box, err := BoxMask(offer.Terms.Seal, offer.ID, b.Address, t.Mask)
	if err != nil {
		return sale.Order{}, err
	}
	t.Sent, t.Opened = true, 0
	if b.Openings != nil {
		t.Opened = b.Openings.Leaves()
	}
	if err := b.keep(t); err != nil {
		return sale.Order{}, err
	}
	id, err := b.Market.Place(ctx, offer.ID, sale.MaskDigest(t.Mask), box)
	if err != nil { // the network may have it in spite of the error
		if order, found, failed := b.find(ctx, t); failed == nil && found {
			return order, nil
		}
		return sale.Order{}, err
	}
	return b.Market.Order(ctx, id)
}

// settle waits for the answer, and decrypts the files or complains.
func (b Buyer) settle(ctx context.Context, offer sale.Offer, order sale.Order, t *ticket,
	x *goods.Index) (Outcome, error) {
	for order.Phase == sale.Paid {
		if err := b.Next(ctx); err != nil {
			return Outcome{}, err
		}
		if now, err := b.Market.Order(ctx, order.ID); err == nil { // else the next block tells
			order = now
		}
	}
	if out, over := t.refunded(offer, order); over {
		return out, nil
	}
	err := goods.Unseal(ctx, b.Dir, b.To, offer.Terms.Content, x, sale.Unmask(order.Answer, t.Mask), b.progress("decrypt"))
	if lie, ok := errors.AsType[*goods.Lie](err); ok {
		return b.complain(ctx, offer, order, t, lie)
	}
	if err != nil {
		return Outcome{}, err
	}
	return b.bought(offer, order), nil
}

// bought is the outcome of an order whose files are there.
func (b Buyer) bought(offer sale.Offer, order sale.Order) Outcome {
	out := Outcome{Kind: Bought, Order: order.ID, Folder: b.To}
	if order.Phase == sale.Expired { // another buyer showed a lie
		out.Amount = offer.Terms.Price
	}
	return out
}

// refunded is the outcome of an order that is over without files.
func (t *ticket) refunded(offer sale.Offer, order sale.Order) (Outcome, bool) {
	switch {
	case order.Phase == sale.Rejected, order.Phase == sale.Expired && len(order.Answer) == 0:
		return Outcome{Kind: Unanswered, Order: order.ID, Amount: offer.Terms.Price}, true
	case order.Phase == sale.Refunded:
		return Outcome{Kind: Lied, Order: order.ID, Leaf: t.Leaf, Amount: t.Amount}, true
	}
	return Outcome{}, false
}

// complain shows the lie until the network takes the complaint, or the window ends.
func (b Buyer) complain(ctx context.Context, offer sale.Offer, order sale.Order, t *ticket,
	lie *goods.Lie) (Outcome, error) {
	t.Leaf = int64(lie.Evidence.Index)
	if lie.OfKey() {
		t.Leaf = -1
	}
	var failed error
	for {
		if now, err := b.Market.Offer(ctx, b.Offer); err == nil { // else the last one that was known
			offer = now
		}
		if out, over := t.refunded(offer, order); over {
			return out, nil
		}
		if order.Phase == sale.Expired { // another buyer showed a lie first
			return Outcome{Kind: Lied, Order: order.ID, Leaf: t.Leaf, Amount: offer.Terms.Price}, nil
		}
		if order.Phase != sale.Answered {
			return Outcome{}, &fault.Error{Code: fault.Late, Err: errors.Join(lie, failed),
				What: "the seller lied, has the price, and the window of complaints is over",
				Fix:  "run the next purchase until it ends: a complaint counts within the window of the offer only"}
		}
		t.Amount = offer.Terms.Price + offer.Compensation()
		if err := b.keep(t); err != nil {
			return Outcome{}, err
		}
		failed = b.Market.Complain(ctx, order.ID, t.Mask, lie.Evidence)
		for settled := false; !settled; {
			now, err := b.Market.Order(ctx, order.ID)
			if settled = err == nil; settled {
				order = now
			}
			if !settled || order.Phase == sale.Answered {
				if err := b.Next(ctx); err != nil {
					return Outcome{}, errors.Join(err, failed)
				}
			}
		}
	}
}

func (b Buyer) progress(step string) func(done, total int64) {
	if b.Say == nil {
		return nil
	}
	return func(done, total int64) { b.Say(step, done, total) }
}

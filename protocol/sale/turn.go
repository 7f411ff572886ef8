package sale

import (
	"crypto/subtle"
	"fmt"
)

// Place is an order of a buyer for an offer at a height. The network locks the price.
func (o Offer) Place(id uint64, order Order, height int64) (Offer, Order, error) {
	switch {
	case o.Closed():
		return o, order, fmt.Errorf("%w: %d", ErrClosed, o.ID)
	case o.Open >= maxOrders:
		return o, order, fmt.Errorf("%w: %d", ErrMany, o.Open)
	case order.Buyer == "" || order.Buyer == o.Seller:
		return o, order, fmt.Errorf("%w: the seller buys its own files", ErrParty)
	case order.Mask.IsZero() || len(order.Box) != MaskBoxBytes:
		return o, order, fmt.Errorf("%w: a sealed mask of %d bytes, wanted %d and its digest", ErrOrder, len(order.Box),
			MaskBoxBytes)
	}
	o.Open++
	return o, Order{ID: id, Offer: o.ID, Buyer: order.Buyer, Mask: order.Mask, Box: order.Box, Phase: Paid,
		Until: height + int64(o.Terms.Answer)}, nil
}

// Reply is the answer of the seller: the key of the files, masked for the buyer.
func (o Offer) Reply(order Order, sender string, answer []byte, height int64) (Order, error) {
	switch {
	case sender != o.Seller:
		return order, fmt.Errorf("%w: %s sells %d", ErrParty, o.Seller, o.ID)
	case o.Lied:
		return order, fmt.Errorf("%w: %d", ErrClosed, o.ID)
	case order.Phase != Paid || height > order.Until:
		return order, fmt.Errorf("%w: %s until block %d", ErrPhase, order.Phase, order.Until)
	case len(answer) != KeyBytes:
		return order, fmt.Errorf("%w: an answer of %d bytes, wanted %d", ErrOrder, len(answer), KeyBytes)
	}
	order.Phase, order.Answer, order.Until = Answered, answer, height+int64(o.Terms.Complaint)
	return order, nil
}

// Reject ends an order that the seller will not answer, such as one whose box has no mask. The buyer has the price
// back.
func (o Offer) Reject(order Order, sender string) (Offer, Order, []Payment, error) {
	switch {
	case sender != o.Seller:
		return o, order, nil, fmt.Errorf("%w: %s sells %d", ErrParty, o.Seller, o.ID)
	case order.Phase != Paid:
		return o, order, nil, fmt.Errorf("%w: order %d is %s", ErrPhase, order.ID, order.Phase)
	}
	order.Phase = Rejected
	o, payments := o.settle([]Payment{{order.Buyer, o.Terms.Price}})
	return o, order, payments, nil
}

// settle ends an order. The last one of an offer that is closed returns the bond.
func (o Offer) settle(payments []Payment) (Offer, []Payment) {
	held := o.Held()
	o.Open--
	if o.Over() && held > 0 {
		payments = append(payments, Payment{o.Seller, held})
	}
	return o, payments
}

// Complain is the complaint of a buyer, with the mask and the evidence. If they show a lie, the buyer gets the
// price back, and a part of the bond of the seller unless another buyer has it.
func (o Offer) Complain(order Order, sender string, mask []byte, e Evidence, height int64) (Offer, Order, []Payment,
	error) {
	switch {
	case sender != order.Buyer:
		return o, order, nil, fmt.Errorf("%w: %s ordered %d", ErrParty, order.Buyer, order.ID)
	case order.Phase != Answered || height > order.Until:
		return o, order, nil, fmt.Errorf("%w: %s until block %d", ErrPhase, order.Phase, order.Until)
	case len(mask) != KeyBytes || MaskDigest(mask) != order.Mask:
		return o, order, nil, fmt.Errorf("%w: it is not the mask of the order", ErrEvidence)
	}
	if err := e.Shows(o.Terms.Content, Unmask(order.Answer, mask)); err != nil {
		return o, order, nil, err
	}
	payments := []Payment{{order.Buyer, o.Terms.Price + o.Compensation()}}
	if left := o.Held() - o.Compensation(); left > 0 {
		payments = append(payments, Payment{"", left})
	}
	o.Lied = true
	o.Open--
	order.Phase = Refunded
	return o, order, payments, nil
}

// Expire ends the phase of an order whose last block is past: the seller has the price if it answered and no buyer has
// shown a lie, otherwise the buyer has it back.
func (o Offer) Expire(order Order, height int64) (Offer, Order, []Payment) {
	if !order.Open() || height <= order.Until {
		return o, order, nil
	}
	payments := []Payment{{order.Buyer, o.Terms.Price}}
	if order.Phase == Answered && !o.Lied {
		payments[0].To = o.payee()
		order.Phase = Settled
		o.Sold++
	} else {
		order.Phase = Expired
	}
	o, payments = o.settle(payments)
	return o, order, payments
}

// Withdraw closes an offer for new orders. The bond returns to the seller once no order is open.
func (o Offer) Withdraw(sender string) (Offer, []Payment, error) {
	switch {
	case sender != o.Seller:
		return o, nil, fmt.Errorf("%w: %s sells %d", ErrParty, o.Seller, o.ID)
	case o.Closed():
		return o, nil, fmt.Errorf("%w: %d", ErrClosed, o.ID)
	}
	held := o.Held()
	if o.Withdrawn = true; o.Over() && held > 0 {
		return o, []Payment{{o.Seller, held}}, nil
	}
	return o, nil, nil
}

// Unmask returns the key in an answer; with a key in place of the answer, the answer.
func Unmask(answer, mask []byte) []byte {
	key := make([]byte, KeyBytes)
	subtle.XORBytes(key, answer, mask)
	return key
}

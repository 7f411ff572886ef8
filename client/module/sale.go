package module

import (
	"context"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/sale/salepb"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/sale"
)

// Sale sends the messages and the queries of x/sale: files that are sold for coins.
type Sale struct{ account Account }

// Create offers files on these terms, and returns the number of the offer. It locks the bond.
func (s Sale) Create(ctx context.Context, t sale.Terms) (uint64, error) {
	c := t.Content
	m := &salepb.MsgOffer{Sender: s.account.Address(), Name: t.Name, Price: t.Price, Denom: t.Denom, Bond: t.Bond,
		Content: salepb.Content{Plain: c.Plain[:], Sealed: c.Sealed[:], Leaves: c.Leaves, Bytes: c.Bytes, Key: c.Key[:],
			Index: c.Index[:], Scheme: uint32(c.Scheme)},
		Answer: t.Answer, Complaint: t.Complaint, Seal: t.Seal, Locations: t.Locations, Job: t.Job,
		Listing: t.Listing, SellerPart: t.SellerPart}
	var r salepb.MsgOfferResponse
	err := ask(ctx, s.account, m, &r)
	return r.Offer, err
}

// Find is the number of the latest offer of the account whose files have the key with this digest; 0: there is none.
func (s Sale) Find(ctx context.Context, key canon.Digest) (uint64, error) {
	found := uint64(0)
	err := s.pages(ctx, true, func(o sale.Offer) bool {
		if o.Seller == s.account.Address() && o.Terms.Content.Key == key {
			found = o.ID
		}
		return found > 0
	})
	return found, err
}

// Withdraw closes an offer of the account for new orders.
func (s Sale) Withdraw(ctx context.Context, offer uint64) error {
	return send(ctx, s.account, &salepb.MsgWithdraw{Sender: s.account.Address(), Offer: offer})
}

// Place orders the files of an offer and locks the price. The mask is given by its digest, and encrypted to the seller.
// It returns the number of the order.
func (s Sale) Place(ctx context.Context, offer uint64, mask canon.Digest, box []byte) (uint64, error) {
	var r salepb.MsgOrderResponse
	err := ask(ctx, s.account, &salepb.MsgOrder{Sender: s.account.Address(), Offer: offer, Mask: mask[:], Box: box}, &r)
	return r.Order, err
}

// Answer answers an order with the masked key.
func (s Sale) Answer(ctx context.Context, order uint64, answer []byte) error {
	return send(ctx, s.account, &salepb.MsgAnswer{Sender: s.account.Address(), Order: order, Answer: answer})
}

// Reject gives up orders of the offers of the account, at most sale.MaxRejected, and the buyers their prices back.
func (s Sale) Reject(ctx context.Context, orders []uint64) error {
	return send(ctx, s.account, &salepb.MsgReject{Sender: s.account.Address(), Orders: orders})
}

// Complain shows that the seller of an order of the account lied.
func (s Sale) Complain(ctx context.Context, order uint64, mask []byte, e sale.Evidence) error {
	return send(ctx, s.account, &salepb.MsgComplain{Sender: s.account.Address(), Order: order, Mask: mask,
		Evidence: canon.MustMarshal(e)})
}

// Offers are the offers that take orders, or all, the latest first.
func (s Sale) Offers(ctx context.Context, all bool) ([]sale.Offer, error) {
	var list []sale.Offer
	err := s.pages(ctx, all, func(o sale.Offer) bool {
		list = append(list, o)
		return false
	})
	return list, err
}

// pages gives the offers, the latest first, until one is enough.
func (s Sale) pages(ctx context.Context, all bool, enough func(sale.Offer) bool) error {
	for next := (&salepb.QueryOffersRequest{All: all}); ; {
		r, err := salepb.NewQueryClient(s.account).Offers(ctx, next)
		page, err := query.List[sale.Offer](r.GetOffers(), err)
		if err != nil || len(page) == 0 || slices.ContainsFunc(page, enough) {
			return err
		}
		if next.Before = page[len(page)-1].ID; next.Before == 1 {
			return nil
		}
	}
}

// Offer is an offer; query.ErrNotFound if there is none with this number.
func (s Sale) Offer(ctx context.Context, id uint64) (sale.Offer, error) {
	r, err := salepb.NewQueryClient(s.account).Offer(ctx, &salepb.QueryOfferRequest{Offer: id})
	return query.One[sale.Offer](r.GetOffer(), err)
}

// Orders are the orders of an offer, in their order.
func (s Sale) Orders(ctx context.Context, offer uint64) ([]sale.Order, error) {
	var list []sale.Order
	for next := (&salepb.QueryOrdersRequest{Offer: offer}); ; {
		r, err := salepb.NewQueryClient(s.account).Orders(ctx, next)
		page, err := query.List[sale.Order](r.GetOrders(), err)
		if err != nil || len(page) == 0 {
			return list, err
		}
		list = append(list, page...)
		next.After = page[len(page)-1].ID
	}
}

// Order is an order; query.ErrNotFound if there is none with this number.
func (s Sale) Order(ctx context.Context, id uint64) (sale.Order, error) {
	r, err := salepb.NewQueryClient(s.account).Order(ctx, &salepb.QueryOrderRequest{Order: id})
	return query.One[sale.Order](r.GetOrder(), err)
}

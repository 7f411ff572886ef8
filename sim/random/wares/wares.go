// Package wares draws messages of sales of files: of honest sellers, of sellers that lie, and of their buyers.
package wares

import (
	"context"
	"fmt"

	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/sale/salepb"
	"github.com/starling-network/starling/protocol/catalog"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/sale"
	"github.com/starling-network/starling/sim/random/draw"
)

// Index is the digest of the description of all files.
var Index = canon.Leaf([]byte("index"))

// Book has the listings, offers and orders of the chain.
type Book interface {
	Listings(ctx context.Context, parent uint64) ([]catalog.Listing, error)
	Offers(ctx context.Context, all bool) ([]sale.Offer, error)
	Orders(ctx context.Context, offer uint64) ([]sale.Order, error)
}

// A ware is a file of one leaf, which its name determines.
type ware struct {
	key, sealed []byte
	plain       canon.Digest // of the leaf, by the word of the seller
	content     sale.Content
}

// wareOf is the file of a name. Every third seller lies about its leaf.
func wareOf(name string) ware {
	key, file := canon.Sum("random/sale/key", []byte(name)), []byte("the file "+name)
	scheme := sale.Scheme(key[1] % 2)
	lies := key[0]%3 == 0
	key[0] &= 0x1f // every such number is a key of both schemes
	w := ware{key: key[:], sealed: make([]byte, len(file)), plain: canon.Leaf(file)}
	x, err := scheme.NewCipher(w.key)
	if err != nil {
		panic(err) // the key has the right length
	}
	x.Leaf(0, w.sealed, file)
	if lies {
		w.plain = canon.Leaf([]byte("another file"))
	}
	w.content = sale.Content{Plain: canon.NewTree([]canon.Digest{w.plain}).Root(),
		Sealed: canon.NewTree([]canon.Digest{canon.Leaf(w.sealed)}).Root(), Leaves: 1, Bytes: uint64(len(file)),
		Key: scheme.KeyDigest(w.key), Index: Index, Scheme: scheme}
	return w
}

// maskOf is the mask of a buyer.
func maskOf(buyer string) []byte {
	mask := canon.Sum("random/sale/mask", []byte(buyer))
	return mask[:]
}

// Next is any message of a sale and its sender; "": there is none. me offers and buys, at a price in a coin.
func Next(ctx context.Context, d draw.Source, b Book, me string, c coin.Coin, price uint64) (sender string, m sdk.Msg,
	_ error) {
	switch n := d.Intn(16); {
	case n < 2:
		return sell(ctx, d, b, me, c, price)
	case n < 6:
		return buy(ctx, d, b, me)
	}
	return settle(ctx, d, b)
}

// sell offers files, half of the time those of a listing.
func sell(ctx context.Context, d draw.Source, b Book, seller string, c coin.Coin, price uint64) (string, sdk.Msg,
	error) {
	listed, err := b.Listings(ctx, 0)
	m := offer(d, seller, c, price)
	if err == nil && len(listed) > 0 && d.Often(50) {
		l := draw.Pick(d, listed)
		m.Sender, m.Listing, m.SellerPart = l.Owner, l.ID, uint32(d.Below(1_100_000))
	}
	return m.Sender, m, err
}

func offer(d draw.Source, seller string, c coin.Coin, price uint64) *salepb.MsgOffer {
	name := fmt.Sprintf("%x", d.Uint64())
	w := wareOf(name).content
	return &salepb.MsgOffer{Sender: seller, Name: name, Price: price, Denom: c.Denom,
		Bond: price / 4, Answer: uint32(d.UpTo(20, 26)), Complaint: uint32(d.UpTo(20, 26)),
		Content: salepb.Content{Plain: w.Plain[:], Sealed: w.Sealed[:], Leaves: w.Leaves, Bytes: w.Bytes, Key: w.Key[:],
			Index: w.Index[:], Scheme: uint32(w.Scheme)},
		Seal: make([]byte, sale.SealKeyBytes), Locations: []string{"http://127.0.0.1/"}}
}

// buy orders the files of an offer, now and then of one that is closed.
func buy(ctx context.Context, d draw.Source, b Book, buyer string) (sender string, m sdk.Msg, _ error) {
	offers, err := b.Offers(ctx, d.Often(10))
	if err != nil || len(offers) == 0 {
		return "", nil, err
	}
	mask := sale.MaskDigest(maskOf(buyer))
	return buyer, &salepb.MsgOrder{Sender: buyer, Offer: draw.Pick(d, offers).ID, Mask: mask[:],
		Box: make([]byte, sale.MaskBoxBytes)}, nil
}

// settle answers an order, complains about one, or withdraws an offer, most of the time at the right moment.
func settle(ctx context.Context, d draw.Source, b Book) (sender string, m sdk.Msg, _ error) {
	offers, err := b.Offers(ctx, true)
	if err != nil || len(offers) == 0 {
		return "", nil, err
	}
	if o := draw.Pick(d, offers); d.Often(3) {
		return o.Seller, &salepb.MsgWithdraw{Sender: o.Seller, Offer: o.ID}, nil
	}
	for _, o := range draw.Mixed(d, offers) {
		if o.Open == 0 {
			continue
		}
		orders, err := b.Orders(ctx, o.ID)
		if err != nil {
			return "", nil, err
		}
		for _, r := range draw.Mixed(d, orders) {
			switch {
			case r.Phase == sale.Paid && d.Often(5):
				return o.Seller, &salepb.MsgReject{Sender: o.Seller, Orders: []uint64{r.ID}}, nil
			case r.Phase == sale.Paid && !d.Often(5):
				return o.Seller, answer(d, o, r), nil
			case r.Phase == sale.Answered && d.Often(50) || d.Often(2):
				return r.Buyer, complaint(o, r), nil
			}
		}
	}
	return "", nil, nil
}

// answer is the key, and now and then another.
func answer(d draw.Source, o sale.Offer, r sale.Order) sdk.Msg {
	key := wareOf(o.Terms.Name).key
	if d.Often(20) {
		key = maskOf("another key")
	}
	return &salepb.MsgAnswer{Sender: o.Seller, Order: r.ID, Answer: sale.Unmask(key, maskOf(r.Buyer))}
}

// complaint is about the leaf, whether the seller lied or not.
func complaint(o sale.Offer, r sale.Order) sdk.Msg {
	w := wareOf(o.Terms.Name)
	return &salepb.MsgComplain{Sender: r.Buyer, Order: r.ID, Mask: maskOf(r.Buyer),
		Evidence: canon.MustMarshal(sale.Evidence{Leaf: w.sealed, Plain: w.plain})}
}

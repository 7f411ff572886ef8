package beacon

import (
	"bytes"
	"context"
	"errors"

	"cosmossdk.io/collections"
	abci "github.com/cometbft/cometbft/abci/types"

	"github.com/starling-network/starling/protocol/threshold"
)

// A ceremony makes the key of a group of validators. What they say in it they say in their votes: first everybody
// deals, then everybody complains about deals that are wrong, or says that there is nothing to complain about.

// Limits of a ceremony, in blocks and for a block.
const (
	// that deals are waited for, unless all are there; longer if those of two thirds of the power are not
	dealing     = 20
	longest     = 100 // after which a ceremony without them begins anew
	complaining = 20  // that complaints are waited for, unless all say that they have none
	lifetime    = 100 // that a group signs before another roster takes its place
	patience    = 100 // without a value, after which a group signs no longer
	mostDeals   = 16  // taken of a block
	mostShown   = 4   // complaints heard in a block
)

// What is known of the deal of a member.
const (
	none  = 0
	right = 1
	wrong = 2
)

// ceremony is one that goes on.
type ceremony struct {
	Roster threshold.Roster `cbor:"1,keyasint"`
	Began  int64            `cbor:"2,keyasint"` // height
	Closed int64            `cbor:"3,keyasint"` // height after which no deal is taken; 0: not yet
	Deals  []uint8          `cbor:"4,keyasint"` // none, right or wrong, by member
	Heard  []bool           `cbor:"5,keyasint"` // members that may complain no more
}

// group is who signs the beacons from the votes of a height on.
type group struct {
	Roster  threshold.Roster `cbor:"1,keyasint"`
	Dealers []uint32         `cbor:"2,keyasint"` // members whose deals make the key
	Public  []byte           `cbor:"3,keyasint"`
	From    int64            `cbor:"4,keyasint"`
}

// groups are the one that signs and the one that will.
type groups struct {
	List []group `cbor:"1,keyasint"`
}

// at is the group that signs the votes of a height.
func (g groups) at(height int64) (group, bool) {
	for i := len(g.List) - 1; i >= 0; i-- {
		if height >= g.List[i].From {
			return g.List[i], true
		}
	}
	return group{}, false
}

// member is the place of a validator in a roster; -1 if it has none.
func member(r threshold.Roster, validator []byte) int {
	for i, m := range r.Members {
		if bytes.Equal(m.Address, validator) {
			return i
		}
	}
	return -1
}

// item reads what may not be there yet.
func item[T any](ctx context.Context, i collections.Item[T]) (v T, ok bool, err error) {
	v, err = i.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return v, false, nil
	}
	return v, err == nil, err
}

// said is the ballot of a validator.
type said struct {
	validator abci.Validator
	ballot    ballot
}

// ceremonies are those in which validators make the shares of the key that a keeper's beacons are made with.
type ceremonies struct{ *Keeper }

// proceed takes what the votes of a block say for the keys of groups.
func (k ceremonies) proceed(ctx context.Context, height int64, votes []said, powers []abci.Validator) error {
	for _, v := range votes {
		if len(v.ballot.Key) == 0 || threshold.CheckKey(v.ballot.Key) != nil {
			continue
		}
		if err := k.members.Set(ctx, v.validator.Address, v.ballot.Key); err != nil {
			return err
		}
	}
	c, ok, err := item(ctx, k.ceremony)
	switch {
	case err != nil:
		return err
	case !ok:
		return k.begin(ctx, height, powers)
	case c.Closed == 0:
		return k.deal(ctx, c, height, votes)
	default:
		return k.complain(ctx, c, height, votes)
	}
}

// begin starts a ceremony if there is no group, or one of another roster for long enough.
func (k ceremonies) begin(ctx context.Context, height int64, powers []abci.Validator) error {
	g, _, err := item(ctx, k.groups)
	if err != nil {
		return err
	}
	if n := len(g.List); n > 0 && height < g.List[n-1].From+lifetime {
		return nil
	}
	var members []threshold.Member
	var with, total int64
	for _, p := range powers {
		total += p.Power
		key, err := k.members.Get(ctx, p.Address)
		if errors.Is(err, collections.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		with += p.Power
		members = append(members, threshold.Member{Address: p.Address, Key: key, Power: p.Power})
	}
	if with <= total/3*2 {
		return nil
	}
	epoch, err := k.epoch.Peek(ctx)
	if err != nil {
		return err
	}
	roster, err := threshold.NewRoster(k.chainID(ctx), epoch+1, members)
	if err != nil {
		return nil // too many validators for a group: outputs of their VRF keys are combined
	}
	if n := len(g.List); n > 0 && alike(g.List[n-1].Roster, roster) {
		return nil
	}
	if _, err := k.epoch.Next(ctx); err != nil {
		return err
	}
	return k.ceremony.Set(ctx, ceremony{Roster: roster, Began: height, Deals: make([]uint8, len(members)),
		Heard: make([]bool, len(members))})
}

// alike reports whether two rosters have the same members with the same keys and shares.
func alike(a, b threshold.Roster) bool {
	if len(a.Members) != len(b.Members) || a.Threshold != b.Threshold {
		return false
	}
	for _, m := range a.Members {
		i := member(b, m.Address)
		if i < 0 || !bytes.Equal(b.Members[i].Key, m.Key) || b.Members[i].Shares != m.Shares {
			return false
		}
	}
	return true
}

// deal takes deals, until all are there or enough after a time.
func (k ceremonies) deal(ctx context.Context, c ceremony, height int64, votes []said) error {
	taken := 0
	for _, v := range votes {
		i := member(c.Roster, v.validator.Address)
		if i < 0 || v.ballot.Deal == nil || v.ballot.Epoch != c.Roster.Epoch || c.Deals[i] != none || taken == mostDeals {
			continue
		}
		taken++
		c.Deals[i] = wrong
		if v.ballot.Deal.Check(c.Roster, i) == nil {
			c.Deals[i] = right
			if err := k.deals.Set(ctx, collections.Join(c.Roster.Epoch, uint64(i)), *v.ballot.Deal); err != nil {
				return err
			}
		}
	}
	have, total := c.power()
	switch {
	case !bytes.Contains(c.Deals, []byte{none}) && have > total/3*2, height >= c.Began+dealing && have > total/3*2:
		c.Closed = height
	case height >= c.Began+longest:
		return k.abandon(ctx, c)
	}
	return k.ceremony.Set(ctx, c)
}

// power of the members whose deals are right, and of all.
func (c ceremony) power() (have, total int64) {
	for i, m := range c.Roster.Members {
		total += m.Power
		if c.Deals[i] == right {
			have += m.Power
		}
	}
	return have, total
}

// complain hears who complains, and ends the ceremony when nobody may any more.
func (k ceremonies) complain(ctx context.Context, c ceremony, height int64, votes []said) error {
	heard := 0
	for _, v := range votes {
		i := member(c.Roster, v.validator.Address)
		if i < 0 || v.ballot.Epoch != c.Roster.Epoch || c.Heard[i] {
			continue
		}
		complaint := v.ballot.Complaint
		switch {
		case complaint == nil:
			c.Heard[i] = v.ballot.Done
			continue
		case heard == mostShown:
			continue
		}
		heard++
		dealer := complaint.Dealer
		if int(dealer) >= len(c.Deals) || c.Deals[dealer] == none {
			c.Heard[i] = true
			continue
		}
		if c.Deals[dealer] == wrong { // by the complaint of another in this block
			continue
		}
		d, err := k.deals.Get(ctx, collections.Join(c.Roster.Epoch, uint64(dealer)))
		if err != nil {
			return err
		}
		if complaint.Upheld(d, c.Roster, i) {
			c.Deals[dealer] = wrong
		} else {
			c.Heard[i] = true // who complains wrongly is heard once
		}
	}
	for _, h := range c.Heard {
		if !h && (heard > 0 || height < c.Closed+complaining) { // who complains silences a deal or itself: that ends
			return k.ceremony.Set(ctx, c)
		}
	}
	return k.end(ctx, c, height)
}

// end makes the group of a ceremony: it signs the votes of the second block from here on, so that it is known to all
// before.
func (k ceremonies) end(ctx context.Context, c ceremony, height int64) error {
	have, total := c.power()
	if have <= total/3 {
		return k.abandon(ctx, c) // those that are left could all be of one mind
	}
	next := group{Roster: c.Roster, From: height + 2}
	for i, d := range c.Deals {
		if d == right {
			next.Dealers = append(next.Dealers, uint32(i))
		}
	}
	deals, err := k.dealt(ctx, c.Roster.Epoch, next.Dealers)
	if err != nil {
		return err
	}
	if next.Public, err = threshold.Public(deals); err != nil {
		return k.abandon(ctx, c)
	}
	g, _, err := item(ctx, k.groups)
	if err != nil {
		return err
	}
	now, ok := g.at(height)
	g.List = []group{next}
	first := c.Roster.Epoch
	if ok {
		g.List = []group{now, next}
		first = now.Roster.Epoch
	}
	return errors.Join(
		k.groups.Set(ctx, g), k.ceremony.Remove(ctx),
		k.deals.Clear(ctx, collections.NewPrefixUntilPairRange[uint64, uint64](first-1)),
	)
}

// dealt are the deals of members in a ceremony.
func (k *Keeper) dealt(ctx context.Context, epoch uint64, dealers []uint32) ([]threshold.Deal, error) {
	out := make([]threshold.Deal, len(dealers))
	for i, d := range dealers {
		var err error
		if out[i], err = k.deals.Get(ctx, collections.Join(epoch, uint64(d))); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// abandon ends a ceremony without a group. The next block begins another.
func (k ceremonies) abandon(ctx context.Context, c ceremony) error {
	return errors.Join(k.ceremony.Remove(ctx),
		k.deals.Clear(ctx, collections.NewPrefixedPairRange[uint64, uint64](c.Roster.Epoch)))
}

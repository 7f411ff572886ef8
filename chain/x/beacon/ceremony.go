package beacon

import (
	"bytes"
	"context"
	"errors"

	"cosmossdk.io/collections"
	abci "github.com/cometbft/cometbft/abci/types"

	"github.com/starling-network/starling/protocol/threshold"
)

// A ceremony makes the key of a group of validators. Its messages are parts of votes: first every member deals, then
// every member complains about a wrong deal or reports that it has no complaint.

// Limits of a ceremony, in blocks, or per block.
const (
	// wait for deals, unless all have arrived; longer if the deals of two thirds of the power are missing
	dealing     = 20
	longest     = 100 // after which a ceremony without them restarts
	complaining = 20  // wait for complaints, unless all members report that they have none
	lifetime    = 100 // that a group signs before a group of another roster replaces it
	patience    = 100 // without a beacon, after which the groups are dropped
	mostDeals   = 16  // taken from a block
	mostShown   = 4   // complaints handled in a block
)

// State of the deal of a member.
const (
	none  = 0
	right = 1
	wrong = 2
)

// ceremony is a ceremony under way.
type ceremony struct {
	Roster threshold.Roster `cbor:"1,keyasint"`
	Began  int64            `cbor:"2,keyasint"` // height
	Closed int64            `cbor:"3,keyasint"` // height after which no deal is accepted; 0: not yet set
	Deals  []uint8          `cbor:"4,keyasint"` // none, right or wrong, by member
	Heard  []bool           `cbor:"5,keyasint"` // members that may not complain any more
}

// group signs the beacons from the votes of height From on.
type group struct {
	Roster  threshold.Roster `cbor:"1,keyasint"`
	Dealers []uint32         `cbor:"2,keyasint"` // members whose deals make the key
	Public  []byte           `cbor:"3,keyasint"`
	From    int64            `cbor:"4,keyasint"`
}

// groups are the group that signs and the group that will sign next.
type groups struct {
	List []group `cbor:"1,keyasint"`
}

// at returns the group that signs the votes of a height.
func (g groups) at(height int64) (group, bool) {
	for i := len(g.List) - 1; i >= 0; i-- {
		if height >= g.List[i].From {
			return g.List[i], true
		}
	}
	return group{}, false
}

// member returns the index of a validator in a roster; -1 if it is not in the roster.
func member(r threshold.Roster, validator []byte) int {
	for i, m := range r.Members {
		if bytes.Equal(m.Address, validator) {
			return i
		}
	}
	return -1
}

// item reads an item that may be missing.
func item[T any](ctx context.Context, i collections.Item[T]) (v T, ok bool, err error) {
	v, err = i.Get(ctx)
	if errors.Is(err, collections.ErrNotFound) {
		return v, false, nil
	}
	return v, err == nil, err
}

// voteExtension is the validator of a vote, and its ballot.
type voteExtension struct {
	validator abci.Validator
	ballot    ballot
}

// ceremonies runs the ceremonies in which validators make the shares of the beacon's key.
type ceremonies struct{ *Keeper }

// proceed processes the ballots of a block that concern keys of groups.
func (k ceremonies) proceed(ctx context.Context, height int64, votes []voteExtension, powers []abci.Validator) error {
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

// begin starts a ceremony if there is no group, or if the roster has changed and the group has signed for lifetime
// blocks.
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
		return nil // too many validators for a group: the beacon combines their VRF outputs
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

// deal processes deals, until all have arrived, or enough have after a time.
func (k ceremonies) deal(ctx context.Context, c ceremony, height int64, votes []voteExtension) error {
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

// power returns the voting power of the members whose deals are right, and of all members.
func (c ceremony) power() (have, total int64) {
	for i, m := range c.Roster.Members {
		total += m.Power
		if c.Deals[i] == right {
			have += m.Power
		}
	}
	return have, total
}

// complain processes complaints, and ends the ceremony when no member may complain any more.
func (k ceremonies) complain(ctx context.Context, c ceremony, height int64, votes []voteExtension) error {
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
		if c.Deals[dealer] == wrong { // by another complaint in this block
			continue
		}
		d, err := k.deals.Get(ctx, collections.Join(c.Roster.Epoch, uint64(dealer)))
		if err != nil {
			return err
		}
		if complaint.Upheld(d, c.Roster, i) {
			c.Deals[dealer] = wrong
		} else {
			c.Heard[i] = true // a member may make one wrong complaint
		}
	}
	for _, h := range c.Heard {
		if !h && (heard > 0 || height < c.Closed+complaining) { // each complaint removes a deal or its sender, so this ends
			return k.ceremony.Set(ctx, c)
		}
	}
	return k.end(ctx, c, height)
}

// end makes the group of a ceremony. The group signs from the votes of the second next block on, so that all validators
// know it before.
func (k ceremonies) end(ctx context.Context, c ceremony, height int64) error {
	have, total := c.power()
	if have <= total/3 {
		return k.abandon(ctx, c) // the remaining dealers could all be malicious
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

// dealt returns the deals of the given members in a ceremony.
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

// abandon ends a ceremony without a group. The next block starts another.
func (k ceremonies) abandon(ctx context.Context, c ceremony) error {
	return errors.Join(k.ceremony.Remove(ctx),
		k.deals.Clear(ctx, collections.NewPrefixedPairRange[uint64, uint64](c.Roster.Epoch)))
}

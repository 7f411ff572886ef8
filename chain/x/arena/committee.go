package arena

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/arena"
	"github.com/starling-network/starling/protocol/committee"
)

// ErrNoCommittee is returned where there is no such committee.
var ErrNoCommittee = errors.New("arena: no such committee")

// committees are the collections of committees, whose rounds are contests.
type committees struct {
	groups    collections.Map[uint64, committee.Committee]
	lastGroup collections.Sequence
	members   collections.Map[opinionKey, committee.Member] // committee, account
	records   collections.Map[opinionKey, committee.Member] // of accounts that left
	waiting   collections.KeySet[untilKey]                  // last block of Idle and Drawing
}

func newCommittees(b *collections.SchemaBuilder) committees {
	u64 := collections.Uint64Key
	return committees{
		groups: collections.NewMap(b, collections.NewPrefix(8), "committees", u64,
			adapter.Record[committee.Committee]()),
		lastGroup: collections.NewSequence(b, collections.NewPrefix(9), "last_committee"),
		members: collections.NewMap(b, collections.NewPrefix(10), "members",
			collections.PairKeyCodec(u64, collections.StringKey), adapter.Record[committee.Member]()),
		waiting: collections.NewKeySet(b, collections.NewPrefix(11), "waiting",
			collections.PairKeyCodec(collections.Int64Key, u64)),
		records: collections.NewMap(b, collections.NewPrefix(12), "records",
			collections.PairKeyCodec(u64, collections.StringKey), adapter.Record[committee.Member]()),
	}
}

// group returns a committee.
func (k *Keeper) group(ctx context.Context, id uint64) (committee.Committee, error) {
	c, err := k.groups.Get(ctx, id)
	if errors.Is(err, collections.ErrNotFound) {
		err = fmt.Errorf("%w: %d", ErrNoCommittee, id)
	}
	return c, err
}

// member returns a member of a committee, or the record of an account that left it; the zero value for an account that
// was no member.
func (k *Keeper) member(ctx context.Context, id uint64, who string) (committee.Member, error) {
	m, err := k.members.Get(ctx, collections.Join(id, who))
	if errors.Is(err, collections.ErrNotFound) {
		m, err = k.records.Get(ctx, collections.Join(id, who))
	}
	if errors.Is(err, collections.ErrNotFound) {
		return committee.Member{}, nil
	}
	return m, err
}

// joined are the members of a committee, by their addresses.
func (k *Keeper) joined(ctx context.Context, id uint64) (list []committee.Member, err error) {
	err = k.members.Walk(ctx, collections.NewPrefixedPairRange[uint64, string](id),
		func(_ opinionKey, m committee.Member) (bool, error) {
			list = append(list, m)
			return false, nil
		})
	return list, err
}

// waits reports whether the phase of a committee ends at a block.
func waits(c committee.Committee) bool {
	return c.Phase == committee.Idle || c.Phase == committee.Drawing
}

// keep stores a committee in its new state, in place of the old one.
func (k *Keeper) keep(ctx context.Context, old, c committee.Committee) error {
	errs := []error{k.groups.Set(ctx, c.ID, c)}
	if waits(old) {
		errs = append(errs, k.waiting.Remove(ctx, collections.Join(old.Until, old.ID)))
	}
	if waits(c) {
		errs = append(errs, k.waiting.Set(ctx, collections.Join(c.Until, c.ID)))
	}
	return errors.Join(errs...)
}

// delay lets the phase of a committee last longer.
func (k *Keeper) delay(ctx context.Context, id uint64) error {
	old, err := k.group(ctx, id)
	if err != nil {
		return err
	}
	c := old
	c.Until = height(ctx) + again
	return k.keep(ctx, old, c)
}

// convene ends the phase of a committee in which no round is under way: it draws the members of a round, or ends a
// committee whose host begins none.
func (k *Keeper) convene(ctx context.Context, id uint64, beacon canon.Digest) error {
	old, err := k.group(ctx, id)
	if err != nil {
		return err
	}
	members, err := k.joined(ctx, id)
	if err != nil {
		return err
	}
	last, err := k.last.Peek(ctx)
	if err != nil {
		return err
	}
	c, round, payments, err := old.Draw(last+1, members, beacon, height(ctx))
	if err != nil {
		return err
	}
	if round != nil {
		if _, err := k.last.Next(ctx); err != nil {
			return err
		}
		if err := k.save(ctx, arena.Contest{}, *round); err != nil {
			return err
		}
	}
	return errors.Join(k.keep(ctx, old, c), k.pay(ctx, c.Terms.Round.Denom, payments))
}

// pay pays from the coins that the module holds.
func (k *Keeper) pay(ctx context.Context, denom string, list []arena.Payment) error {
	for _, p := range list {
		if err := k.custody.Pay(ctx, denom, p.To, p.Amount); err != nil {
			return err
		}
	}
	return nil
}

// settle pays for a round of a committee that is over, and returns it with its outcomes.
func (k *Keeper) settle(ctx context.Context, r arena.Contest, w arena.World) (arena.Contest, error) {
	old, err := k.group(ctx, r.Committee)
	if err != nil {
		return r, err
	}
	invited := make([]committee.Member, len(r.Invited))
	for i, who := range r.Invited {
		if invited[i], err = k.member(ctx, old.ID, who); err != nil {
			return r, err
		}
	}
	c, r, after, payments, lost := old.Settle(r, w.Entries, w.Opinions, invited, height(ctx))
	for _, m := range after {
		if err := k.members.Set(ctx, collections.Join(c.ID, m.Account), m); err != nil {
			return r, err
		}
	}
	return r, errors.Join(k.keep(ctx, old, c), k.pay(ctx, c.Terms.Round.Denom, payments),
		k.custody.Pay(ctx, "", "", lost))
}

// Convene implements arenapb.MsgServer.
func (k messages) Convene(ctx context.Context, m *arenapb.MsgConvene) (*arenapb.MsgConveneResponse, error) {
	t, err := ToCommittee(m)
	if err != nil {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %w", committee.ErrTerms, err))
	}
	if err := t.Validate(); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	gas(ctx, recordGas, "committee")
	id, err := k.lastGroup.Next(ctx)
	if err != nil {
		return nil, err
	}
	c, err := committee.Convene(id+1, m.Sender, t, height(ctx))
	if err == nil {
		_, err = k.custody.Coins.Open(ctx, t.Round.Denom)
	}
	if err == nil {
		err = k.custody.Lock(ctx, m.Sender, t.Round.Denom, c.Left)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &arenapb.MsgConveneResponse{Committee: c.ID}, k.keep(ctx, committee.Committee{}, c)
}

// Join implements arenapb.MsgServer.
func (k messages) Join(ctx context.Context, m *arenapb.MsgJoin) (*arenapb.MsgJoinResponse, error) {
	old, err := k.group(ctx, m.Committee)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	had, err := k.member(ctx, old.ID, m.Sender)
	if err != nil {
		return nil, err
	}
	c, now, err := old.Join(had, m.Sender, m.Stake)
	if err == nil {
		gas(ctx, recordGas, "member")
		err = k.custody.Lock(ctx, m.Sender, "", m.Stake)
	}
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	key := collections.Join(c.ID, now.Account)
	return &arenapb.MsgJoinResponse{Stake: now.Stake}, errors.Join(k.keep(ctx, old, c), k.members.Set(ctx, key, now),
		k.records.Remove(ctx, key))
}

// Leave implements arenapb.MsgServer.
func (k messages) Leave(ctx context.Context, m *arenapb.MsgLeave) (*arenapb.MsgLeaveResponse, error) {
	old, err := k.group(ctx, m.Committee)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	had, err := k.member(ctx, old.ID, m.Sender)
	if err != nil {
		return nil, err
	}
	var invited []string
	if old.Phase == committee.Round {
		r, err := k.contest(ctx, old.Contest)
		if err != nil {
			return nil, err
		}
		invited = r.Invited
	}
	c, record, stake, err := old.Leave(had, invited)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	key := collections.Join(c.ID, m.Sender)
	errs := []error{k.keep(ctx, old, c), k.members.Remove(ctx, key), k.custody.Pay(ctx, "", m.Sender, stake)}
	if record.Away {
		errs = append(errs, k.records.Set(ctx, key, record))
	}
	return &arenapb.MsgLeaveResponse{Stake: stake}, errors.Join(errs...)
}

// Begin implements arenapb.MsgServer.
func (k messages) Begin(ctx context.Context, m *arenapb.MsgBegin) (*arenapb.MsgBeginResponse, error) {
	var errs [2]error
	var model, set canon.Digest
	model, errs[0] = runpb.Digest(m.Model)
	set, errs[1] = runpb.Digest(m.Set)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	old, err := k.group(ctx, m.Committee)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	c, err := old.Begin(m.Sender, model, m.Url, set, height(ctx))
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	gas(ctx, recordGas, "round")
	return &arenapb.MsgBeginResponse{}, k.keep(ctx, old, c)
}

// ToCommittee reads the terms of a committee as messages have them.
func ToCommittee(m *arenapb.MsgConvene) (t committee.Terms, err error) {
	t = committee.Terms{Rounds: m.Rounds, Pay: m.Pay, Drawn: m.Drawn, Stake: m.Stake, Window: m.Window,
		Members: m.Members}
	if len(m.Round.Set) > 0 {
		return t, errors.New("a set, which each round has of its own")
	}
	round := m.Round
	round.Set = make([]byte, len(canon.Digest{})) // none
	if t.Round, err = ToTerms(round); err == nil {
		t.Job, err = runpb.Digest(m.Job)
	}
	return t, err
}

// FromCommittee writes the terms of a committee as messages have them.
func FromCommittee(sender string, t committee.Terms) *arenapb.MsgConvene {
	m := &arenapb.MsgConvene{Sender: sender, Rounds: t.Rounds, Pay: t.Pay, Drawn: t.Drawn, Stake: t.Stake,
		Window: t.Window, Members: t.Members, Round: FromTerms(t.Round), Job: t.Job[:]}
	m.Round.Set = nil
	return m
}

package hosting

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/account"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/referee/answered"
	"github.com/starling-network/starling/chain/x/hosting/hostingpb"
	"github.com/starling-network/starling/chain/x/training/works"
	"github.com/starling-network/starling/protocol/answer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/hosting"
)

// Gas of a message that asks a referee, as of x/training: for opening a case, and for answering a question.
const (
	openGas  = 2_000_000 // plus one for each byte of the program
	judgeGas = 1_000_000
)

// maxAccused is the most open accusations of one provider of a model. Each open one doubles the bond of the next, and
// half of the bond of an accuser that loses is for the community pool: an accomplice of the provider that opens them
// all, so that no other account can accuse, loses more than the provider.
const maxAccused = 8

// shown is what an accuser has shown, until its accusation is decided.
type shown struct {
	Receipt []byte `cbor:"1,keyasint"` // answer.Signed
	Program []byte `cbor:"2,keyasint"`
}

// accusedKey is model, provider and accusation.
type accusedKey = collections.Triple[uint64, string, uint64]

// accusations are the stored ones.
type accusations struct {
	all     collections.Map[uint64, answer.Accusation]
	shown   collections.Map[uint64, shown] // of open ones
	against collections.KeySet[accusedKey] // open ones
	due     collections.KeySet[collections.Pair[int64, uint64]]
}

func newAccusations(b *collections.SchemaBuilder) accusations {
	number, name := collections.Uint64Key, collections.StringKey
	return accusations{
		all: collections.NewMap(b, collections.NewPrefix(10), "accusations", number,
			adapter.Record[answer.Accusation]()),
		shown: collections.NewMap(b, collections.NewPrefix(11), "shown", number, adapter.Record[shown]()),
		against: collections.NewKeySet(b, collections.NewPrefix(12), "against",
			collections.TripleKeyCodec(number, name, number)),
		due: collections.NewKeySet(b, collections.NewPrefix(13), "due",
			collections.PairKeyCodec(collections.Int64Key, number)),
	}
}

// opened opens the case that an accuser shows, and consumes gas for it.
func opened(ctx context.Context, r answer.Receipt, from uint32, program []byte) (*answered.Case, error) {
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(openGas+judgeGas+uint64(len(program)), "referee")
	return answered.Open(r, from, program)
}

// openAgainst lists the open accusations of a provider of a model.
func (a accusations) openAgainst(ctx context.Context, model uint64, provider string) (list []answer.Accusation,
	err error) {
	within := collections.NewSuperPrefixedTripleRange[uint64, string, uint64](model, provider)
	err = a.against.Walk(ctx, within, func(key accusedKey) (bool, error) {
		x, err := a.all.Get(ctx, key.K3())
		list = append(list, x)
		return err != nil, err
	})
	return list, err
}

// open gives the numbers of open accusations in a range to a function until that is done. It reads no program.
func (a accusations) open(ctx context.Context, within *collections.Range[uint64],
	do func(id uint64) (done bool, err error)) error {
	i, err := a.shown.Iterate(ctx, within)
	if err != nil {
		return err
	}
	defer i.Close()
	for ; i.Valid(); i.Next() {
		id, err := i.Key()
		if err != nil {
			return err
		}
		if done, err := do(id); done || err != nil {
			return err
		}
	}
	return nil
}

// save stores an accusation in its new state, in place of the old one.
func (a accusations) save(ctx context.Context, old, x answer.Accusation) error {
	var errs []error
	if old.ID > 0 && old.Open() {
		errs = append(errs, a.due.Remove(ctx, collections.Join(old.Game.Deadline, old.ID)))
	}
	if x.Open() {
		errs = append(errs, a.due.Set(ctx, collections.Join(x.Game.Deadline, x.ID)))
	} else {
		errs = append(errs, a.shown.Remove(ctx, x.ID),
			a.against.Remove(ctx, collections.Join3(x.Model, x.Provider, x.ID)))
	}
	return errors.Join(append(errs, a.all.Set(ctx, x.ID, x))...)
}

// Accuse implements hostingpb.MsgServer.
func (k messages) Accuse(ctx context.Context, m *hostingpb.MsgAccuse) (*hostingpb.MsgAccuseResponse, error) {
	x, err := k.accuse(ctx, m)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &hostingpb.MsgAccuseResponse{Accusation: x.ID}, errors.Join(
		k.accusations.shown.Set(ctx, x.ID, shown{m.Receipt, m.Program}),
		k.accusations.against.Set(ctx, collections.Join3(x.Model, x.Provider, x.ID)),
		k.accusations.save(ctx, answer.Accusation{}, x))
}

func (k messages) accuse(ctx context.Context, m *hostingpb.MsgAccuse) (x answer.Accusation, err error) {
	now := sdk.UnwrapSDKContext(ctx)
	now.GasMeter().ConsumeGas(recordGas+signatureGas, "accusation")
	s, err := answer.Decode(m.Receipt)
	if err == nil {
		err = s.Verify(account.Verify)
	}
	if err != nil {
		return x, err
	}
	r := s.Receipt
	place, err := k.Place(ctx, r.Model, r.Provider)
	if err != nil {
		return x, err
	}
	if place.Held() == 0 {
		return x, fmt.Errorf("%w: the bond of %s was taken", hosting.ErrClosed, r.Provider)
	}
	others, err := k.accusations.openAgainst(ctx, r.Model, r.Provider)
	if err != nil {
		return x, err
	}
	if len(others) >= maxAccused {
		return x, fmt.Errorf("%w: %d accusations of %s are open", hosting.ErrMany, len(others), r.Provider)
	}
	for _, o := range others {
		if o.Receipt == r.Digest() && o.From == m.From {
			return x, fmt.Errorf("%w: %d", answer.ErrOpen, o.ID)
		}
	}
	c, err := opened(ctx, r, m.From, m.Program)
	if err != nil {
		return x, err
	}
	cost, err := c.Decidable(now.GasMeter().GasRemaining() / works.GasCheck)
	now.GasMeter().ConsumeGas(works.GasCheck*cost, "referee: check")
	if err != nil {
		return x, fmt.Errorf("%w: %w", answer.ErrAccusation, err)
	}
	rules, err := k.Params(ctx)
	if err != nil {
		return x, err
	}
	n, err := k.next.Next(ctx)
	if err != nil {
		return x, err
	}
	config := c.Config(fmt.Sprint("accusation ", n+1), m.Sender, answer.MoveBlocks)
	x, err = answer.Accuse(n+1, r, m.From, m.Sender, now.ChainID(), rules.MinBond<<len(others), config, now.BlockHeight(),
		int64(rules.Unbonding))
	if err != nil {
		return x, err
	}
	return x, k.custody.Lock(ctx, m.Sender, "", x.Bond)
}

// Move implements hostingpb.MsgServer.
func (k messages) Move(ctx context.Context, m *hostingpb.MsgMove) (*hostingpb.MsgMoveResponse, error) {
	move, err := dispute.Decode(m.Body)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	old, err := k.Accusation(ctx, m.Accusation)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	r := works.NewLazy(func() (dispute.Referee, error) {
		what, err := k.accusations.shown.Get(ctx, old.ID)
		if err != nil {
			return nil, err
		}
		s, err := answer.Decode(what.Receipt)
		if err != nil {
			return nil, err
		}
		return opened(ctx, s.Receipt, old.From, what.Program)
	})
	x := old
	x.Game, err = old.Game.Apply(height(ctx), m.Sender, move, r)
	if err := errors.Join(r.Err, err); err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	return &hostingpb.MsgMoveResponse{}, k.turn(ctx, old, x)
}

// Accusation returns an accusation.
func (k *Keeper) Accusation(ctx context.Context, id uint64) (answer.Accusation, error) {
	x, err := found(k.accusations.all.Get(ctx, id))
	if err != nil {
		err = fmt.Errorf("%w: accusation %d", err, id)
	}
	return x, err
}

// turn stores an accusation after a move, and what follows from its end: a convicted provider loses its bond, and the
// other accusations of it are moot.
func (k *Keeper) turn(ctx context.Context, old, x answer.Accusation) error {
	if err := k.accusations.save(ctx, old, x); err != nil || x.Open() {
		return err
	}
	half := uint64(0)
	if x.BondTo() != x.Accuser {
		half = x.Bond / 2
	}
	if err := k.pay(ctx, "", []hosting.Payment{{To: x.BondTo(), Amount: x.Bond - half},
		{To: "", Amount: half}}); err != nil || !x.Convicted() {
		return err
	}
	if _, err := k.Convict(ctx, x.Model, x.Provider, x.Accuser); err != nil {
		return err
	}
	others, err := k.accusations.openAgainst(ctx, x.Model, x.Provider)
	for _, o := range others {
		moot := o
		moot.Game = o.Game.Void(height(ctx), false)
		err = errors.Join(err, k.turn(ctx, o, moot))
	}
	return err
}

// expire ends the accusations in which a party missed its deadline.
func (k *Keeper) expire(ctx context.Context) error {
	now := height(ctx)
	past := new(collections.Range[collections.Pair[int64, uint64]]).
		EndExclusive(collections.PairPrefix[int64, uint64](now))
	return each(ctx, k.accusations.due, past, func(ctx context.Context, key collections.Pair[int64, uint64]) error {
		old, err := k.Accusation(ctx, key.K2())
		if err != nil || !old.Open() {
			return err
		}
		x := old
		x.Game = old.Game.Tick(now)
		return k.turn(ctx, old, x)
	})
}

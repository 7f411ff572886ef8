// Package censorship holds proposers to the moves of disputes that validators with more than two thirds of the power
// have seen: the clock of a move that a block leaves out stands still, and a proposer that leaves out moves of one
// account turn after turn pays with a part of its stake. It does not read votes: the beacon, whose votes carry what
// validators have seen, tells it.
package censorship

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"cosmossdk.io/collections"
	"cosmossdk.io/math"
	abci "github.com/cometbft/cometbft/abci/types"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
)

// Duties is what the chain knows of the moves that votes speak of.
type Duties interface {
	// Awaited is the account whose next transaction is the move, if the run waits for it and the account's sequence is
	// that of the sighting; otherwise "".
	Awaited(ctx context.Context, s Sighting) (string, error)
	// Stand says that the clock of the dispute did not run in this block.
	Stand(ctx context.Context, s Sighting) error
}

// Penalties take stake from validators, and their vote for a while.
type Penalties interface {
	Slash(ctx context.Context, validator sdk.ConsAddress, fraction math.LegacyDec, power, height int64) error
	Jail(ctx context.Context, validator sdk.ConsAddress) error
	JailUntil(ctx context.Context, validator sdk.ConsAddress, until time.Time) error
	DowntimeJailDuration(ctx context.Context) (time.Duration, error)
}

// Judge is what it takes to hold proposers to the moves that most validators have seen.
type Judge struct {
	Duties    Duties
	Penalties Penalties
	Read      func(tx []byte) (signer string, sequence, gas uint64, ok bool) // of a transaction with one signer

	Largest    int64  // bytes of a transaction
	LargestGas uint64 // of one
}

// Keeper reads and writes what proposers left out.
type Keeper struct {
	left   collections.Map[[]byte, record] // by validator
	params collections.Item[Params]        // governed
	judge  *Judge                          // nil: nobody is judged
}

// NewKeeper returns a keeper of two collections in the store of the beacon, whose schema is being built.
func NewKeeper(b *collections.SchemaBuilder) *Keeper {
	return &Keeper{
		left:   collections.NewMap(b, collections.NewPrefix(9), "left", collections.BytesKey, adapter.Record[record]()),
		params: collections.NewItem(b, collections.NewPrefix(10), "censored", adapter.Record[Params]()),
	}
}

// Connect makes the keeper judge proposers.
func (k *Keeper) Connect(j Judge) { k.judge = &j }

// turns are those of one proposer in succession that left out moves of one account.
type turns struct {
	Account string `cbor:"1,keyasint"`
	Count   uint32 `cbor:"2,keyasint"`
	Last    int64  `cbor:"3,keyasint"` // height
}

// record is what a proposer left out.
type record struct {
	Turns []turns `cbor:"1,keyasint"`
}

// mostTurns is how many accounts are remembered of a proposer.
const mostTurns = 64

// Hold compares a block with the moves that validators with more than two thirds of the power had seen when they voted
// on the block before: the clock of one that it leaves out stands still, and its proposer has the turn counted. A block
// that has a transaction of the account with the same sequence has not left the move out, whatever it is and however it
// ends.
func (k *Keeper) Hold(ctx sdk.Context, req *abci.RequestFinalizeBlock, seen []Sighting, powers []abci.Validator) error {
	if k.judge == nil {
		return nil
	}
	owners := map[Sighting]string{}
	for _, s := range seen {
		account, err := k.judge.Duties.Awaited(ctx, s)
		if err != nil {
			return err
		}
		if account != "" {
			owners[s] = account
		}
	}
	if len(owners) == 0 {
		return nil
	}
	type next struct {
		account  string
		sequence uint64
	}
	carried := map[next]size{}
	for _, tx := range req.Txs[1:] {
		if account, sequence, gas, ok := k.judge.Read(tx); ok {
			at := next{account, sequence}
			carried[at] = carried[at].plus(size{int64(len(tx)), gas})
		}
	}
	var left []string
	full := size{int64(len(req.Txs[0])) + k.judge.Largest, k.judge.LargestGas}
	judged := map[string]bool{}
	for _, s := range seen {
		account, awaited := owners[s]
		if !awaited {
			continue
		}
		takes, taken := carried[next{account, s.Sequence}]
		if !taken {
			if err := k.judge.Duties.Stand(ctx, s); err != nil {
				return err
			}
		}
		if judged[account] {
			continue
		}
		judged[account] = true
		if taken {
			full = full.plus(takes)
			if err := k.forget(ctx, req.ProposerAddress, account); err != nil {
				return err
			}
			continue
		}
		left = append(left, account)
	}
	for _, account := range left {
		if err := k.leftOut(ctx, req, account, full.within(lane(ctx)), powers); err != nil {
			return err
		}
	}
	return nil
}

// size is what transactions take of a block.
type size struct {
	bytes int64
	gas   uint64
}

func (s size) plus(o size) size { return size{s.bytes + o.bytes, s.gas + o.gas} }

func (s size) within(o size) bool { return s.bytes <= o.bytes && s.gas <= o.gas }

// lane is how much of a block an honest proposer gives to moves at least.
func lane(ctx sdk.Context) size {
	most := size{100 << 20, 1 << 62} // of CometBFT, where there is no limit
	if b := ctx.ConsensusParams().Block; b != nil {
		if b.MaxBytes > 0 {
			most.bytes = b.MaxBytes
		}
		if b.MaxGas > 0 {
			most.gas = uint64(b.MaxGas)
		}
	}
	return size{most.bytes/4*3 - most.bytes/16, most.gas/4*3 - most.gas/16}
}

// leftOut counts a turn in which a proposer left out a move of an account, and takes its stake when there are too many
// in succession.
func (k *Keeper) leftOut(ctx sdk.Context, req *abci.RequestFinalizeBlock, account string, room bool,
	powers []abci.Validator) error {
	event := &beaconpb.EventLeftOut{Height: req.Height, Proposer: hex.EncodeToString(req.ProposerAddress),
		Account: account}
	if room {
		p, err := k.Params(ctx)
		if err != nil {
			return err
		}
		if event.Turns, err = k.count(ctx, req.ProposerAddress, account, req.Height, p); err != nil {
			return err
		}
		if event.Turns >= p.Turns {
			for _, v := range powers {
				if string(v.Address) == string(req.ProposerAddress) {
					event.Slashed = v.Power
				}
			}
			if err := errors.Join(k.forget(ctx, req.ProposerAddress, account),
				k.punish(ctx, req, event.Slashed, p, powers)); err != nil {
				return err
			}
		}
	}
	return ctx.EventManager().EmitTypedEvent(event)
}

// punish takes a part of a proposer's stake, and its vote for as long as one that was away loses it. The only validator
// keeps its vote.
func (k *Keeper) punish(ctx sdk.Context, req *abci.RequestFinalizeBlock, power int64, p Params,
	powers []abci.Validator) error {
	validator := sdk.ConsAddress(req.ProposerAddress)
	if power == 0 || p.SlashPPM == 0 {
		return nil
	}
	if err := k.judge.Penalties.Slash(ctx, validator, math.LegacyNewDecWithPrec(int64(p.SlashPPM), 6), power,
		req.Height); err != nil || len(powers) == 1 {
		return err
	}
	away, err := k.judge.Penalties.DowntimeJailDuration(ctx)
	if err != nil {
		return err
	}
	return errors.Join(k.judge.Penalties.Jail(ctx, validator),
		k.judge.Penalties.JailUntil(ctx, validator, req.Time.Add(away)))
}

// count adds a turn of a proposer, and returns how many there are in succession.
func (k *Keeper) count(ctx context.Context, proposer []byte, account string, height int64,
	p Params) (uint32, error) {
	r, err := k.left.Get(ctx, proposer)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return 0, err
	}
	kept, now := record{}, turns{Account: account}
	for _, t := range r.Turns { // the latest is the last
		switch {
		case t.Last < height-p.Within:
		case t.Account == account:
			now = t
		default:
			kept.Turns = append(kept.Turns, t)
		}
	}
	now.Count, now.Last = now.Count+1, height
	kept.Turns = append(kept.Turns, now)
	kept.Turns = kept.Turns[max(0, len(kept.Turns)-mostTurns):]
	return now.Count, k.left.Set(ctx, proposer, kept)
}

// forget drops the turns of a proposer that left out moves of an account.
func (k *Keeper) forget(ctx context.Context, proposer []byte, account string) error {
	r, err := k.left.Get(ctx, proposer)
	if errors.Is(err, collections.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	kept := record{}
	for _, t := range r.Turns {
		if t.Account != account {
			kept.Turns = append(kept.Turns, t)
		}
	}
	if len(kept.Turns) == 0 {
		return k.left.Remove(ctx, proposer)
	}
	return k.left.Set(ctx, proposer, kept)
}

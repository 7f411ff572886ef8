// Package censorship penalizes proposers that leave out moves of disputes which validators with more than two thirds of
// the power have seen. The deadline of such a move does not advance, and a proposer that leaves out moves of one
// account in several successive turns loses a part of its stake. The package does not read votes: the beacon passes it
// what the votes report.
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

// Duties knows the moves that disputes wait for.
type Duties interface {
	// Awaited returns the account whose next transaction is the move, if the run waits for the move and the account's
	// sequence is that of the sighting; otherwise "".
	Awaited(ctx context.Context, s Sighting) (string, error)
	// Stand moves the deadline of the dispute one block later.
	Stand(ctx context.Context, s Sighting) error
}

// Penalties slash and jail validators.
type Penalties interface {
	Slash(ctx context.Context, validator sdk.ConsAddress, fraction math.LegacyDec, power, height int64) error
	Jail(ctx context.Context, validator sdk.ConsAddress) error
	JailUntil(ctx context.Context, validator sdk.ConsAddress, until time.Time) error
	DowntimeJailDuration(ctx context.Context) (time.Duration, error)
}

// Judge is what the keeper needs to judge proposers.
type Judge struct {
	Duties    Duties
	Penalties Penalties
	Read      func(tx []byte) (signer string, sequence, gas uint64, ok bool) // of a transaction with one signer

	Largest    int64  // size limit of a transaction, in bytes
	LargestGas uint64 // gas limit of a transaction
}

// Keeper reads and writes the turns in which proposers left out moves.
type Keeper struct {
	left   collections.Map[[]byte, record] // by validator
	params collections.Item[Params]        // set by governance
	judge  *Judge                          // nil: proposers are not judged
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

// turns are successive turns in which a proposer left out moves of one account.
type turns struct {
	Account string `cbor:"1,keyasint"`
	Count   uint32 `cbor:"2,keyasint"`
	Last    int64  `cbor:"3,keyasint"` // height
}

// record holds the turns of one proposer.
type record struct {
	Turns []turns `cbor:"1,keyasint"`
}

// mostTurns is how many accounts the record of a proposer holds.
const mostTurns = 64

// Hold compares a block with the moves that validators with more than two thirds of the power had seen when they voted
// on the block before. For a move that the block leaves out, the deadline does not advance, and the turn counts against
// the proposer. A block with any transaction of the account with the same sequence has not left out the move, even if
// that transaction fails.
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

// size is the room that transactions take in a block.
type size struct {
	bytes int64
	gas   uint64
}

func (s size) plus(o size) size { return size{s.bytes + o.bytes, s.gas + o.gas} }

func (s size) within(o size) bool { return s.bytes <= o.bytes && s.gas <= o.gas }

// lane is the part of a block that an honest proposer gives to moves at least.
func lane(ctx sdk.Context) size {
	most := size{100 << 20, 1 << 62} // the limits of CometBFT
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

// leftOut counts a turn in which a proposer left out a move of an account, and slashes the proposer after too many
// successive turns.
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

// punish slashes a proposer, and jails it for as long as a validator that was offline. It does not jail the only
// validator.
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

// count adds a turn of a proposer, and returns the number of successive turns.
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

// forget removes the turns of a proposer that concern an account.
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

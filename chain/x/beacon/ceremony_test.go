package beacon

import (
	"bytes"
	"context"
	"strings"
	"testing"

	abci "github.com/cometbft/cometbft/abci/types"
	"github.com/cometbft/cometbft/proto/tendermint/crypto"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	storetypes "github.com/cosmos/cosmos-sdk/store/v2/types"
	"github.com/cosmos/cosmos-sdk/testutil"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/cosmos/cosmos-sdk/x/staking/types"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/storetest"
	"github.com/starling-network/starling/chain/x/beacon/censorship"
	"github.com/starling-network/starling/protocol/threshold"
)

// noValidators implements Validators for tests that send no messages.
type noValidators struct{}

func (noValidators) GetPubKeyByConsAddr(context.Context, sdk.ConsAddress) (crypto.PublicKey, error) {
	return crypto.PublicKey{}, types.ErrNoValidatorFound
}

func (noValidators) GetValidator(context.Context, sdk.ValAddress) (types.Validator, error) {
	return types.Validator{}, types.ErrNoValidatorFound
}

// bench makes the votes of validators, of one power each, without signatures.
type bench struct {
	testing.TB
	ctx    sdk.Context
	store  *storetypes.KVStoreKey
	keeper *Keeper
	height int64
	votes  []abci.ExtendedVoteInfo
	forge  func(validator int, b *ballot)            // changes a validator's ballot; nil: no change
	seen   func(validator int) []censorship.Sighting // moves that a validator has seen; nil: none
}

func (b *bench) sights(validator int) func(sdk.Context, int64) []censorship.Sighting {
	return func(sdk.Context, int64) []censorship.Sighting {
		if b.seen == nil {
			return nil
		}
		return b.seen(validator)
	}
}

func newBench(t testing.TB) *bench {
	key := storetypes.NewKVStoreKey(Name)
	ctx := testutil.DefaultContext(key, storetypes.NewTransientStoreKey("transient")).WithChainID("chain")
	ctx = ctx.WithConsensusParams(cmtproto.ConsensusParams{Abci: &cmtproto.ABCIParams{VoteExtensionsEnableHeight: 1}})
	b := &bench{TB: t, ctx: ctx, store: key}
	b.restart()
	return b
}

// restart replaces the keeper by a new process over the same state.
func (b *bench) restart() {
	k, err := NewKeeper(storetest.Service(b.store), "", noValidators{})
	if err != nil {
		b.Fatal(err)
	}
	b.keeper = k
}

func of(validator int) ed25519.PrivateKey { return private(string(rune('a' + validator))) }

func address(validator int) []byte { return bytes.Repeat([]byte{byte(validator)}, 20) }

// next executes a block over the votes on the last one, and lets the validators in up vote on it; the others add
// nothing.
func (b *bench) next(up ...int) canon.Digest {
	b.Helper()
	b.height++
	hash := canon.Sum("block", number(b.height))
	commit := abci.ExtendedCommitInfo{Votes: b.votes}
	raw, err := commit.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	b.ctx = b.ctx.WithBlockHeight(b.height).WithEventManager(sdk.NewEventManager())
	var votes []abci.ExtendedVoteInfo // votes on this block: they know the state before it
	for _, v := range up {
		if err := b.keeper.keys.Set(b.ctx, address(v), Key{Next: of(v).Public().(ed25519.PublicKey)}); err != nil {
			b.Fatal(err)
		}
		r, err := b.keeper.ExtendVote(of(v), address(v), b.sights(v))(b.ctx,
			&abci.RequestExtendVote{Height: b.height, Hash: hash[:]})
		if err != nil {
			b.Fatal(err)
		}
		said, err := decodeBallot(r.VoteExtension)
		if err != nil {
			b.Fatal(err)
		}
		if b.forge != nil {
			b.forge(v, &said)
			if r.VoteExtension, err = said.encode(); err != nil {
				b.Fatal(err)
			}
		} else if ok, err := b.keeper.VerifyVote(b.ctx, &abci.RequestVerifyVoteExtension{
			Height: b.height, Hash: hash[:], ValidatorAddress: address(v), VoteExtension: r.VoteExtension,
		}); err != nil || ok.Status != abci.ResponseVerifyVoteExtension_ACCEPT {
			b.Fatalf("the vote of %d on block %d is refused (%v)", v, b.height, err)
		}
		votes = append(votes, abci.ExtendedVoteInfo{
			Validator: abci.Validator{Address: address(v), Power: 10}, VoteExtension: r.VoteExtension,
			BlockIdFlag: cmtproto.BlockIDFlagCommit,
		})
	}
	if err := b.keeper.PreBlock(b.ctx,
		&abci.RequestFinalizeBlock{Txs: [][]byte{raw}, Hash: hash[:], Height: b.height}); err != nil {
		b.Fatal(err)
	}
	b.votes = votes
	value, err := b.keeper.At(b.ctx, b.height)
	if err != nil {
		b.Fatal(err)
	}
	return value
}

// signing makes blocks until a group of another epoch signs.
func (b *bench) signing(epoch uint64, up ...int) group {
	b.Helper()
	for range 3 * lifetime {
		b.next(up...)
		list, _, err := item(b.ctx, b.keeper.groups)
		if err != nil {
			b.Fatal(err)
		}
		if g, ok := list.at(b.height - 1); ok && g.Roster.Epoch >= epoch {
			return g
		}
	}
	b.Fatalf("no group of epoch %d signs after block %d", epoch, b.height)
	return group{}
}

func TestTheGroupFollowsTheValidators(t *testing.T) {
	b := newBench(t)
	first := b.signing(1, 0, 1, 2, 3)
	if len(first.Roster.Members) != 4 || b.height > 10 {
		t.Fatalf("after %d blocks %d members sign", b.height, len(first.Roster.Members))
	}
	// Two validators join and one leaves. The old group signs until the new one does, and every block has a beacon.
	b.restart()
	for {
		if b.next(1, 2, 3, 4, 5).IsZero() {
			t.Fatalf("block %d has no beacon", b.height)
		}
		list, _, err := item(b.ctx, b.keeper.groups)
		if err != nil {
			t.Fatal(err)
		}
		if g, _ := list.at(b.height - 1); g.Roster.Epoch == 2 {
			if len(g.Roster.Members) != 5 || b.height < lifetime {
				t.Fatalf("at %d, %d members sign", b.height, len(g.Roster.Members))
			}
			break
		}
		if b.height > 2*lifetime {
			t.Fatal("the new ones never sign")
		}
	}
	if b.next(1, 2, 3, 4, 5).IsZero() || b.next(1, 2, 3).IsZero() || b.next(1, 2, 3).IsZero() {
		t.Error("the new group does not sign, or not with three of five")
	}
	for range 2 * lifetime { // the roster stays the same: no new group is made
		b.next(1, 2, 3, 4, 5)
	}
	if list, _, _ := item(b.ctx, b.keeper.groups); list.List[len(list.List)-1].Roster.Epoch != 2 {
		t.Error("a ceremony without a cause")
	}
}

// One validator deals wrongly, one makes false complaints, one of the others never votes: the group is made without the
// wrong dealer.
func TestAWrongDealIsLeftOut(t *testing.T) {
	b := newBench(t)
	b.forge = func(v int, s *ballot) {
		switch {
		case v == 0 && s.Deal != nil:
			s.Deal.Shares[2*threshold.ShareSize] ^= 1 // the share of the third member
		case v == 1 && s.Done:
			s.Done, s.Complaint = false, &threshold.Complaint{Dealer: 3, Share: 2, Shared: s.Key, Proof: make([]byte, 64)}
		}
	}
	for range 3 {
		b.next(0, 1, 2, 3, 4, 5, 6)
	}
	g := b.signing(1, 0, 1, 2, 3, 4, 5) // the last validator is offline
	if len(g.Roster.Members) != 7 {
		t.Fatalf("%d members", len(g.Roster.Members))
	}
	for _, d := range g.Dealers {
		if d == 0 {
			t.Error("the deal of the liar counts")
		}
	}
	if len(g.Dealers) != 6 {
		t.Errorf("%v dealt", g.Dealers)
	}
	if b.next(0, 1, 2, 3, 4, 5).IsZero() || b.next(2, 3, 4).IsZero() || b.next(2, 3).IsZero() {
		t.Error("the group does not sign")
	}
	if !b.next(2, 3).IsZero() {
		t.Error("two of seven sign")
	}
}

// Many false complaints, of which a block handles a few, do not use up the time of a valid one.
func TestComplaintsAreHeardToTheEnd(t *testing.T) {
	b := newBench(t)
	for range 4 {
		b.next(0, 1, 2, 3)
	}
	c, _, err := item(b.ctx, b.keeper.ceremony)
	if err != nil || c.Closed == 0 {
		t.Fatalf("after block %d deals are taken (%v)", b.height, err)
	}
	lie := voteExtension{abci.Validator{Address: address(1)},
		ballot{Epoch: c.Roster.Epoch, Complaint: &threshold.Complaint{Dealer: 2, Share: 2}}}
	for i, votes := range [][]voteExtension{{lie}, nil} {
		if err := (ceremonies{b.keeper}).complain(b.ctx, c, c.Closed+complaining, votes); err != nil {
			t.Fatal(err)
		}
		var waits bool
		if c, waits, err = item(b.ctx, b.keeper.ceremony); err != nil || waits != (i == 0) {
			t.Errorf("with %d complaints in the last block the ceremony goes on: %v (%v)", len(votes), waits, err)
		}
	}
}

// Invalid partial signatures, which only a dishonest proposer includes, change nothing.
func TestWrongPartialSignaturesChangeNothing(t *testing.T) {
	b := newBench(t)
	b.signing(1, 0, 1, 2, 3)
	b.forge = func(v int, s *ballot) {
		if v == 0 {
			s.Partials = SecretOf(of(9)).Public() // a curve point
		}
		if v == 1 {
			s.Partials = s.Partials[1:]
		}
	}
	b.next(0, 1, 2, 3)
	if b.next(0, 1, 2, 3).IsZero() {
		t.Error("two right signatures make no beacon beside wrong ones")
	}
	b.forge = nil
	b.next(0, 1, 2, 3)
	hash := canon.Sum("block", number(b.height))
	for name, extension := range map[string][]byte{
		"of another": b.votes[1].VoteExtension, "short": b.votes[0].VoteExtension[1:], "long": make([]byte, maxBallot+1),
	} {
		// The votes are on the latest block. The state is the one after it, in which the group is the same.
		r, err := b.keeper.VerifyVote(b.ctx,
			&abci.RequestVerifyVoteExtension{Height: b.height, Hash: hash[:], ValidatorAddress: address(0),
				VoteExtension: extension})
		if err != nil || r.Status != abci.ResponseVerifyVoteExtension_REJECT {
			t.Errorf("a vote is taken: %s (%v)", name, err)
		}
	}
}

// If most of a group go offline at once, there is no beacon for a while, and then one again.
func TestALostGroupIsReplaced(t *testing.T) {
	b := newBench(t)
	b.signing(1, 0, 1, 2, 3)
	b.next(5, 6, 7)
	if !b.next(5, 6, 7).IsZero() {
		t.Fatal("noValidators of the group is left, and there is a beacon")
	}
	b.signing(2, 5, 6, 7)
	if b.next(5, 6, 7).IsZero() {
		t.Error("the new validators make no beacon")
	}
	if b.height > 2*lifetime {
		t.Errorf("it takes %d blocks", b.height)
	}
}

// FuzzBallot decodes arbitrary bytes, and ballots with arbitrary fields: a decoded ballot encodes to the same bytes, an
// accepted ballot keeps the limits of a vote, and no ballot stops a block in any stage of a ceremony.
func FuzzBallot(f *testing.F) {
	r, err := threshold.NewRoster("chain", 1,
		[]threshold.Member{{Address: address(0), Key: SecretOf(of(0)).Public(), Power: 1}})
	if err != nil {
		f.Fatal(err)
	}
	d := threshold.NewDeal(SecretOf(of(0)), r, 0)
	key := r.Members[0].Key
	var deal, complaint, made []byte
	for _, b := range []ballot{{}, {Proof: make([]byte, 80)}, {Epoch: 1, Deal: &d, Key: key},
		{Epoch: 1, Done: true, Partials: key},
		{Epoch: 1, Complaint: &threshold.Complaint{Share: 1, Shared: key, Proof: make([]byte, 64)}},
		{Seen: []censorship.Sighting{{Job: "job", Ply: 1, Sequence: 7}, {Job: "job", Round: 1}}},
		{Seen: []censorship.Sighting{{Job: strings.Repeat("j", 61)}}}} {
		raw, err := b.encode()
		if err != nil {
			f.Fatal(err)
		}
		deal, complaint, made = canon.MustMarshal(d),
			canon.MustMarshal(threshold.Complaint{Share: 1, Shared: key, Proof: make([]byte, 64)}), raw
		f.Add(raw, b.Proof, b.Key, b.Epoch, deal, complaint, b.Done, b.Partials, "job", uint8(len(b.Seen)), uint32(1),
			uint64(3))
	}
	f.Add(made, []byte{}, []byte{}, uint64(1), []byte{}, complaint, false, []byte{}, strings.Repeat("j", 70), uint8(17),
		uint32(0), uint64(0))
	var stages []*bench
	for _, blocks := range []int{2, 3, 4, 9} { // before, in the deals, in the complaints, while a group signs
		b := newBench(f)
		for range blocks {
			b.next(0, 1, 2, 3)
		}
		stages = append(stages, b)
	}
	f.Fuzz(func(t *testing.T, raw, proof, key []byte, epoch uint64, deal, complaint []byte, done bool, partials []byte,
		job string, sights uint8, round uint32, sequence uint64) {
		made := ballot{Proof: proof, Key: key, Epoch: epoch, Done: done, Partials: partials}
		var d threshold.Deal
		var c threshold.Complaint
		if canon.Unmarshal(deal, &d) == nil {
			made.Deal = &d
		}
		if canon.Unmarshal(complaint, &c) == nil {
			made.Complaint = &c
		}
		for i := range min(sights, 2*censorship.MaxSightings) {
			made.Seen = append(made.Seen, censorship.Sighting{Job: job, Round: round, Unit: uint32(i) * uint32(sequence>>32),
				Ply: uint32(i), Sequence: sequence})
		}
		text, err := made.encode()
		if err != nil {
			t.Skip(err) // the name is no valid text
		}
		for _, raw := range [][]byte{raw, text} {
			b, err := decodeBallot(raw)
			if err != nil {
				continue
			}
			if again, err := b.encode(); err != nil || !bytes.Equal(again, raw) {
				t.Errorf("%x is taken for %x (%v)", raw, again, err)
			}
			if b.Deal != nil && b.Deal.Check(r, 0) == nil {
				_, _, _ = b.Deal.Read(SecretOf(of(0)), r, 0, 0)
			}
			for _, stage := range stages {
				ctx, _ := stage.ctx.CacheContext()
				fits, err := ceremonies{stage.keeper}.fits(ctx, address(0), b)
				if err != nil || fits && (len(b.Seen) > censorship.MaxSightings || len(raw) > maxBallot) {
					t.Errorf("a ballot of %d bytes and %d moves fits (%v)", len(raw), len(b.Seen), err)
				}
				var votes []voteExtension
				var powers []abci.Validator
				for v := range 4 {
					votes = append(votes, voteExtension{abci.Validator{Address: address(v), Power: 10}, b})
					powers = append(powers, votes[v].validator)
				}
				if err := (ceremonies{stage.keeper}).proceed(ctx, stage.height+1, votes, powers); err != nil {
					t.Logf("the ceremony stays as it was: %v", err)
				}
				seen := tally(votes, powers)
				if len(seen) > censorship.MaxSightings || censorship.Fit(b.Seen) && len(seen) != len(b.Seen) ||
					len(tally(votes[:2], powers)) > 0 {
					t.Errorf("of %d moves in all votes %d are seen by most", len(b.Seen), len(seen))
				}
			}
		}
	})
}

package beacon

import (
	"bytes"
	"context"
	"fmt"

	abci "github.com/cometbft/cometbft/abci/types"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cosmos/cosmos-sdk/baseapp"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
	"github.com/starling-network/starling/chain/x/beacon/censorship"
	"github.com/starling-network/starling/protocol/threshold"
)

// A vote carries its validator's ballot as its extension. The proposer of the next block puts the extended commit
// before the transactions. Every validator checks the extended commit before it votes, and every node computes the
// beacon from it before it executes the block.

// ExtendVote returns a handler that adds the ballot of the validator that holds the private key, with the moves of
// disputes that it has seen. If the chain does not have the key, the handler adds nothing.
func (k *Keeper) ExtendVote(private ed25519.PrivateKey, validator []byte,
	seen func(sdk.Context, int64) []censorship.Sighting) sdk.ExtendVoteHandler {
	var secret threshold.Secret
	if len(private) != 0 {
		secret = SecretOf(private)
	}
	return func(ctx sdk.Context, req *abci.RequestExtendVote) (*abci.ResponseExtendVote, error) {
		public, err := k.key(ctx, validator, req.Height)
		if err != nil || len(private) == 0 || !bytes.Equal(public, private.Public().(ed25519.PublicKey)) {
			return &abci.ResponseExtendVote{}, err
		}
		b := ballot{Seen: censorship.Spoken(req.Height, seen(ctx, req.Height))}
		list, _, err := item(ctx, k.groups)
		if err != nil {
			return nil, err
		}
		if g, ok := list.at(req.Height); ok {
			if at := member(g.Roster, validator); at >= 0 && bytes.Equal(g.Roster.Members[at].Key, secret.Public()) {
				message, err := k.message(ctx, g, req.Height, req.Hash)
				if err != nil {
					return nil, err
				}
				if b.Partials, err = k.sign(ctx, g, at, secret, message); err != nil {
					return nil, err
				}
			}
		} else {
			previous, err := k.At(ctx, req.Height-1)
			if err != nil {
				return nil, err
			}
			b.Proof = Prove(private, Alpha(ctx.ChainID(), req.Height, previous))
		}
		if err := (ceremonies{k}).take(ctx, &b, validator, secret); err != nil {
			return nil, err
		}
		if k.rider != nil {
			if b.Rider, err = k.rider.Speak(ctx, validator, private.Seed()); err != nil {
				return nil, err
			}
		}
		extension, err := b.encode()
		return &abci.ResponseExtendVote{VoteExtension: extension}, err
	}
}

// VerifyVote refuses a vote whose extension is no ballot, or whose ballot has an invalid proof or invalid signatures.
func (k *Keeper) VerifyVote(ctx sdk.Context,
	req *abci.RequestVerifyVoteExtension) (*abci.ResponseVerifyVoteExtension, error) {
	ok, err := k.rightful(ctx, req)
	if err != nil {
		return nil, err
	}
	if !ok {
		return &abci.ResponseVerifyVoteExtension{Status: abci.ResponseVerifyVoteExtension_REJECT}, nil
	}
	return &abci.ResponseVerifyVoteExtension{Status: abci.ResponseVerifyVoteExtension_ACCEPT}, nil
}

func (k *Keeper) rightful(ctx sdk.Context, req *abci.RequestVerifyVoteExtension) (bool, error) {
	b, err := decodeBallot(req.VoteExtension)
	if err != nil {
		return false, nil
	}
	if len(b.Proof) > 0 {
		if _, ok, err := k.output(ctx, req.Height, req.ValidatorAddress, b.Proof); err != nil || !ok {
			return false, err
		}
	}
	if k.rider == nil && len(b.Rider) > 0 {
		return false, nil
	}
	if k.rider != nil {
		if ok, err := k.rider.Fit(ctx, req.ValidatorAddress, b.Rider); err != nil || !ok {
			return false, err
		}
	}
	if ok, err := (ceremonies{k}).fits(ctx, req.ValidatorAddress, b); err != nil || !ok || len(b.Partials) == 0 {
		return ok, err
	}
	list, _, err := item(ctx, k.groups)
	if err != nil {
		return false, err
	}
	g, ok := list.at(req.Height)
	at := member(g.Roster, req.ValidatorAddress)
	if !ok || at < 0 {
		return false, nil
	}
	message, err := k.message(ctx, g, req.Height, req.Hash)
	if err != nil {
		return false, err
	}
	return k.checkPartials(ctx, g, at, message, b.Partials)
}

// output returns the VRF output that the proof in a vote of a height shows, and whether the proof is valid.
func (k *Keeper) output(ctx sdk.Context, height int64, validator, proof []byte) ([]byte, bool, error) {
	public, err := k.key(ctx, validator, height)
	if err != nil {
		return nil, false, err
	}
	previous, err := k.At(ctx, height-1)
	if err != nil {
		return nil, false, err
	}
	beta, ok := k.seen.verify(public, Alpha(ctx.ChainID(), height, previous), proof)
	return beta, ok, nil
}

// PrepareProposal puts the extended commit of the previous block before as many of the transactions as fit.
func (k *Keeper) PrepareProposal(ctx sdk.Context,
	req *abci.RequestPrepareProposal) (*abci.ResponsePrepareProposal, error) {
	if !extended(ctx, req.Height) {
		return &abci.ResponsePrepareProposal{Txs: req.Txs}, nil
	}
	if err := k.check(ctx, req.LocalLastCommit); err != nil {
		return nil, err
	}
	commit, err := req.LocalLastCommit.Marshal()
	if err != nil {
		return nil, err
	}
	txs := [][]byte{commit}
	size := cmttypes.ComputeProtoSizeForTxs([]cmttypes.Tx{commit})
	for _, tx := range req.Txs {
		if size += cmttypes.ComputeProtoSizeForTxs([]cmttypes.Tx{tx}); size > req.MaxTxBytes {
			break
		}
		txs = append(txs, tx)
	}
	return &abci.ResponsePrepareProposal{Txs: txs}, nil
}

// ProcessProposal accepts a block that starts with a valid extended commit. It does not refuse a block over a
// transaction that cannot be decoded: that transaction fails when it is executed.
func (k *Keeper) ProcessProposal(ctx sdk.Context,
	req *abci.RequestProcessProposal) (*abci.ResponseProcessProposal, error) {
	if extended(ctx, req.Height) {
		commit, err := decode(req.Txs)
		if err == nil {
			err = k.check(ctx, commit)
		}
		if err != nil {
			return nil, err
		}
	}
	return &abci.ResponseProcessProposal{Status: abci.ResponseProcessProposal_ACCEPT}, nil
}

// Transactions returns the transactions of a block of a height, without the extended commit.
func (k *Keeper) Transactions(ctx sdk.Context, height int64, txs [][]byte) [][]byte {
	if extended(ctx, height) {
		return txs[min(1, len(txs)):]
	}
	return txs
}

// PreBlock computes and stores the beacon of the block, advances the ceremony, and counts the moves that the block
// leaves out.
func (k *Keeper) PreBlock(ctx sdk.Context, req *abci.RequestFinalizeBlock) error {
	before, _, err := item(ctx, k.block)
	if err != nil {
		return err
	}
	if err := k.block.Set(ctx, req.Hash); err != nil || !extended(ctx, req.Height) {
		return err
	}
	commit, err := decode(req.Txs)
	if err != nil {
		return err
	}
	var votes []voteExtension
	var powers []abci.Validator
	for _, vote := range commit.Votes {
		powers = append(powers, vote.Validator)
		if b, err := decodeBallot(vote.VoteExtension); err == nil && vote.BlockIdFlag == cmtproto.BlockIDFlagCommit {
			votes = append(votes, voteExtension{vote.Validator, b})
		}
	}
	list, _, err := item(ctx, k.groups)
	if err != nil {
		return err
	}
	var value canon.Digest
	var parts int
	if g, ok := list.at(req.Height - 1); ok {
		value, parts, err = k.signed(ctx, g, req.Height, before, votes)
	} else {
		value, parts, err = k.combined(ctx, req.Height, votes)
	}
	if err != nil {
		return err
	}
	if err := k.record(ctx, req.Height, value); err != nil {
		return err
	}
	if value.IsZero() && len(list.List) > 0 {
		if err := k.tire(ctx, req.Height); err != nil {
			return err
		}
	}
	k.isolated(ctx, "the ceremony", func(ctx context.Context) error {
		return ceremonies{k}.proceed(ctx, req.Height, votes,
			powers)
	})
	if seen := tally(votes, powers); len(seen) > 0 {
		k.isolated(ctx, "what the block leaves out", func(ctx context.Context) error {
			return k.censorship.Hold(sdk.UnwrapSDKContext(ctx), req, seen, powers)
		})
	}
	if k.rider != nil {
		var said []Said
		for _, v := range votes {
			said = append(said, Said{v.validator, v.ballot.Rider})
		}
		k.isolated(ctx, "the payouts", func(ctx context.Context) error {
			return k.rider.Count(ctx, req.Height, said, powers)
		})
	}
	return ctx.EventManager().EmitTypedEvent(&beaconpb.EventBeacon{Height: req.Height, Value: value.String(),
		Outputs: uint32(parts)})
}

// tally returns the sightings that validators with more than two thirds of the power share.
func tally(votes []voteExtension, powers []abci.Validator) []censorship.Sighting {
	list := make([]censorship.Vote, len(votes))
	for i, v := range votes {
		list[i] = censorship.Vote{Power: v.validator.Power, Seen: v.ballot.Seen}
	}
	return censorship.Tally(list, powers)
}

// signed returns the beacon of a group from the votes for the block before, and how many members signed; zero if too
// few did.
func (k *Keeper) signed(ctx sdk.Context, g group, height int64, hash []byte,
	votes []voteExtension) (canon.Digest, int, error) {
	message, err := k.message(ctx, g, height-1, hash)
	if err != nil {
		return canon.Digest{}, 0, err
	}
	var partials []threshold.Partial
	for _, v := range votes {
		if at := member(g.Roster, v.validator.Address); at >= 0 && len(v.ballot.Partials) > 0 {
			partials = append(partials, threshold.Partial{Member: at, Bytes: v.ballot.Partials})
		}
	}
	s, err := k.combine(ctx, g, message, partials)
	if err != nil || s == nil {
		return canon.Digest{}, 0, err
	}
	return Value(ctx.ChainID(), height, s), len(partials), nil
}

// combined returns the beacon of the VRF outputs in the votes for the block before, and the number of outputs. It is
// used until the first group signs: a proposer chooses whose outputs it contains.
func (k *Keeper) combined(ctx sdk.Context, height int64, votes []voteExtension) (canon.Digest, int, error) {
	var outputs []Output
	for _, v := range votes {
		beta, ok, err := k.output(ctx, height-1, v.validator.Address, v.ballot.Proof)
		if err != nil {
			return canon.Digest{}, 0, err
		}
		if ok {
			outputs = append(outputs, Output{Validator: v.validator.Address, Beta: beta})
		}
	}
	previous, err := k.At(ctx, height-1)
	return Combine(ctx.ChainID(), height, previous, outputs), len(outputs), err
}

// extended reports whether the block of a height carries the extensions of the votes before it.
func extended(ctx sdk.Context, height int64) bool {
	p := ctx.ConsensusParams().Abci
	return p != nil && p.VoteExtensionsEnableHeight != 0 && height > p.VoteExtensionsEnableHeight
}

// check refuses an extended commit whose votes are not those of the last commit of the block: a proposer that omitted a
// vote from it would omit the ballot.
func (k *Keeper) check(ctx sdk.Context, commit abci.ExtendedCommitInfo) error {
	last := ctx.CometInfo().GetLastCommit().Votes()
	for i, v := range commit.Votes {
		if i < last.Len() && int32(v.BlockIdFlag) != int32(last.Get(i).GetBlockIDFlag()) {
			return fmt.Errorf("beacon: the extended commit has another vote of validator %X than the commit",
				v.Validator.Address)
		}
	}
	return baseapp.ValidateVoteExtensions(ctx, k.validators, ctx.BlockHeight(), ctx.ChainID(), commit)
}

// decode reads the extended commit of a block. It accepts only the canonical encoding, so that a proposer cannot add
// bytes.
func decode(txs [][]byte) (commit abci.ExtendedCommitInfo, err error) {
	if len(txs) == 0 {
		return commit, fmt.Errorf("beacon: the block has no extended commit")
	}
	if err := commit.Unmarshal(txs[0]); err != nil {
		return commit, fmt.Errorf("beacon: extended commit: %w", err)
	}
	if again, err := commit.Marshal(); err != nil || !bytes.Equal(again, txs[0]) {
		return commit, fmt.Errorf("beacon: extended commit: not its canonical encoding")
	}
	return commit, nil
}

package beacon

import (
	"bytes"
	"fmt"

	abci "github.com/cometbft/cometbft/abci/types"
	cmttypes "github.com/cometbft/cometbft/types"
	"github.com/cosmos/cosmos-sdk/baseapp"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"github.com/oasisprotocol/curve25519-voi/primitives/ed25519"

	"github.com/starling-network/starling/chain/x/beacon/beaconpb"
)

// A vote carries its validator's proof as its extension. The proposer of the next block puts the extended commit first
// among the transactions; every validator checks it before it votes, and every node makes the beacon from it before it
// executes the block.

// ExtendVote adds the proof of the validator that holds the private key. Without its key on chain it adds nothing.
func (k *Keeper) ExtendVote(private ed25519.PrivateKey, validator []byte) sdk.ExtendVoteHandler {
	return func(ctx sdk.Context, req *abci.RequestExtendVote) (*abci.ResponseExtendVote, error) {
		public, err := k.key(ctx, validator, req.Height)
		if err != nil || len(private) == 0 || !bytes.Equal(public, private.Public().(ed25519.PublicKey)) {
			return &abci.ResponseExtendVote{}, err
		}
		previous, err := k.At(ctx, req.Height-1)
		if err != nil {
			return nil, err
		}
		return &abci.ResponseExtendVote{VoteExtension: Prove(private, Alpha(ctx.ChainID(), req.Height, previous))}, nil
	}
}

// VerifyVote refuses a vote whose extension is neither empty nor a right proof.
func (k *Keeper) VerifyVote(ctx sdk.Context, req *abci.RequestVerifyVoteExtension) (*abci.ResponseVerifyVoteExtension, error) {
	_, ok, err := k.output(ctx, req.Height, req.ValidatorAddress, req.VoteExtension)
	if err != nil {
		return nil, err
	}
	if !ok && len(req.VoteExtension) > 0 {
		return &abci.ResponseVerifyVoteExtension{Status: abci.ResponseVerifyVoteExtension_REJECT}, nil
	}
	return &abci.ResponseVerifyVoteExtension{Status: abci.ResponseVerifyVoteExtension_ACCEPT}, nil
}

// output is what the proof in a vote of a height shows.
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

// PrepareProposal puts the extended commit of the previous block before the transactions, as many as still fit.
func (k *Keeper) PrepareProposal(ctx sdk.Context, req *abci.RequestPrepareProposal) (*abci.ResponsePrepareProposal, error) {
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

// ProcessProposal accepts a block that starts with a right extended commit. A transaction that does not decode fails
// when it is executed; it is no reason to refuse the block.
func (k *Keeper) ProcessProposal(ctx sdk.Context, req *abci.RequestProcessProposal) (*abci.ResponseProcessProposal, error) {
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

// PreBlock makes and stores the beacon of the block.
func (k *Keeper) PreBlock(ctx sdk.Context, req *abci.RequestFinalizeBlock) error {
	if !extended(ctx, req.Height) {
		return nil
	}
	commit, err := decode(req.Txs)
	if err != nil {
		return err
	}
	var outputs []Output
	for _, vote := range commit.Votes {
		beta, ok, err := k.output(ctx, req.Height-1, vote.Validator.Address, vote.VoteExtension)
		if err != nil {
			return err
		}
		if ok {
			outputs = append(outputs, Output{Validator: vote.Validator.Address, Beta: beta})
		}
	}
	previous, err := k.At(ctx, req.Height-1)
	if err != nil {
		return err
	}
	value := Combine(ctx.ChainID(), req.Height, previous, outputs)
	if err := k.record(ctx, req.Height, value); err != nil {
		return err
	}
	return ctx.EventManager().EmitTypedEvent(&beaconpb.EventBeacon{
		Height: req.Height, Value: value.String(), Outputs: uint32(len(outputs)),
	})
}

// extended reports whether the block of a height carries the extensions of the votes before it.
func extended(ctx sdk.Context, height int64) bool {
	p := ctx.ConsensusParams().Abci
	return p != nil && p.VoteExtensionsEnableHeight != 0 && height > p.VoteExtensionsEnableHeight
}

func (k *Keeper) check(ctx sdk.Context, commit abci.ExtendedCommitInfo) error {
	return baseapp.ValidateVoteExtensions(ctx, k.validators, ctx.BlockHeight(), ctx.ChainID(), commit)
}

// decode reads the extended commit of a block; only its one encoding counts, so that a proposer cannot add bytes to it.
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

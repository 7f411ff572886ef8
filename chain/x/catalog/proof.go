package catalog

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/catalog/catalogpb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/verifier"
	"github.com/starling-network/starling/protocol/catalog"
)

// Gas of proofs, in addition to that of the SDK for the bytes of the transaction and of the store: of one that is
// verified, of each commitment of it after the first, which takes a pairing and two points of a key, and of a key whose
// points are checked.
const (
	proofGas      = 4_000_000
	commitmentGas = 50_000
	keyGas        = 2_000_000
)

// Errors of proofs, in addition to those of packages proof and protocol/catalog.
var (
	ErrKey   = errors.New("catalog: no such verifying key")
	ErrOwner = errors.New("catalog: the account does not own the listing")
	ErrAgain = errors.New("catalog: it is registered already")
)

// RegisterKey implements catalogpb.MsgServer.
func (k messages) RegisterKey(ctx context.Context,
	m *catalogpb.MsgRegisterKey) (*catalogpb.MsgRegisterKeyResponse, error) {
	now := sdk.UnwrapSDKContext(ctx)
	now.GasMeter().ConsumeGas(recordGas+keyGas, "verifying key")
	if len(m.Key) > catalog.MaxProofBytes {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: %d bytes, at most %d", proof.ErrKey, len(m.Key),
			catalog.MaxProofBytes))
	}
	v, err := verifier.ReadKey(m.Key)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	d := v.Digest
	if known, err := k.keys.Has(ctx, d[:]); err != nil {
		return nil, err
	} else if known {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: key %s", ErrAgain, d))
	}
	return &catalogpb.MsgRegisterKeyResponse{Digest: d[:]}, k.keys.Set(ctx, d[:],
		catalog.ProofKey{Account: m.Sender, Height: now.BlockHeight(), Key: m.Key})
}

// Prove implements catalogpb.MsgServer.
func (k messages) Prove(ctx context.Context, m *catalogpb.MsgProve) (*catalogpb.MsgProveResponse, error) {
	now := sdk.UnwrapSDKContext(ctx)
	now.GasMeter().ConsumeGas(recordGas+proofGas, "proof")
	p, err := k.proven(ctx, m)
	if err != nil {
		return nil, ErrorTable.Wrap(err)
	}
	p.Height = now.BlockHeight()
	if known, err := k.shown.Has(ctx, collections.Join(p.Listing, p.Proof[:])); err != nil {
		return nil, err
	} else if known {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: proof %s", ErrAgain, p.Proof))
	}
	n, err := k.proofs.Get(ctx, p.Listing)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	if n >= catalog.MaxProofs {
		return nil, ErrorTable.Wrap(fmt.Errorf("%w: it has %d proofs, which is the most", catalog.ErrProven, n))
	}
	return &catalogpb.MsgProveResponse{}, errors.Join(k.proofs.Set(ctx, p.Listing, n+1),
		k.shown.Set(ctx, collections.Join(p.Listing, p.Proof[:]), p))
}

// proven verifies the proof of a message.
func (k messages) proven(ctx context.Context, m *catalogpb.MsgProve) (p catalog.Proven, err error) {
	if len(m.Proof) > catalog.MaxProofBytes {
		return p, fmt.Errorf("%w: %d bytes, at most %d", proof.ErrProof, len(m.Proof), catalog.MaxProofBytes)
	}
	made, err := verifier.Decode(m.Proof)
	if err != nil {
		return p, err
	}
	l, err := k.Listing(ctx, m.Listing)
	if err != nil {
		return p, err
	}
	if l.Owner != m.Sender {
		return p, fmt.Errorf("%w: %s, listing %d", ErrOwner, m.Sender, l.ID)
	}
	c := made.Claim()
	more := max(len(c.Commitments), 1) - 1
	sdk.UnwrapSDKContext(ctx).GasMeter().ConsumeGas(commitmentGas*uint64(more), "commitments")
	if err := k.fits(ctx, l, m.Parent, c); err != nil {
		return p, err
	}
	v, err := k.verifier(ctx, m.Key)
	if err != nil {
		return p, err
	}
	p = catalog.MakeProven(l, c, v)
	p.Parent = m.Parent
	return p, v.Verify(made)
}

// fits checks that a proof is about a listing, and, if it is about an adapter, about a parent of it.
func (k messages) fits(ctx context.Context, l catalog.Listing, parent uint64, c verifier.Claim) error {
	if c.Kind != verifier.Adapter {
		if parent != 0 {
			return fmt.Errorf("%w: it is about an %s, which has no parent", catalog.ErrProven, c.Kind)
		}
		return l.Shows(c.Files, c.Owner)
	}
	of, err := k.Listing(ctx, parent)
	if err != nil {
		return err
	}
	return l.Fits(of, c.Base, c.Files, c.Owner)
}

func (k messages) verifier(ctx context.Context, digest []byte) (verifier.Key, error) {
	d, err := runpb.Digest(digest)
	if err != nil {
		return verifier.Key{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	key, err := k.keys.Get(ctx, d[:])
	if errors.Is(err, collections.ErrNotFound) {
		return verifier.Key{}, fmt.Errorf("%w: %s", ErrKey, d)
	}
	if err != nil {
		return verifier.Key{}, err
	}
	return verifier.ReadKey(key.Key)
}

// Proofs lists what was proven about a listing.
func (q Queries) Proofs(ctx context.Context, m *catalogpb.QueryProofsRequest) (*catalogpb.QueryProofsResponse, error) {
	r := &catalogpb.QueryProofsResponse{}
	return r, q.shown.Walk(ctx, collections.NewPrefixedPairRange[uint64, []byte](m.Listing),
		func(_ collections.Pair[uint64, []byte], p catalog.Proven) (bool, error) {
			r.Proofs = append(r.Proofs, canon.MustMarshal(p))
			return false, nil
		})
}

// Key returns a verifying key.
func (q Queries) Key(ctx context.Context, m *catalogpb.QueryKeyRequest) (*catalogpb.QueryKeyResponse, error) {
	var d canon.Digest
	if err := d.UnmarshalText([]byte(m.Digest)); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	key, err := q.keys.Get(ctx, d[:])
	if errors.Is(err, collections.ErrNotFound) {
		return nil, status.Error(codes.NotFound, ErrKey.Error())
	}
	return &catalogpb.QueryKeyResponse{Key: canon.MustMarshal(key)}, err
}

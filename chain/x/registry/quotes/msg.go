package quotes

import (
	"context"
	"errors"
	"fmt"

	"cosmossdk.io/collections"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/chain/x/training/runpb"
	"github.com/starling-network/starling/protocol/attestation"
)

// Attesting answers the messages about attestations.
type Attesting struct {
	List      List
	Authority string            // of governance
	Wrap      func(error) error // gives an error its code
}

// Attest implements registrypb.MsgServer. It refuses: the flag that it once set proved nothing.
func (a Attesting) Attest(context.Context, *registrypb.MsgAttest) (*registrypb.MsgAttestResponse, error) {
	return nil, a.Wrap(ErrNoFlag)
}

// SubmitQuote implements registrypb.MsgServer.
func (a Attesting) SubmitQuote(ctx context.Context,
	m *registrypb.MsgSubmitQuote) (*registrypb.MsgSubmitQuoteResponse, error) {
	until, err := a.List.submit(ctx, m)
	return &registrypb.MsgSubmitQuoteResponse{Until: until}, a.Wrap(err)
}

// PinRoots implements registrypb.MsgServer. Attestations that were accepted before end by themselves.
func (a Attesting) PinRoots(ctx context.Context, m *registrypb.MsgPinRoots) (*registrypb.MsgPinRootsResponse, error) {
	if err := adapter.OnlyBy(a.Authority, m.Authority); err != nil {
		return nil, a.Wrap(err)
	}
	var list []attestation.Root
	for _, r := range m.Roots {
		d, err := runpb.Digest(r.Digest)
		if err != nil {
			return nil, a.Wrap(fmt.Errorf("%w: %v", attestation.ErrRoots, err))
		}
		list = append(list, attestation.Root{Technology: attestation.Technology(r.Technology), Digest: d, Least: r.Least})
	}
	if err := attestation.ValidateRoots(list); err != nil {
		return nil, a.Wrap(err)
	}
	return &registrypb.MsgPinRootsResponse{}, a.List.roots.Set(ctx, roots{list})
}

// Answers implements queries of registrypb.QueryServer.
type Answers struct{ List List }

// Attestations implements registrypb.QueryServer.
func (q Answers) Attestations(ctx context.Context,
	m *registrypb.QueryAttestationsRequest) (*registrypb.QueryAttestationsResponse, error) {
	r := &registrypb.QueryAttestationsResponse{}
	most := adapter.Most(m.Limit)
	err := q.List.records.Walk(ctx, new(collections.Range[string]).StartExclusive(m.After),
		func(_ string, a attestation.Record) (bool, error) {
			ok, err := q.List.holds(ctx, a)
			if ok {
				r.Attestations = append(r.Attestations, canon.MustMarshal(a))
			}
			return len(r.Attestations) == most, err
		})
	return r, err
}

// Attestation implements registrypb.QueryServer.
func (q Answers) Attestation(ctx context.Context,
	m *registrypb.QueryAttestationRequest) (*registrypb.QueryAttestationResponse, error) {
	a, err := q.List.records.Get(ctx, m.Id)
	holds := false
	if err == nil {
		holds, err = q.List.holds(ctx, a)
	}
	if errors.Is(err, collections.ErrNotFound) || err == nil && !holds {
		return nil, status.Error(codes.NotFound, fmt.Sprintf("the machine of %s is not attested", m.Id))
	}
	return &registrypb.QueryAttestationResponse{Attestation: canon.MustMarshal(a)}, err
}

// Roots implements registrypb.QueryServer.
func (q Answers) Roots(ctx context.Context, _ *registrypb.QueryRootsRequest) (*registrypb.QueryRootsResponse, error) {
	r := &registrypb.QueryRootsResponse{}
	list, err := q.List.Roots(ctx)
	for _, root := range list {
		r.Roots = append(r.Roots, canon.MustMarshal(root))
	}
	return r, err
}

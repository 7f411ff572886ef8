// Package attested sends the messages and the queries about attestations of machines.
package attested

import (
	"context"

	"github.com/starling-network/starling/chain/x/registry/registrypb"
	"github.com/starling-network/starling/client/module/submit"
	"github.com/starling-network/starling/client/query"
	"github.com/starling-network/starling/protocol/attestation"
)

// Client sends the messages and the queries about attestations of machines.
type Client struct{ submit.Account }

// Submit attests the machine of the account by a quote, whose nonce is from the beacon of a block.
func (c Client) Submit(ctx context.Context, block int64, e attestation.Evidence) error {
	return submit.Send(ctx, c.Account, &registrypb.MsgSubmitQuote{Sender: c.Address(), Block: block, Quote: e.Quote,
		Certificates: e.Certificates, Revocations: e.Revocations, TCBInfo: e.TCBInfo, QEIdentity: e.QEIdentity})
}

// All lists the attestations that hold, in order of participant.
func (c Client) All(ctx context.Context) ([]attestation.Record, error) {
	var all []attestation.Record
	for next := (&registrypb.QueryAttestationsRequest{}); ; {
		r, err := registrypb.NewQueryClient(c.Account).Attestations(ctx, next)
		page, err := query.List[attestation.Record](r.GetAttestations(), err)
		if err != nil || len(page) == 0 {
			return all, err
		}
		all = append(all, page...)
		next.After = page[len(page)-1].ID
	}
}

// Of is the attestation of a participant. Without one that holds it returns query.ErrNotFound.
func (c Client) Of(ctx context.Context, participant string) (attestation.Record, error) {
	r, err := registrypb.NewQueryClient(c.Account).Attestation(ctx,
		&registrypb.QueryAttestationRequest{Id: participant})
	return query.One[attestation.Record](r.GetAttestation(), err)
}

// Roots are the root certificates that governance has pinned.
func (c Client) Roots(ctx context.Context) ([]attestation.Root, error) {
	r, err := registrypb.NewQueryClient(c.Account).Roots(ctx, &registrypb.QueryRootsRequest{})
	return query.List[attestation.Root](r.GetRoots(), err)
}

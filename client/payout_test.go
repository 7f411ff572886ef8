package client_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/payout/payoutpb"
	"github.com/starling-network/starling/client/module"
	"github.com/starling-network/starling/protocol/payout"
)

// claiming is an account at a node that answers each query of claims with one.
type claiming struct {
	module.Account
	claim payout.Proof
}

func (c claiming) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	b, err := canon.Marshal(c.claim)
	reply.(*payoutpb.QueryClaimsResponse).Claims = [][]byte{b}
	return err
}

// A node that lies can give a claim that no contract takes, which is refused before a call is made of it.
func TestClaimsOfALyingNode(t *testing.T) {
	for _, c := range []struct {
		claim payout.Proof
		want  error
	}{
		{payout.Proof{Total: bytes.Repeat([]byte{1}, 32)}, nil},
		{payout.Proof{Total: bytes.Repeat([]byte{1}, 33)}, payout.ErrClaim},
		{payout.Proof{Total: []byte{1}, Path: make([]payout.Digest, 65)}, payout.ErrClaim},
	} {
		if _, _, err := module.Of(claiming{claim: c.claim}).Payout.Claims(t.Context(), 1, payout.Address{}); !errors.Is(err,
			c.want) {
			t.Errorf("a claim of %d bytes with a path of %d: %v", len(c.claim.Total), len(c.claim.Path), err)
		}
	}
}

package client_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/x/arena/arenapb"
	"github.com/starling-network/starling/client/module/arena"
	"github.com/starling-network/starling/client/module/submit"
	"github.com/starling-network/starling/protocol/committee"
)

// liar is a node that has the same page of members for each question, of a committee with more of them.
type liar struct {
	submit.Account
	asked int
}

func (l *liar) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	l.asked++
	*reply.(*arenapb.QueryCommitteeResponse) = arenapb.QueryCommitteeResponse{
		Committee: canon.MustMarshal(committee.Committee{ID: 1, Members: 1 << 31}),
		Members: [][]byte{canon.MustMarshal(committee.Member{Account: "a"}),
			canon.MustMarshal(committee.Member{Account: "b"})}}
	return nil
}

// A node that says that there are ever more members does not take the memory of those that ask it.
func TestMembersEnd(t *testing.T) {
	l := &liar{}
	a, err := arena.Client{Account: l}.Committee(t.Context(), 1)
	if err != nil || len(a.All) > committee.MaxMembers || l.asked != committee.MaxMembers/2 {
		t.Errorf("%d members by %d questions, %v", len(a.All), l.asked, err)
	}
}

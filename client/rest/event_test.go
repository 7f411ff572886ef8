package rest

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/client/api"
)

func TestEventsAreInOrder(t *testing.T) {
	j := api.Job{State: "stopped", Round: 2, Rounds: 4, Reason: &api.Reason{Text: "no process trains it"}}
	lineage := []api.Checkpoint{{Round: 1, StateRoot: "aa"}, {Round: 2, StateRoot: "bb", Signers: make([]api.Signer, 3)}}
	receipts := []api.Receipt{{Round: 1, Kind: "work", Height: 9}, {Round: 2, Kind: "slash", Height: 21, Who: "w"}}
	disputes := []api.Dispute{{Round: 2, Worker: "w", Challenger: "v", Verdict: "worker_lied", Height: 21,
		Log: []api.Move{{Height: 20}}}, {Round: 1, Verdict: "open"}}
	var kinds []string
	for _, e := range events(j, lineage, receipts, disputes) {
		kinds = append(kinds, e.Kind)
	}
	if want := []string{"attested", "challenged", "attested", "challenged", "verdict", "slash",
		"stopped"}; !slices.Equal(kinds, want) {
		t.Errorf("%v, want %v", kinds, want)
	}
}

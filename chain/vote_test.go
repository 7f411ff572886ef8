package chain

import (
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/chain/x/beacon"
)

// TestVoteExtensions asks the applications of two validators for their votes on the first block, and lets each verify
// the other's.
func TestVoteExtensions(t *testing.T) {
	keys := []identity.Keys{identity.NewKeys(canon.Sum("0")), identity.NewKeys(canon.Sum("1"))}
	doc, err := Genesis("test", time.Unix(1, 0), keys, []Funded{{Address: keys[0].Address(), Amount: 1}})
	if err != nil {
		t.Fatal(err)
	}
	params := doc.ConsensusParams.ToProto()
	apps := make([]*app.App, len(keys))
	votes := make([][]byte, len(keys))
	for i, k := range keys {
		v := app.Validator{Address: k.Consensus.PubKey().Address(), VRF: k.VRF}
		if apps[i], err = app.New(log.NewNopLogger(), dbm.NewMemDB(), app.Config{ChainID: "test", Validator: v}); err != nil {
			t.Fatal(err)
		}
		_, err = apps[i].InitChain(&abci.RequestInitChain{
			ChainId: "test", Time: doc.GenesisTime, InitialHeight: 1, ConsensusParams: &params, AppStateBytes: doc.AppState,
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := apps[i].ExtendVote(t.Context(), &abci.RequestExtendVote{Height: 1})
		if err != nil || len(r.VoteExtension) == 0 {
			t.Fatalf("validator %d extends its vote by %x (%v)", i, r.GetVoteExtension(), err)
		}
		votes[i] = r.VoteExtension
	}
	later := beacon.Prove(keys[1].VRF, beacon.Alpha("test", 2, canon.Digest{}))
	for _, c := range []struct {
		name      string
		extension []byte
		want      abci.ResponseVerifyVoteExtension_VerifyStatus
	}{
		{"right", votes[1], abci.ResponseVerifyVoteExtension_ACCEPT},
		{"silent", nil, abci.ResponseVerifyVoteExtension_ACCEPT},
		{"somebody else's", votes[0], abci.ResponseVerifyVoteExtension_REJECT},
		{"for another height", later, abci.ResponseVerifyVoteExtension_REJECT},
		{"short", votes[1][1:], abci.ResponseVerifyVoteExtension_REJECT},
	} {
		r, err := apps[0].VerifyVoteExtension(&abci.RequestVerifyVoteExtension{
			Height: 1, ValidatorAddress: keys[1].Consensus.PubKey().Address(), VoteExtension: c.extension,
		})
		if err != nil || r.Status != c.want {
			t.Errorf("%s: %v (%v), want %v", c.name, r.GetStatus(), err, c.want)
		}
	}
}

func TestGenesisIsAFunctionOfItsInputs(t *testing.T) {
	keys := []identity.Keys{identity.NewKeys(canon.Sum("0"))}
	one, err := Genesis("test", time.Unix(1, 0), keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Genesis("test", time.Unix(1, 0), keys, nil)
	if err != nil || string(one.AppState) != string(two.AppState) {
		t.Errorf("two genesis states of the same inputs differ (%v)", err)
	}
	if _, err := Genesis("test", time.Unix(1, 0), keys, []Funded{{Address: "cosmos1nobody", Amount: 1}}); err == nil {
		t.Error("an account of another chain has coins")
	}
}

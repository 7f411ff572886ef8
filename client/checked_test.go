package client_test

import (
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"
	sdk "github.com/cosmos/cosmos-sdk/types"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"github.com/google/go-cmp/cmp"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
)

// TestCheckedOrNot executes a block on an application that has seen its transactions before and on one that has not:
// all that validators agree on is the same, gas and refusals too.
func TestCheckedOrNot(t *testing.T) {
	t.Parallel()
	payer := wallet.KeyFromSeed(canon.Sum("payer"))
	doc, err := chain.Genesis("test", time.Unix(1, 0), []identity.Keys{identity.NewKeys(canon.Sum("0"))},
		[]chain.Funded{{Address: payer.Address(), Amount: 100}})
	if err != nil {
		t.Fatal(err)
	}
	params := doc.ConsensusParams.ToProto()
	params.Abci.VoteExtensionsEnableHeight = 0
	open := func() *app.App {
		a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), app.Config{ChainID: doc.ChainID, Simulated: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		_, err = a.InitChain(&abci.RequestInitChain{ChainId: doc.ChainID, Time: doc.GenesisTime, InitialHeight: 1,
			ConsensusParams: &params, AppStateBytes: doc.AppState})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	execute := func(a *app.App, height int64, txs [][]byte) *abci.ResponseFinalizeBlock {
		r, err := a.FinalizeBlock(&abci.RequestFinalizeBlock{Height: height,
			Time: doc.GenesisTime.Add(time.Duration(height) * time.Second), Txs: txs})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.Commit(); err != nil {
			t.Fatal(err)
		}
		return r
	}
	checked, not := open(), open()
	execute(checked, 1, nil)
	execute(not, 1, nil)

	question, err := (&authtypes.QueryAccountInfoRequest{Address: payer.Address()}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	answer, err := checked.Query(t.Context(),
		&abci.RequestQuery{Path: "/cosmos.auth.v1beta1.Query/AccountInfo", Data: question})
	if err != nil {
		t.Fatal(err)
	}
	var account authtypes.QueryAccountInfoResponse
	if err := account.Unmarshal(answer.Value); err != nil || account.Info == nil {
		t.Fatalf("%v: %v", answer.Log, err)
	}
	sign := func(chainID string, sequence uint64) []byte {
		pay := &banktypes.MsgSend{FromAddress: payer.Address(), ToAddress: payer.Address(),
			Amount: sdk.NewCoins(sdk.NewInt64Coin(adapter.Denom, 1))}
		tx, err := transaction.Sign(t.Context(), payer,
			transaction.Account{ChainID: chainID, Number: account.Info.AccountNumber, Sequence: sequence}, 0, pay)
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	first, second := sign(doc.ChainID, 0), sign(doc.ChainID, 1)
	bent := append([]byte(nil), second...)
	bent[len(bent)-1]++
	block := [][]byte{first, first, bent, sign("another", 1), second, second}
	right := []bool{true, false, false, false, true, false}
	for i, tx := range block {
		r, err := checked.CheckTx(&abci.RequestCheckTx{Tx: tx, Type: abci.CheckTxType_New})
		if err != nil || (r.Code == 0) != right[i] {
			t.Errorf("transaction %d: checked as %v (%v)", i, r, err)
		}
	}
	want := execute(not, 2, block)
	for i, r := range want.TxResults {
		if (r.Code == 0) != right[i] {
			t.Errorf("transaction %d: executed as %v", i, r)
		}
	}
	if diff := cmp.Diff(want, execute(checked, 2, block)); diff != "" {
		t.Errorf("executed after a check (+) and without (-):\n%s", diff)
	}
}

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

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
)

// Wallets that store numbers as doubles can read the numbers of all accounts: of the genesis, of modules and new ones,
// and of a chain that continues from an export. No two accounts have the same.
func TestAccountNumbersAreThoseThatWalletsRead(t *testing.T) {
	t.Parallel()
	payer := wallet.KeyFromSeed(canon.Sum("payer"))
	doc, err := chain.Genesis("test", time.Unix(1, 0), []identity.Keys{identity.NewKeys(canon.Sum("0"))},
		[]chain.Funded{{Address: payer.Address(), Amount: 100}})
	if err != nil {
		t.Fatal(err)
	}
	params := doc.ConsensusParams.ToProto()
	params.Abci.VoteExtensionsEnableHeight = 0
	open := func(state []byte) *app.App {
		a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), app.Config{ChainID: doc.ChainID, Simulated: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close() })
		if _, err = a.InitChain(&abci.RequestInitChain{ChainId: doc.ChainID, Time: doc.GenesisTime, InitialHeight: 1,
			ConsensusParams: &params, AppStateBytes: state}); err != nil {
			t.Fatal(err)
		}
		return a
	}
	execute := func(a *app.App, height int64, txs ...[]byte) {
		r, err := a.FinalizeBlock(&abci.RequestFinalizeBlock{Height: height,
			Time: doc.GenesisTime.Add(time.Duration(height) * time.Second), Txs: txs})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range r.TxResults {
			if r.Code != 0 {
				t.Fatal(r.Log)
			}
		}
		if _, err := a.Commit(); err != nil {
			t.Fatal(err)
		}
	}
	numbers := func(a *app.App) map[string]uint64 {
		t.Helper()
		answer, err := a.Query(t.Context(), &abci.RequestQuery{Path: "/cosmos.auth.v1beta1.Query/Accounts"})
		if err != nil || answer.Code != 0 {
			t.Fatalf("%v, %v", answer, err)
		}
		var list authtypes.QueryAccountsResponse
		if err := list.Unmarshal(answer.Value); err != nil {
			t.Fatal(err)
		}
		of, seen := map[string]uint64{}, map[uint64]bool{}
		for _, any := range list.Accounts {
			var account sdk.AccountI
			if err := a.Registry.UnpackAny(any, &account); err != nil {
				t.Fatal(err)
			}
			n := account.GetAccountNumber()
			if n >= 1<<53 || seen[n] {
				t.Errorf("account %s has number %d", account.GetAddress(), n)
			}
			seen[n], of[account.GetAddress().String()] = true, n
		}
		return of
	}
	send := func(number, sequence uint64, to ...string) []byte {
		var messages []sdk.Msg
		for _, name := range to {
			messages = append(messages, &banktypes.MsgSend{
				FromAddress: payer.Address(), ToAddress: wallet.KeyFromSeed(canon.Sum(name)).Address(),
				Amount: sdk.NewCoins(sdk.NewInt64Coin(adapter.Denom, 1)),
			})
		}
		tx, err := transaction.Sign(t.Context(), payer, transaction.Account{ChainID: doc.ChainID, Number: number,
			Sequence: sequence}, 0, messages...)
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	first := open(doc.AppState)
	execute(first, 1)
	before := numbers(first)
	own := before[payer.Address()]
	execute(first, 2, send(own, 0, "a", "b"), send(own, 1, "c"))
	after := numbers(first)
	if len(after) != len(before)+3 {
		t.Errorf("%d accounts, then %d", len(before), len(after))
	}
	state, err := first.Export()
	if err != nil {
		t.Fatal(err)
	}
	second := open(state)
	execute(second, 1)
	for address, n := range numbers(second) {
		if after[address] != n {
			t.Errorf("%s had number %d and has %d", address, after[address], n)
		}
	}
	execute(second, 2, send(own, 2, "d"))
	if got := numbers(second); len(got) != len(after)+1 {
		t.Errorf("%d accounts, then %d", len(after), len(got))
	}
}

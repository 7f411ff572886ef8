package client_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"cosmossdk.io/log/v2"
	abcicli "github.com/cometbft/cometbft/abci/client"
	abci "github.com/cometbft/cometbft/abci/types"
	dbm "github.com/cosmos/cosmos-db"
	sdk "github.com/cosmos/cosmos-sdk/types"
	txtypes "github.com/cosmos/cosmos-sdk/types/tx"
	authtypes "github.com/cosmos/cosmos-sdk/x/auth/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/app"
	"github.com/starling-network/starling/chain/identity"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/client/wallet"
)

// held answers a query when it is let go.
type held struct {
	grpc_health_v1.UnimplementedHealthServer
	begun, end chan struct{}
}

func (h held) Check(context.Context, *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	h.begun <- struct{}{}
	<-h.end
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

// called is an application after its first block, as CometBFT calls it, and an account of it.
func called(t *testing.T) (abcicli.Client, *wallet.Key, *held) {
	t.Helper()
	user := wallet.KeyFromSeed([32]byte{7})
	doc, err := chain.Genesis("test", time.Unix(1_700_000_000, 0), []identity.Keys{identity.NewKeys([32]byte{1})},
		[]chain.Funded{{Address: user.Address(), Amount: 1_000_000}})
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.New(log.NewNopLogger(), dbm.NewMemDB(), app.Config{ChainID: "test", Simulated: true})
	if err != nil {
		t.Fatal(err)
	}
	h := &held{begun: make(chan struct{}), end: make(chan struct{})}
	grpc_health_v1.RegisterHealthServer(a.GRPCQueryRouter(), h)
	c, err := chain.Calls(a).NewABCIClient()
	if err != nil {
		t.Fatal(err)
	}
	doc.ConsensusParams.ABCI.VoteExtensionsEnableHeight = 1000 // no validator votes here
	params := doc.ConsensusParams.ToProto()
	if _, err := c.InitChain(t.Context(),
		&abci.RequestInitChain{ChainId: "test", Time: doc.GenesisTime, InitialHeight: 1, ConsensusParams: &params,
			AppStateBytes: doc.AppState}); err != nil {
		t.Fatal(err)
	}
	block(t, c, 1)
	return c, user, h
}

func block(t testing.TB, c abcicli.Client, height int64) {
	t.Helper()
	_, err := c.FinalizeBlock(context.Background(),
		&abci.RequestFinalizeBlock{Height: height, Time: time.Unix(1_700_000_000+height, 0),
			Hash: bytes.Repeat([]byte{1}, 32)})
	if err == nil {
		_, err = c.Commit(context.Background(), &abci.RequestCommit{})
	}
	if err != nil {
		t.Error(err)
	}
}

// sends is a signed transaction of n messages.
func sends(t *testing.T, user *wallet.Key, number, sequence uint64, n int) []byte {
	t.Helper()
	var msgs []sdk.Msg
	for range n {
		msgs = append(msgs, &banktypes.MsgSend{FromAddress: user.Address(), ToAddress: user.Address(),
			Amount: adapter.Coins(1)})
	}
	tx, err := transaction.Sign(t.Context(), user, transaction.Account{ChainID: "test", Number: number,
		Sequence: sequence}, 0, msgs...)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// unsigned is such a transaction without its signature.
func unsigned(t *testing.T, user *wallet.Key, n int) []byte {
	t.Helper()
	var raw txtypes.TxRaw
	if err := raw.Unmarshal(sends(t, user, 0, 0, n)); err != nil {
		t.Fatal(err)
	}
	raw.Signatures = [][]byte{nil}
	b, err := raw.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Consensus does not wait for a query: the state is committed and transactions are checked while one is not answered.
func TestConsensusWaitsForNoQuery(t *testing.T) {
	t.Parallel()
	c, user, h := called(t)
	answered := make(chan error)
	go func() {
		_, err := c.Query(context.Background(), &abci.RequestQuery{Path: "/grpc.health.v1.Health/Check"})
		answered <- err
	}()
	<-h.begun
	block(t, c, 2)
	if _, err := c.CheckTx(t.Context(), &abci.RequestCheckTx{Tx: sends(t, user, 0, 0, 1)}); err != nil {
		t.Error(err)
	}
	close(h.end)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// A node refuses to simulate a transaction that is signed by another account, that has too many messages, or is too
// large; a wallet may ask about a small one before it is signed.
func TestSimulationOfAStranger(t *testing.T) {
	t.Parallel()
	c, user, _ := called(t)
	number := accountNumber(t, c, user)
	forged := sends(t, user, number+1, 0, 1) // signed, for another account
	for _, s := range []struct {
		name string
		tx   []byte
		want string
	}{
		{"of the account", sends(t, user, number, 0, 1), ""},
		{"after others that are on their way", sends(t, user, number, 12, 1), ""},
		{"with a wrong signature", forged, "signature verification failed"},
		{"of 20,000 messages", sends(t, user, number, 0, 20_000), "messages in one transaction"},
		{"of 6 MiB", make([]byte, 6<<20), "at most"},
		{"of a wallet, without a signature", unsigned(t, user, 1), ""},
		{"without a signature, of 20 messages", unsigned(t, user, 20), "without a signature"},
		{"that is none", []byte("nonsense"), "tx parse error"},
	} {
		r, err := c.Query(t.Context(), &abci.RequestQuery{Path: "/app/simulate", Data: s.tx})
		if err != nil {
			t.Fatal(err)
		}
		if ok := r.Code == 0; ok != (s.want == "") || !strings.Contains(r.Log, s.want) {
			t.Errorf("a transaction %s: code %d, %s", s.name, r.Code, r.Log)
		}
	}
	if r, err := c.CheckTx(t.Context(), &abci.RequestCheckTx{Tx: sends(t, user, number, 0, 60_000)}); err != nil ||
		r.Code == 0 {
		t.Errorf("60,000 messages wait for a block: %+v, %v", r, err)
	}
}

// While eight ask without end, blocks are made, and what they read is what a block left.
func TestBlocksUnderAFloodOfQueries(t *testing.T) {
	t.Parallel()
	c, user, _ := called(t)
	tx := sends(t, user, accountNumber(t, c, user), 0, 30)
	ctx, stop := context.WithCancel(t.Context())
	var flood sync.WaitGroup
	for i := range 8 {
		flood.Go(func() {
			for ctx.Err() == nil {
				q := &abci.RequestQuery{Path: "/app/simulate", Data: tx}
				if i%2 == 0 {
					q = &abci.RequestQuery{Path: "/starling.market.v1.Query/Lots"}
				}
				if r, err := c.Query(ctx, q); err != nil || r.Code != 0 && !strings.Contains(r.Log, "too many queries") {
					t.Errorf("%s: %+v, %v", q.Path, r, err)
					return
				}
			}
		})
	}
	for h := range 10 {
		block(t, c, int64(h+2))
	}
	stop()
	flood.Wait()
}

func accountNumber(t *testing.T, c abcicli.Client, user *wallet.Key) uint64 {
	t.Helper()
	text, err := (&authtypes.QueryAccountInfoRequest{Address: user.Address()}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	r, err := c.Query(t.Context(), &abci.RequestQuery{Path: "/cosmos.auth.v1beta1.Query/AccountInfo", Data: text})
	if err != nil {
		t.Fatal(err)
	}
	var info authtypes.QueryAccountInfoResponse
	if err := info.Unmarshal(r.Value); err != nil || info.Info == nil {
		t.Fatalf("%+v, %v", r, err)
	}
	return info.Info.AccountNumber
}

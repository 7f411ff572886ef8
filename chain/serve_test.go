//lint:file-ignore SA1019 the SDK serves the first version of reflection only

package chain_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cosmos/cosmos-sdk/crypto/hd"
	"github.com/cosmos/cosmos-sdk/crypto/keys/secp256k1"
	sdk "github.com/cosmos/cosmos-sdk/types"
	banktypes "github.com/cosmos/cosmos-sdk/x/bank/types"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"

	"github.com/starling-network/starling/chain"
	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/internal/porttest"
)

const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// open returns the configuration of a validator with all its interfaces, and an account with coins.
func open(t *testing.T) (c chain.Config, address string) {
	t.Helper()
	secret, err := hd.Secp256k1.Derive()(mnemonic, "", sdk.GetConfig().GetFullBIP44Path())
	if err != nil {
		t.Fatal(err)
	}
	address = sdk.AccAddress((&secp256k1.PrivKey{Key: secret}).PubKey().Address()).String()
	c = config(t.TempDir())
	c.Accounts = []chain.Funded{{Address: address, Amount: 1_000_000_000}}
	c.Log = t.Output()
	c.RPC, c.GRPC, c.REST = porttest.Address(t), porttest.Address(t), porttest.Address(t)
	return c, address
}

// TestOrdinaryClients runs the JavaScript client of Cosmos (CosmJS) against a validator.
func TestOrdinaryClients(t *testing.T) {
	if !*chain.Long {
		t.Skip("with -long")
	}
	t.Parallel()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed", program)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := filepath.Join("testdata", "cosmjs")
	do := func(program string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err != nil { // the client is not installed
		dir = t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/cosmjs")); err != nil {
			t.Fatal(err)
		}
		do("npm", "ci", "--silent")
	}
	c, _ := open(t)
	v, err := chain.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Stop()
	inputs.Of(t, filepath.Join("testdata", "cosmjs", "check.mjs"))
	do("node", "check.mjs", "http://"+c.RPC, "http://"+c.REST, mnemonic)
}

func TestGRPC(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, address := open(t)
	v, err := chain.Start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Stop()
	conn, err := grpc.NewClient(c.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := banktypes.NewQueryClient(conn).Balance(ctx, &banktypes.QueryBalanceRequest{Address: address, Denom: "uzen"})
	if err != nil || r.Balance.Amount.Int64() != 1_000_000_000 {
		t.Errorf("%v (%v)", r, err)
	}
	if r, err := grpc_health_v1.NewHealthClient(conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{}); err != nil ||
		r.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("%v (%v)", r, err)
	}
	stream, err := reflection.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	all := &reflection.ServerReflectionRequest{MessageRequest: &reflection.ServerReflectionRequest_ListServices{}}
	if err := stream.Send(all); err != nil {
		t.Fatal(err)
	}
	list, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, s := range list.GetListServicesResponse().GetService() {
		known[s.Name] = true
	}
	for _, name := range []string{"cosmos.bank.v1beta1.Query", "cosmos.tx.v1beta1.Service",
		"cosmos.base.tendermint.v1beta1.Service", "ibc.applications.transfer.v1.Query", "starling.training.v1.Query"} {
		if !known[name] {
			t.Errorf("%s is not served", name)
		}
	}
	v.Stop()
	if _, err := net.DialTimeout("tcp", c.GRPC, time.Second); err == nil {
		t.Error("the port is open after the end")
	}
}

// A validator whose port is taken returns an error, and leaves nothing running.
func TestPortTaken(t *testing.T) {
	c, _ := open(t)
	l, err := net.Listen("tcp", c.REST)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := chain.Start(t.Context(), c); err == nil {
		t.Fatalf("%s is taken", c.REST)
	}
	c.REST = ""
	v, err := chain.Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	v.Stop()
}

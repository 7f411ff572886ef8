// Package evmtest is a chain of go-ethereum in memory for tests, with its JSON-RPC. No program imports it, nor anything
// of go-ethereum for itself, because of its licence.
package evmtest

import (
	"bytes"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	"github.com/ethereum/go-ethereum/node"

	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/protocol/payout"
)

// Chain is the identifier of every such chain.
const Chain = 1337

// World is a chain on which wallets have ether.
type World struct {
	*simulated.Backend
	Wallets []payout.Wallet
	URL     string // of the JSON-RPC, which makes a block with each transaction
}

// Key is the key of a wallet.
func Key(wallet int) []byte { return bytes.Repeat([]byte{byte(wallet + 1)}, 32) }

// New is a chain with six wallets.
func New(t testing.TB) *World {
	w := &World{}
	alloc := types.GenesisAlloc{}
	ether, _ := new(big.Int).SetString("1000000000000000000000", 10)
	for i := range 6 {
		wallet, err := payout.NewWallet(Key(i))
		if err != nil {
			t.Fatal(err)
		}
		w.Wallets = append(w.Wallets, wallet)
		alloc[common.Address(wallet.Address())] = types.Account{Balance: ether}
	}
	port := porttest.Ports(t, 1)
	w.Backend = simulated.NewBackend(alloc, func(n *node.Config, c *ethconfig.Config) {
		c.Genesis.GasLimit = 60_000_000
		n.HTTPHost, n.HTTPPort, n.HTTPModules = "127.0.0.1", port, []string{"eth", "net", "web3"}
	})
	t.Cleanup(func() { _ = w.Close() })
	server := httptest.NewServer(w.forward(fmt.Sprintf("http://127.0.0.1:%d", port)))
	t.Cleanup(server.Close)
	w.URL = server.URL
	return w
}

// Contract is the address of the first contract of the first wallet.
func (w *World) Contract() payout.Address {
	return payout.Address(crypto.CreateAddress(common.Address(w.Wallets[0].Address()), 0))
}

// Tokens are those of a token that an address has.
func (w *World) Tokens(t testing.TB, token, of payout.Address) int64 {
	t.Helper()
	selector, to := payout.Keccak([]byte("balanceOf(address)")), common.Address(token)
	out, err := w.Client().CallContract(t.Context(), ethereum.CallMsg{To: &to,
		Data: append(append(selector[:4:4], make([]byte, 12)...), of[:]...)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(out).Int64()
}

func (w *World) forward(url string) http.HandlerFunc {
	return func(out http.ResponseWriter, in *http.Request) {
		body, err := io.ReadAll(in.Body)
		if err != nil {
			return
		}
		q, err := http.NewRequestWithContext(in.Context(), http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return
		}
		q.Header.Set("Content-Type", "application/json")
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			http.Error(out, err.Error(), http.StatusBadGateway)
			return
		}
		defer r.Body.Close()
		if bytes.Contains(body, []byte(`"eth_sendRawTransaction"`)) {
			w.Commit()
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(out, r.Body)
	}
}

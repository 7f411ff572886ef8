package contracts_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/starling-network/starling/contracts"
	"github.com/starling-network/starling/internal/evmtest"
	"github.com/starling-network/starling/protocol/payout"
)

const (
	chain = evmtest.Chain
	gas   = 8_000_000
	most  = 100_000_000_000 // wei for a unit of gas
)

var network = payout.Network("starling-test")

// world is a chain of go-ethereum with the contract, and the transactions that made it, for other EVMs.
type world struct {
	testing.TB
	*evmtest.World
	nonces   map[payout.Address]uint64
	contract payout.Address
	abi      abi.ABI
	log      []played
}

// played is a transaction with its result.
type played struct {
	Name  string         `json:"name"`
	Raw   string         `json:"raw"`
	From  payout.Address `json:"from"`
	OK    bool           `json:"ok"`
	Gas   uint64         `json:"gas"`
	Error string         `json:"error,omitempty"` // of the contract
}

// newWorld is a chain without a contract.
func newWorld(t testing.TB) *world {
	w := &world{TB: t, World: evmtest.New(t), nonces: map[payout.Address]uint64{}}
	compiled, err := contracts.Payout()
	if err != nil {
		t.Fatal(err)
	}
	if w.abi, err = abi.JSON(bytes.NewReader(compiled.ABI)); err != nil {
		t.Fatal(err)
	}
	return w
}

// open creates the contract with a set.
func (w *world) open(s payout.Set) *world {
	w.Helper()
	compiled, err := contracts.Payout()
	digest, err2 := s.Digest()
	if err != nil || err2 != nil {
		w.Fatal(err, err2)
	}
	w.contract = w.create(append(compiled.Code, payout.Created(network, s.Number, digest)...))
	return w
}

// create creates a contract, and returns its address.
func (w *world) create(code []byte) payout.Address {
	w.Helper()
	from := w.Wallets[0].Address()
	at := payout.Address(crypto.CreateAddress(common.Address(from), w.nonces[from]))
	w.must("create", 0, nil, code)
	return at
}

// send sends a call of a wallet and makes a block.
func (w *world) send(name string, wallet int, to *payout.Address, data []byte) played {
	w.Helper()
	from := w.Wallets[wallet]
	tx := payout.Transaction{Chain: chain, Nonce: w.nonces[from.Address()], Tip: 1_000_000_000, Most: most, Gas: gas,
		To: to, Data: data}
	raw := tx.Sign(from)
	w.nonces[from.Address()]++
	var decoded types.Transaction
	if err := decoded.UnmarshalBinary(raw); err != nil {
		w.Fatalf("%s: go-ethereum does not read the transaction: %v", name, err)
	}
	ctx := w.Context()
	if err := w.Client().SendTransaction(ctx, &decoded); err != nil {
		w.Fatalf("%s: %v", name, err)
	}
	w.Commit()
	r, err := w.Client().TransactionReceipt(ctx, decoded.Hash())
	if err != nil {
		w.Fatalf("%s: %v", name, err)
	}
	p := played{Name: name, Raw: "0x" + hex.EncodeToString(raw), From: from.Address(), OK: r.Status == 1, Gas: r.GasUsed}
	w.log = append(w.log, p)
	return p
}

func (w *world) must(name string, wallet int, to *payout.Address, data []byte) uint64 {
	w.Helper()
	p := w.send(name, wallet, to, data)
	if !p.OK {
		w.Fatalf("%s is refused", name)
	}
	return p.Gas
}

func (w *world) refused(name string, wallet int, to *payout.Address, data []byte) {
	w.Helper()
	if p := w.send(name, wallet, to, data); p.OK {
		w.Errorf("%s is accepted", name)
	}
}

// ask calls a function that changes nothing.
func (w *world) ask(at payout.Address, of abi.ABI, name string, args ...any) []any {
	w.Helper()
	data, err := of.Pack(name, args...)
	if err != nil {
		w.Fatal(err)
	}
	to := common.Address(at)
	out, err := w.Client().CallContract(w.Context(), call(&to, data), nil)
	if err != nil {
		w.Fatalf("%s: %v", name, err)
	}
	values, err := of.Unpack(name, out)
	if err != nil {
		w.Fatal(err)
	}
	return values
}

// zen is the address of the token that stands for ZEN.
func (w *world) zen() payout.Address {
	return payout.Address(w.ask(w.contract, w.abi, "zen")[0].(common.Address))
}

// odd is the interface and the code of OddToken.
func odd(t testing.TB) (abi.ABI, []byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/OddToken.json")
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Contracts map[string]struct {
			ABI      json.RawMessage
			Bytecode string
		}
	}
	if err := json.Unmarshal(text, &made); err != nil {
		t.Fatal(err)
	}
	c := made.Contracts["OddToken"]
	parsed, err := abi.JSON(bytes.NewReader(c.ABI))
	code, err2 := hex.DecodeString(strings.TrimPrefix(c.Bytecode, "0x"))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	return parsed, code
}

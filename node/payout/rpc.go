// Package payout brings what a network has signed to contracts on Ethereum-style chains, and sees deposits there. It
// speaks JSON-RPC with a node of the other chain, which may withhold what it knows and lie about it: a relayer can lose
// gas then, and validators report what their own node shows.
package payout

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/starling-network/starling/protocol/payout"
)

// ErrRPC is returned for a node that cannot be reached, or that answers with an error or nonsense.
var ErrRPC = errors.New("payout: the node of the other chain")

var errNoContract = errors.New("no contract of payouts")

const (
	maxAnswer = 32 << 20 // bytes
	rpcLimit  = 30 * time.Second
	mostGas   = 10_000_000 // of a transaction: nodes may lie about it
)

// RPC is a node of an Ethereum-style chain.
type RPC struct{ URL string }

func (r RPC) call(ctx context.Context, to any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rpcLimit)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, r.URL, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRPC, err)
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRPC, err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(io.LimitReader(a.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRPC, err)
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%w: %s: status %d: %w", ErrRPC, method, a.StatusCode, err)
	}
	if answer.Error != nil {
		return fmt.Errorf("%w: %s: %.300s", ErrRPC, method, answer.Error.Message)
	}
	if err := json.Unmarshal(answer.Result, to); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRPC, method, err)
	}
	return nil
}

// quantity is a number in JSON-RPC.
type quantity uint64

// MarshalText implements encoding.TextMarshaler.
func (q quantity) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "0x%x", uint64(q)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (q *quantity) UnmarshalText(b []byte) error {
	n, err := strconv.ParseUint(strings.TrimPrefix(string(b), "0x"), 16, 64)
	*q = quantity(n)
	return err
}

// data is bytes in JSON-RPC.
type data []byte

// MarshalText implements encoding.TextMarshaler.
func (d data) MarshalText() ([]byte, error) { return []byte("0x" + hex.EncodeToString(d)), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *data) UnmarshalText(b []byte) (err error) {
	*d, err = hex.DecodeString(strings.TrimPrefix(string(b), "0x"))
	return err
}

func (r RPC) number(ctx context.Context, method string, params ...any) (uint64, error) {
	var q quantity
	err := r.call(ctx, &q, method, params...)
	return uint64(q), err
}

// Chain is the identifier of the chain.
func (r RPC) Chain(ctx context.Context) (uint64, error) { return r.number(ctx, "eth_chainId") }

// is returns an error for a node of another chain.
func (r RPC) is(ctx context.Context, evm uint64) error {
	chain, err := r.Chain(ctx)
	if err == nil && chain != evm {
		err = fmt.Errorf("%w: it is of chain %d, not of chain %d", ErrRPC, chain, evm)
	}
	return err
}

// latest names the last block.
const latest = "latest"

// count reads a number that a contract returns, after a block, for a call without arguments.
func (r RPC) count(ctx context.Context, at payout.Address, function string, block any) (uint64, error) {
	selector := payout.Keccak([]byte(function))
	var d data
	err := r.call(ctx, &d, "eth_call", map[string]any{"to": at, "data": data(selector[:4])}, block)
	if err == nil && len(d) != 32 {
		err = fmt.Errorf("%w: %s has %w", ErrRPC, at, errNoContract)
	}
	if err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(d[24:]), nil
}

// Sent is a transaction that the other chain has executed.
type Sent struct {
	Call     string          `json:"call"`
	Hash     payout.Digest   `json:"transaction"`
	Gas      uint64          `json:"gas"`
	Contract *payout.Address `json:"contract,omitempty"` // that it created
}

// receipt of a transaction.
type receipt struct {
	Status   quantity        `json:"status"`
	Gas      quantity        `json:"gasUsed"`
	Contract *payout.Address `json:"contractAddress"`
}

// Send sends a transaction of a wallet and waits until it is in a block. to nil creates a contract.
func (r RPC) Send(ctx context.Context, w payout.Wallet, call string, to *payout.Address, input []byte) (Sent, error) {
	s := Sent{Call: call}
	t := payout.Transaction{To: to, Data: input}
	var err error
	if t.Chain, err = r.Chain(ctx); err != nil {
		return s, err
	}
	from := w.Address()
	if t.Nonce, err = r.number(ctx, "eth_getTransactionCount", from, "pending"); err != nil {
		return s, err
	}
	price, err := r.number(ctx, "eth_gasPrice")
	if err != nil {
		return s, err
	}
	if t.Tip, err = r.number(ctx, "eth_maxPriorityFeePerGas"); err != nil {
		return s, err
	}
	t.Most = 2*price + t.Tip
	about := map[string]any{"from": from, "data": data(input)}
	if to != nil {
		about["to"] = to
	}
	if t.Gas, err = r.number(ctx, "eth_estimateGas", about); err != nil {
		return s, err
	}
	if t.Gas > mostGas {
		return s, fmt.Errorf("%w: it says that the call %s takes %d gas", ErrRPC, call, t.Gas)
	}
	t.Gas += t.Gas / 5
	raw := t.Sign(w)
	s.Hash = payout.Keccak(raw)
	var hash payout.Digest
	if err := r.call(ctx, &hash, "eth_sendRawTransaction", data(raw)); err != nil {
		return s, err
	}
	for {
		var got *receipt
		if err := r.call(ctx, &got, "eth_getTransactionReceipt", s.Hash); err != nil {
			return s, err
		}
		if got != nil {
			if s.Gas, s.Contract = uint64(got.Gas), got.Contract; got.Status != 1 {
				return s, fmt.Errorf("%w: the contract refuses the call %s in transaction %s", ErrRPC, call, s.Hash)
			}
			return s, nil
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

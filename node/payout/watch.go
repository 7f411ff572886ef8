package payout

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/protocol/payout"
)

// Source is a node of another chain in which a validator sees deposits.
type Source struct {
	EVM  uint64
	RPC  RPC
	From uint64 // block from which the contract is searched
}

// ParseSource reads CHAIN=URL, or CHAIN=URL#BLOCK with the block of the contract.
func ParseSource(text string) (Source, error) {
	chain, url, ok := strings.Cut(text, "=")
	s := Source{}
	var err error
	if s.EVM, err = strconv.ParseUint(chain, 10, 64); err != nil || !ok {
		return s, fmt.Errorf("%q: give CHAIN=URL, such as 1=http://127.0.0.1:8545", text)
	}
	url, block, found := strings.Cut(url, "#")
	if found {
		if s.From, err = strconv.ParseUint(block, 10, 64); err != nil {
			return s, fmt.Errorf("%q: after # comes the number of a block", text)
		}
	}
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return s, fmt.Errorf("%q: the URL begins with http:// or https://", text)
	}
	s.RPC = RPC{url}
	return s, nil
}

// Watcher sees the deposits in contracts, in blocks that are final. It implements the interface of the chain, which
// says which contracts these are.
type Watcher struct {
	sources []Source

	mu    sync.Mutex
	found map[uint64]*watched // by chain
}

// watched is what is known of a contract.
type watched struct {
	contract payout.Address
	next     uint64 // block that is searched next
	deposits []payout.Deposit
}

// NewWatcher returns a watcher of sources.
func NewWatcher(sources []Source) *Watcher {
	return &Watcher{sources: sources, found: map[uint64]*watched{}}
}

// After implements the interface of the chain. The first question about a contract makes Run search it.
func (w *Watcher) After(evm uint64, contract payout.Address, number uint64) []payout.Deposit {
	w.mu.Lock()
	defer w.mu.Unlock()
	have := w.found[evm]
	if have == nil {
		have = &watched{contract: contract}
		for _, s := range w.sources {
			if s.EVM == evm {
				have.next = s.From
			}
		}
		w.found[evm] = have
	}
	if number >= uint64(len(have.deposits)) {
		return nil
	}
	return have.deposits[number:]
}

// Run searches the sources until the context ends, at every pulse.
func (w *Watcher) Run(ctx context.Context, every time.Duration, log *slog.Logger) {
	for {
		for _, s := range w.sources {
			if err := w.Look(ctx, s); err != nil && ctx.Err() == nil {
				log.Warn("deposits on another chain are not seen", "chain", s.EVM, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// A question is about span blocks and depositsAtOnce deposits.
const (
	span           = 2000
	depositsAtOnce = 8
)

// Look searches the blocks of a source that have become final.
func (w *Watcher) Look(ctx context.Context, s Source) error {
	w.mu.Lock()
	have := w.found[s.EVM]
	w.mu.Unlock()
	if have == nil { // the network has no bridge there
		return nil
	}
	if err := s.RPC.is(ctx, s.EVM); err != nil {
		return err
	}
	var final struct {
		Number quantity `json:"number"`
	}
	if err := s.RPC.call(ctx, &final, "eth_getBlockByNumber", "finalized", false); err != nil {
		return err
	}
	count, err := s.RPC.count(ctx, have.contract, "deposits()", final.Number)
	if errors.Is(err, errNoContract) { // its block is not final yet
		return nil
	}
	if err != nil {
		return err
	}
	return w.search(ctx, s, have, uint64(final.Number), count)
}

// search finds the deposits up to a number, in blocks up to the last that is final. A node that does not show one that
// it counts is asked from the block of the contract on the next time: none is skipped.
func (w *Watcher) search(ctx context.Context, s Source, have *watched, final, count uint64) error {
	for from := have.next; from <= final && uint64(len(have.deposits)) < count; {
		last := min(from+span-1, final)
		logs, err := s.RPC.deposits(ctx, have.contract, from, last, uint64(len(have.deposits))+1)
		if err != nil {
			return err
		}
		found := 0
		w.mu.Lock()
		for _, d := range logs {
			if d.Number == uint64(len(have.deposits))+1 {
				have.deposits, found = append(have.deposits, d), found+1
			}
		}
		w.mu.Unlock()
		if found > 0 {
			have.next = from // it may have more
		} else {
			from = last + 1
		}
	}
	if missing := uint64(len(have.deposits)) + 1; missing <= count {
		have.next = s.From
		return fmt.Errorf("%w: it counts %d deposits, and does not show number %d", ErrRPC, count, missing)
	}
	have.next = max(have.next, final+1)
	return nil
}

// deposits are those with a number and the next ones, in the logs of blocks, in their order.
func (r RPC) deposits(ctx context.Context, contract payout.Address, from, to, number uint64) (all []payout.Deposit,
	_ error) {
	event := payout.Keccak([]byte("Deposit(uint64,address,address,bytes20,uint256)"))
	numbers := make([]payout.Digest, depositsAtOnce)
	for i := range numbers {
		binary.BigEndian.PutUint64(numbers[i][24:], number+uint64(i))
	}
	var logs []struct {
		Topics []payout.Digest `json:"topics"`
		Data   data            `json:"data"`
	}
	if err := r.call(ctx, &logs, "eth_getLogs", map[string]any{"address": contract, "topics": []any{event, numbers},
		"fromBlock": quantity(from), "toBlock": quantity(to)}); err != nil {
		return nil, err
	}
	if len(logs) > depositsAtOnce {
		return nil, fmt.Errorf("%w: %d logs of %d deposits", ErrRPC, len(logs), depositsAtOnce)
	}
	for _, l := range logs {
		if len(l.Topics) != 3 || len(l.Data) != 96 {
			return nil, fmt.Errorf("%w: a log of another form", ErrRPC)
		}
		d := payout.Deposit{Number: binary.BigEndian.Uint64(l.Topics[1][24:]), To: l.Data[32:52],
			Amount: new(big.Int).SetBytes(l.Data[64:]).Bytes()}
		copy(d.Token[:], l.Topics[2][12:])
		copy(d.From[:], l.Data[12:32])
		if !d.Valid() {
			return nil, fmt.Errorf("%w: deposit %d is none", ErrRPC, d.Number)
		}
		all = append(all, d)
	}
	return all, nil
}

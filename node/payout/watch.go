package payout

import (
	"context"
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

// span is the number of blocks of a question.
const span = 2000

// Look searches the blocks of a source that have become final.
func (w *Watcher) Look(ctx context.Context, s Source) error {
	w.mu.Lock()
	have := w.found[s.EVM]
	w.mu.Unlock()
	if have == nil { // the network has no bridge there
		return nil
	}
	chain, err := s.RPC.Chain(ctx)
	if err != nil {
		return err
	}
	if chain != s.EVM {
		return fmt.Errorf("%w: it is of chain %d", ErrRPC, chain)
	}
	var final struct {
		Number quantity `json:"number"`
	}
	if err := s.RPC.call(ctx, &final, "eth_getBlockByNumber", "finalized", false); err != nil {
		return err
	}
	for have.next <= uint64(final.Number) {
		last := min(have.next+span-1, uint64(final.Number))
		logs, err := s.RPC.deposits(ctx, have.contract, have.next, last)
		if err != nil {
			return err
		}
		w.mu.Lock()
		for _, d := range logs {
			if d.Number == uint64(len(have.deposits))+1 {
				have.deposits = append(have.deposits, d)
			}
		}
		have.next = last + 1
		w.mu.Unlock()
	}
	return nil
}

// deposits are those in the logs of blocks, in their order.
func (r RPC) deposits(ctx context.Context, contract payout.Address, from, to uint64) ([]payout.Deposit, error) {
	event := payout.Keccak([]byte("Deposit(uint64,address,address,bytes20,uint256)"))
	var logs []struct {
		Topics []payout.Digest `json:"topics"`
		Data   data            `json:"data"`
	}
	if err := r.call(ctx, &logs, "eth_getLogs", map[string]any{"address": contract, "topics": []payout.Digest{event},
		"fromBlock": quantity(from), "toBlock": quantity(to)}); err != nil {
		return nil, err
	}
	var all []payout.Deposit
	for _, l := range logs {
		if len(l.Topics) != 3 || len(l.Data) != 96 {
			return nil, fmt.Errorf("%w: a log of another form", ErrRPC)
		}
		d := payout.Deposit{Number: new(big.Int).SetBytes(l.Topics[1][24:]).Uint64(), To: l.Data[32:52],
			Amount: new(big.Int).SetBytes(l.Data[64:]).Bytes()}
		copy(d.Token[:], l.Topics[2][12:])
		copy(d.From[:], l.Data[12:32])
		all = append(all, d)
	}
	return all, nil
}

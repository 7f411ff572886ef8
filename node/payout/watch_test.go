package payout

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/starling-network/starling/protocol/payout"
)

// village is a node of another chain that answers as it likes.
type village struct {
	chain, final, count uint64
	shown               []uint64 // numbers of deposits, by block
	amount              byte
	asked               int
}

func (v *village) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Method string
		Params []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer := any(nil)
	switch q.Method {
	case "eth_chainId":
		answer = quantity(v.chain)
	case "eth_getBlockByNumber":
		answer = map[string]any{"number": quantity(v.final)}
	case "eth_call":
		answer = fmt.Sprintf("0x%064x", v.count)
	case "eth_getLogs":
		answer = v.logs(q.Params[0])
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"result": answer})
}

func (v *village) logs(params json.RawMessage) any {
	v.asked++
	var q struct {
		FromBlock, ToBlock quantity
		Topics             []json.RawMessage
	}
	var numbers []payout.Digest
	if json.Unmarshal(params, &q) != nil || json.Unmarshal(q.Topics[1], &numbers) != nil {
		return nil
	}
	list := []any{}
	for block, number := range v.shown {
		for _, n := range numbers {
			if fmt.Sprintf("%064x", number) == strings.TrimPrefix(n.String(), "0x") && uint64(q.FromBlock) <= uint64(block) &&
				uint64(block) <= uint64(q.ToBlock) {
				list = append(list, map[string]any{"topics": []string{"0x" + strings.Repeat("0", 64),
					fmt.Sprintf("0x%064x", number), fmt.Sprintf("0x%064x", 5)},
					"data": fmt.Sprintf("0x%064x%s%024d%064x", 6, strings.Repeat("07", 20), 0, v.amount)})
			}
		}
	}
	return list
}

// A watcher sees all deposits that a node counts, many or few, and reports an error, and no deposit, for a node that
// lags, that lies about an amount, or that is of another chain. When the node shows what it held back, nothing was
// skipped.
func TestWatcherSkipsNothing(t *testing.T) {
	v := &village{chain: 3, final: 5000, amount: 1}
	web := httptest.NewServer(v)
	defer web.Close()
	s := Source{EVM: 3, RPC: RPC{web.URL}}
	w := NewWatcher([]Source{s})
	see := func(count uint64, seen int, fails bool) {
		t.Helper()
		v.count = count
		if err := w.Look(t.Context(), s); (err != nil) != fails || fails && !errors.Is(err, ErrRPC) {
			t.Errorf("%v", err)
		}
		if d := w.After(3, payout.Address{1}, 0); len(d) != seen {
			t.Errorf("%d deposits are seen, wanted %d", len(d), seen)
		}
	}
	see(0, 0, false)
	for number := range uint64(30) {
		v.shown = append(v.shown, number+1)
	}
	see(30, 30, false)
	asked := v.asked
	if see(30, 30, false); v.asked != asked {
		t.Error("it asks for logs that are not there")
	}
	v.final = 9000
	see(31, 30, true) // the logs of a node behind
	v.shown = append(v.shown, 31)
	see(31, 31, false)
	v.amount, v.shown = 0, append(v.shown, 32)
	see(32, 31, true)
	v.amount, v.chain = 1, 4
	see(32, 31, true)
	v.chain = 3
	see(32, 32, false)
}

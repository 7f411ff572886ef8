package hosting

import (
	"net/http"
	"os"
	"testing"

	"github.com/starling-network/starling/internal/hostingtest"
	"github.com/starling-network/starling/protocol/hosting"
)

// A reader that is slow to read its last answer does not keep what it owes for the others, also if that is little.
func TestSlowReadersPay(t *testing.T) {
	h := start(t)
	if r, body := h.ask(h.voucher(100), false); r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, body)
	}
	v := hosting.Voucher{Chain: hostingtest.Chain, Channel: h.channel, Amount: 200}.Sign(h.key)
	if _, err := h.vouchers.Admit(v, 50); err != nil {
		t.Fatal(err)
	}
	if err := h.network.As("payer").Close(t.Context(), h.channel); err != nil {
		t.Fatal(err)
	}
	h.redeemer.turn(t.Context(), 30)
	if got := h.network.Coins(provider); got == 0 {
		t.Error("nothing is redeemed")
	}
	if !h.vouchers.Knows(h.channel) {
		t.Error("the channel is closed while a request is under way")
	}
}

// A node that is behind does not know a channel yet. The voucher outlasts that, and is redeemed afterwards.
func TestNodesThatAreBehindLoseNoVouchers(t *testing.T) {
	h := start(t)
	if r, body := h.ask(h.voucher(100), false); r.StatusCode != http.StatusOK {
		t.Fatal(r.Status, body)
	}
	h.vouchers.Seen(nil)
	for _, want := range []int{1, 0} {
		if lost, err := h.vouchers.Forget(); err != nil || len(lost) != want {
			t.Errorf("%v lost, %v", lost, err)
		}
	}
	h.redeemer.turn(t.Context(), 1)
	if h.network.Coins(provider) == 0 {
		t.Error("nothing is redeemed")
	}
	h.vouchers.Seen(nil)
	if lost, err := h.vouchers.Forget(); err != nil || len(lost) != 0 {
		t.Errorf("%v lost, %v", lost, err)
	}
	if _, err := os.Stat(h.vouchers.path(h.channel)); !os.IsNotExist(err) {
		t.Errorf("the file of a channel that is settled is there: %v", err)
	}
}

package hosting

import (
	"net/http"
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

package purse

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/hosting"
)

// A provider charges for a few answers that do not arrive, and for those whose reader left.
func TestAnswersThatDoNotArrive(t *testing.T) {
	const most = 10
	for name, c := range map[string]struct {
		total, unknown uint64
		right          bool
	}{
		"a few":            {most + unread*most, 0, true},
		"many":             {most + unread*most + 1, 0, false},
		"its reader left":  {most + unread*most + 50, 50, true},
		"more than signed": {1001 + most, 5000, false},
	} {
		p := &Purse{list: []*channel{{Provider: "a", ID: 3, Locked: 5000, Signed: 1000, unknown: c.unknown}}}
		_, total, _, err := p.need(hosting.Place{Provider: "a"}, x402.Terms{Extra: x402.Extra{Most: most, Channel: 3,
			Total: c.total}})
		if c.right && (err != nil || total != c.total) || !c.right && !errors.Is(err, ErrOverbill) {
			t.Errorf("%s: %d, %v", name, total, err)
		}
	}
}

// A provider that counts more tokens than it was paid for, and breaks off, is promised no more than was signed.
func TestSpentIsWhatWasSigned(t *testing.T) {
	c := &channel{ID: 1, Signed: 10, pending: 10}
	h := &Hold{purse: &Purse{path: In(t.TempDir()), list: []*channel{c}}, c: c, most: 10}
	if err := h.Settle(1 << 40); err != nil || c.Spent != 10 {
		t.Errorf("%+v, %v", c, err)
	}
}

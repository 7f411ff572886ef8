package purse

import (
	"context"
	"testing"

	"github.com/starling-network/starling/node/hosting/x402"
	"github.com/starling-network/starling/protocol/hosting"
)

// kept is a network on which the payer has one channel.
type kept struct {
	Network
	list []hosting.Channel
}

func (k *kept) Channels(context.Context, string, bool) ([]hosting.Channel, error) { return k.list, nil }

func (k *kept) Open(_ context.Context, p hosting.Place, key []byte, amount uint64) (uint64, error) {
	k.list = append(k.list, hosting.Channel{ID: 3, Provider: p.Provider, Key: key, Locked: amount})
	return 3, nil
}

func (k *kept) Fund(_ context.Context, _, amount uint64) error {
	k.list[0].Locked += amount
	return nil
}

// A process that is killed after it signed a voucher, and before the answer, pays that voucher once: the next process
// signs what the provider has charged, and no more, however often this happens.
func TestKilledAfterAVoucher(t *testing.T) {
	const most = 10
	c := Config{Dir: t.TempDir(), Chain: "net", Account: "a", Network: &kept{}, Budget: 1000}
	place := hosting.Place{Provider: "p"}
	charged := uint64(0)
	for i := range 2 * unread {
		p, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		terms := x402.Terms{Extra: x402.Extra{Most: most}}
		if i > 0 {
			terms.Extra.Channel, terms.Extra.Total = 3, charged+most
		}
		hold, _, err := p.Pay(t.Context(), place, terms)
		if err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
		if charged += most; hold.c.Signed != charged {
			t.Fatalf("process %d signed %d, and %d were charged", i, hold.c.Signed, charged)
		}
	} // each is killed here
	p, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.Pay(t.Context(), place, x402.Terms{Extra: x402.Extra{Most: most, Channel: 3,
		Total: charged + most + 1}}); err == nil {
		t.Error("a provider charges more than was signed")
	}
}

package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/client/books"
	"github.com/starling-network/starling/node/inspect"
)

// Each thing that is not as it should be is one check that fails.
func TestNetworkHealth(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for name, change := range map[string]func(n *api.Network, b *inspect.Balances){
		"":             func(*api.Network, *inspect.Balances) {},
		"network":      func(n *api.Network, _ *inspect.Balances) { n.Time = now.Add(-2 * time.Minute) },
		"votes":        func(n *api.Network, _ *inspect.Balances) { n.Validators[0].Signed = false },
		"peers":        func(n *api.Network, _ *inspect.Balances) { n.Peers = 0 },
		"clock":        func(n *api.Network, _ *inspect.Balances) { n.Time = now.Add(time.Minute) },
		"participants": func(n *api.Network, _ *inspect.Balances) { n.Participants[0].Jailed = true },
		"books":        func(_ *api.Network, b *inspect.Balances) { b.Wrong = []string{"market"} },
	} {
		n := api.Network{Height: 9, Time: now.Add(-time.Second), Peers: 1, Participants: []api.Participant{{Offers: true}},
			Validators: []api.Validator{{Power: 1, Signed: true}, {Power: 1, Signed: true}, {Power: 1, Signed: true}}}
		b := &inspect.Balances{Books: make([]books.ModuleBalance, 3)}
		change(&n, b)
		h := networkHealth(n, b, now)
		var failed []string
		for _, x := range h.Checks {
			if !x.OK {
				failed = append(failed, x.Name)
			}
		}
		if strings.Join(failed, " ") != name || (h.Status == "ok") != (name == "") {
			t.Errorf("%q: %s, %v fail", name, h.Status, failed)
		}
	}
}

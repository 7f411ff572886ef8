package health

import (
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/api"
)

// Each fault of a network, and a wrong clock of this machine, fails one check, whose text has the value that was seen.
func TestNetworkChecks(t *testing.T) {
	now := time.Unix(2000, 0)
	good := func() api.Network {
		return api.Network{Time: now.Add(-2 * time.Second), Peers: 2,
			Validators: []api.Validator{{Power: 1, Signed: true}, {Power: 1, Signed: true}, {Power: 1, Signed: true},
				{Power: 1}}}
	}
	for name, c := range map[string]struct {
		spoil func(n *api.Network)
		bad   string // name of the check that fails
		says  string
	}{
		"all is well":  {func(*api.Network) {}, "", ""},
		"no blocks":    {func(n *api.Network) { n.Time = now.Add(-2 * time.Minute) }, "network", "older than a minute"},
		"behind":       {func(n *api.Network) { n.CatchingUp = true }, "network", "behind the others"},
		"alone":        {func(n *api.Network) { n.Peers, n.Validators = 0, n.Validators[:1] }, "", ""},
		"no peers":     {func(n *api.Network) { n.Peers = 0 }, "peers", "0 others"},
		"few votes":    {func(n *api.Network) { n.Validators[0].Signed = false }, "votes", "2 of 4"},
		"a slow clock": {func(n *api.Network) { n.Time = now.Add(time.Minute) }, "clock", "1m0s behind"},
	} {
		n := good()
		c.spoil(&n)
		for _, check := range CheckBlock(n, now) {
			if check.OK == (check.Name == c.bad) || check.Name == c.bad && !strings.Contains(check.Text, c.says) {
				t.Errorf("%s: %+v", name, check)
			}
		}
	}
}

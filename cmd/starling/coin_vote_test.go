package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/protocol/coin"
)

// A vote of a network of processes registers a coin that its accounts have had from the beginning. From then on a
// server orders jobs in the coin, within what a token may spend of it; before, it takes none.
func TestVoteRegistersACoin(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	job, dir, port := writeJob(t, ""), t.TempDir(), porttest.Ports(t, 40)
	net, out := filepath.Join(dir, "net"), filepath.Join(dir, "out")
	network := []string{"--network", fmt.Sprintf("http://127.0.0.1:%d", port+1)}
	as := func(name string) []string { return append([]string{"--home", filepath.Join(net, name)}, network...) }
	runs := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := starling(t, args...)
		if code != 0 {
			t.Fatalf("%v: exit %d\n%s", args, code, stderr)
		}
		return stdout
	}
	with := []string{"--workers", "3", "--block-time", "200ms", "--port", fmt.Sprint(port), "--coin", "usdc:6"}
	runs(append([]string{"network", "init", net}, with...)...)
	unregister(t, filepath.Join(net, "genesis.json"), filepath.Join(net, "validator-0", "config", "genesis.json"))
	up(t, net)
	parties := []string{"worker-0", "worker-1", "worker-2", "verifier-0", "verifier-1"}
	for found := 0; found < len(parties) && t.Context().Err() == nil; {
		<-seldom()
		var s inspect.NetworkStatus
		does(t, &s, append([]string{"network", "status"}, network...)...)
		found = len(s.Participants)
	}

	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef read,submit limit=1,25usdc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	s := orders(t, out, filepath.Dir(job), network[1], filepath.Join(net, "consumer"), "--token-file", tokens)
	submit := func(set ...string) []string {
		args := []string{"job", "submit", job, "--api", s.url, "--token-file", tokens, "--set", "budget.max_price=1000000"}
		for _, one := range set {
			args = append(args, "--set", one)
		}
		return args
	}
	refused := func(code string, set ...string) {
		t.Helper()
		if exit, _, stderr := starling(t, submit(set...)...); exit == 0 || !strings.Contains(stderr, code) {
			t.Errorf("%v: exit %d, wanted %s\n%s", set, exit, code, stderr)
		}
	}
	refused("COIN_NOT_TAKEN", "budget.coin=usdc")

	file := filepath.Join(dir, "usdc.json")
	draft := runs("network", "gov", "coin", "usdc", "--denom", "base/usdc", "--decimals", "6")
	if err := os.WriteFile(file, []byte(draft), 0o600); err != nil {
		t.Fatal(err)
	}
	var operator inspect.ValidatorEarnings
	does(t, &operator, "validator", "earnings", "--home", filepath.Join(net, "validator-0"))
	runs(append([]string{"account", "send", operator.Account, "1"}, as("consumer")...)...) // a vote pays gas
	runs(append([]string{"network", "gov", "propose", file}, as("consumer")...)...)
	runs(append([]string{"network", "gov", "vote", "1", "yes"}, as("validator-0")...)...)
	var known struct {
		Coins []coin.Registered `json:"coins"`
	}
	for len(known.Coins) < 2 && t.Context().Err() == nil {
		<-seldom()
		does(t, &known, append([]string{"market", "coins"}, network...)...)
	}
	if c := known.Coins[1]; c.Symbol != "usdc" || c.Denom != "base/usdc" || c.Exponent != 6 {
		t.Fatalf("%+v", c)
	}

	for _, name := range parties {
		runs(append([]string{"market", "offer", "--role", strings.TrimRight(name, "-0123456789"), "--no-zen", "--price-in",
			"usdc=100000"}, as(name)...)...)
		runs(append([]string{"account", "stake", "add", "5000usdc"}, as(name)...)...)
	}
	refused("SPENDING_LIMIT", "budget.coin=usdc", "budget.max_cost=26")
	var j api.Job
	does(t, &j, submit("budget.coin=usdc", "budget.max_cost=25")...)
	if j.Coin == nil || j.Coin.Symbol != "usdc" || j.BudgetUzen != 25_000_000 {
		t.Errorf("a job that waits: %+v", j)
	}
	refused("SPENDING_LIMIT", "budget.coin=usdc", "budget.max_cost=25", "seed=2")
	id := j.ID
	for j.State != "done" && j.State != "failed" && j.State != "halted" && t.Context().Err() == nil {
		<-seldom()
		does(t, &j, "job", "get", id, "--api", s.url, "--token-file", tokens)
	}
	var cost api.Cost
	does(t, &cost, "job", "cost", id, "--api", s.url, "--token-file", tokens)
	if j.State != "done" || cost.Coin == nil || cost.Coin.Symbol != "usdc" || cost.PaidUzen == 0 ||
		cost.BudgetUzen != cost.PaidUzen+cost.FeeUzen+cost.RefundedUzen {
		t.Errorf("%s: %+v, %+v", j.State, j.Reason, cost)
	}
	var b inspect.Balances
	if does(t, &b, append([]string{"network", "check"}, network...)...); len(b.Wrong) > 0 {
		t.Error(b.Wrong)
	}
}

// unregister takes the coins out of the registry of a genesis, but not out of its accounts, and lets votes end in
// seconds.
func unregister(t *testing.T, files ...string) {
	t.Helper()
	govern(t, func(state map[string]any) {
		market, params := state["market"].(map[string]any), state["gov"].(map[string]any)["params"].(map[string]any)
		if len(market["coins"].([]any)) != 1 {
			t.Fatalf("the genesis has the coins %v", market["coins"])
		}
		market["coins"], market["symbols"] = []any{}, []any{}
		params["voting_period"], params["expedited_voting_period"] = "5s", "2s"
	}, files...)
}

package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/node/session"
)

// Two jobs on a network of processes are each paid in a coin of its own, one with six decimals and one with eighteen.
// At each look the modules hold what they owe in every coin, and at the end each coin has moved for its job alone.
func TestJobsInTwoCoins(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	job, dir, port := writeJob(t, ""), filepath.Join(t.TempDir(), "net"), porttest.Ports(t, 40)
	network := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	up(t, dir, "--workers", "3", "--block-time", "200ms", "--port", fmt.Sprint(port), "--coin", "usdc:6,dai:18")
	for found := 0; found < 5 && t.Context().Err() == nil; {
		<-seldom()
		var s inspect.NetworkStatus
		does(t, &s, "network", "status", "--network", network)
		found = len(s.Participants)
	}
	for _, name := range []string{"worker-0", "worker-1", "worker-2", "verifier-0", "verifier-1"} {
		home, role := filepath.Join(dir, name), "worker"
		if name[0] == 'v' {
			role = "verifier"
		}
		for _, args := range [][]string{
			{"market", "offer", "--role", role, "--no-zen", "--price-in", "usdc=100000", "--price-in", "dai=200000"},
			{"account", "stake", "add", "5000usdc"}, {"account", "stake", "add", "5000dai"},
		} {
			if code, _, stderr := starling(t, append(args, "--home", home, "--network", network)...); code != 0 {
				t.Fatalf("%v: exit %d\n%s", args, code, stderr)
			}
		}
	}
	consumer := filepath.Join(dir, "consumer")
	for symbol, steps := range map[string]string{"usdc": "8", "dai": "16"} {
		done := make(chan struct{})
		var s rundir.Summary
		go func() {
			defer close(done)
			code, stdout, stderr := starling(t, "train", job, "--dir", filepath.Join(dir, symbol), "--network", network,
				"--home", consumer, "-q", "-o", "json", "--set", "budget.coin="+symbol, "--set", "budget.max_price=1000000",
				"--set", "training.max_steps="+steps)
			if code != 0 {
				t.Errorf("%s: exit %d\n%s", symbol, code, stderr)
				return
			}
			s = summary(t, stdout)
		}()
		for over := false; !over; {
			select {
			case <-done:
				over = true
			case <-seldom():
			}
			var b inspect.Balances
			if does(t, &b, "network", "check", "--network", network); len(b.Wrong) > 0 {
				t.Errorf("%s: %v", symbol, b.Wrong)
			}
		}
		var r api.Receipts
		does(t, &r, "job", "receipts", s.Job, "--network", network)
		for _, x := range r.Receipts {
			if x.Coin == nil || x.Coin.Symbol != symbol {
				t.Errorf("a receipt of the job in %s: %+v", symbol, x)
			}
		}
		var a session.Account
		does(t, &a, "account", "show", "--home", consumer, "--network", network)
		spent := map[string]uint64{}
		for _, h := range a.Coins {
			whole, err := h.Coin.Parse("1000000")
			if err != nil {
				t.Fatal(err)
			}
			spent[h.Coin.Symbol] = whole - h.Balance
		}
		if s.Coin.Symbol != symbol || s.PaidUzen == 0 || spent[symbol] != s.PaidUzen+s.FeeUzen {
			t.Errorf("the job in %s paid %d and a fee of %d of %s; spent %v", symbol, s.PaidUzen, s.FeeUzen, s.Coin.Name(),
				spent)
		}
	}
}

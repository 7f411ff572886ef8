package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/internal/porttest"
)

// An operator takes a part of a stake back, and then all of it, and stakes again. The last votes stay.
func TestValidatorUnbonds(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	dir, port := t.TempDir(), porttest.Ports(t, 20)
	network := filepath.Join(dir, "net")
	rpc := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	does(t, &struct{}{}, "network", "init", network, "--validators", "2", "--workers", "0", "--verifiers", "0",
		"--block-time", "200ms", "--port", fmt.Sprint(port))
	stays, leaves := filepath.Join(network, "validator-0"), filepath.Join(network, "validator-1")
	said(t, command(t, "validator", "up", "--home", stays))
	said(t, command(t, "validator", "up", "--home", leaves))("height [1-9]")

	var earnings struct {
		Account string
		Stake   uint64 `json:"stake_uzen"`
		Leaving []struct {
			Amount uint64 `json:"amount_uzen"`
			At     time.Time
		}
	}
	does(t, &earnings, "validator", "earnings", "--home", leaves)
	if earnings.Stake != 100_000_000 || len(earnings.Leaving) != 0 {
		t.Errorf("at first: %+v", earnings)
	}
	does(t, &struct{}{}, "account", "send", earnings.Account, "60", "--home", filepath.Join(network, "consumer"),
		"--network", rpc)
	act := func(args ...string) string { // a validator of a busy machine is behind at times
		for {
			code, stdout, stderr := starling(t, append([]string{"validator"}, args...)...)
			if !strings.Contains(stderr, "VALIDATOR_BEHIND") {
				return fmt.Sprint(code, stdout, stderr)
			}
			<-seldom()
		}
	}
	power := func(wanted int64) {
		t.Helper()
		for duty := (struct{ Power int64 }{-1}); duty.Power != wanted; {
			does(t, &duty, "validator", "status", "--home", leaves)
			<-seldom()
		}
	}
	unbond := []string{"unbond", "--home", leaves}
	if text := act(append(unbond, "101")...); !strings.Contains(text, "NOT_BONDED") {
		t.Errorf("more than the stake: %s", text)
	}
	if text := act(append(unbond, "40")...); !strings.Contains(text, "; 60.00 ZEN stay") {
		t.Fatalf("a part: %s", text)
	}
	power(60)
	if text := act(append(unbond, "all")...); !strings.Contains(text, "; 0.00 ZEN stay") {
		t.Fatalf("all: %s", text)
	}
	power(0)
	does(t, &earnings, "validator", "earnings", "--home", leaves)
	if l := earnings.Leaving; earnings.Stake != 0 || len(l) != 2 || l[0].Amount != 40_000_000 ||
		l[1].Amount != 60_000_000 || time.Until(l[0].At) < 20*24*time.Hour || time.Until(l[1].At) > 21*24*time.Hour {
		t.Errorf("afterwards: %+v", earnings)
	}
	if text := act("unbond", "--home", stays, "all"); !strings.Contains(text, "LAST_VOTES") {
		t.Errorf("the last votes: %s", text)
	}
	if text := act("bond", "--home", leaves, "50"); !strings.Contains(text, "the stake is in block") {
		t.Fatalf("again: %s", text)
	}
	if text := act("unjail", "--home", leaves); !strings.Contains(text, "it votes again") {
		t.Fatalf("its vote: %s", text)
	}
	power(50)
}

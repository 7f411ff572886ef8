package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/cmd/starling/validator"
	"github.com/starling-network/starling/internal/porttest"
)

// said starts a process, and returns a function that waits until it says something of a pattern on standard error.
func said(t *testing.T, c *exec.Cmd) (until func(pattern string)) {
	t.Helper()
	lines := news(t, c)
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	})
	return func(pattern string) {
		t.Helper()
		var before []string
		for wanted := regexp.MustCompile(pattern); lines.Scan(); {
			if before = append(before, lines.Text()); wanted.MatchString(lines.Text()) {
				return
			}
		}
		t.Fatalf("it ended without %q:\n%s", pattern, strings.Join(before, "\n"))
	}
}

// does runs a command that must succeed, and decodes what it prints.
func does(t *testing.T, answer any, args ...string) {
	t.Helper()
	code, stdout, stderr := starling(t, append(args, "-o", "json")...)
	if code != 0 {
		t.Fatalf("%v: exit %d\n%s", args, code, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), answer); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, stdout)
	}
	if untagged(stdout) {
		t.Errorf("%v: a key is the name of a field:\n%s", args, stdout)
	}
}

// untagged reports whether a key of an object, at any depth, is the name of a field in Go.
func untagged(text string) bool {
	var v any
	if json.Unmarshal([]byte(text), &v) != nil {
		return true
	}
	var within func(v any) bool
	within = func(v any) bool {
		switch v := v.(type) {
		case map[string]any:
			for key, value := range v {
				if key != "" && key[0] >= 'A' && key[0] <= 'Z' || within(value) {
					return true
				}
			}
		case []any:
			return slices.ContainsFunc(v, within)
		}
		return false
	}
	return within(v)
}

// A validator joins a chain from a snapshot, is given coins, stakes them, and votes.
func TestValidatorJoins(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	dir, port := t.TempDir(), porttest.Ports(t, 40)
	network, home := filepath.Join(dir, "net"), filepath.Join(dir, "new")
	rpc := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	does(t, &struct{}{}, "network", "init", network, "--workers", "0", "--verifiers", "0", "--block-time", "100ms",
		"--port", fmt.Sprint(port))
	said(t, command(t, "validator", "up", "--home", filepath.Join(network, "validator-0"), "--snapshot-every",
		"40"))("height 100")

	join := []string{"validator", "join", "--home", home, "--network", rpc, "--port", fmt.Sprint(port + 10),
		"--block-time", "100ms", "--snapshot-every", "40"}
	var joined struct {
		Operator string
		Sync     struct{ Height int64 }
	}
	does(t, &joined, join...)
	if joined.Sync.Height < 1 {
		t.Fatalf("no block is trusted: %+v", joined)
	}
	if code, _, stderr := starling(t, join...); code != 5 || !strings.Contains(stderr, "VALIDATOR_EXISTS") {
		t.Errorf("a second time: exit %d\n%s", code, stderr)
	}
	var sent struct {
		To, Memo string
		Amount   uint64  `json:"amount_uzen"`
		Fee      *uint64 `json:"fee_uzen"`
	}
	does(t, &sent, "account", "send", joined.Operator, "150", "--home", filepath.Join(network, "consumer"), "--network",
		rpc, "--memo", "first coins")
	if sent.To != joined.Operator || sent.Memo != "first coins" || sent.Amount != 150_000_000 || sent.Fee == nil {
		t.Errorf("sent: %+v", sent)
	}
	said(t, command(t, "validator", "up", "--home", home))("height [0-9]*00$")

	var status struct {
		Sync struct {
			First int64 `json:"earliest_block_height,string"`
		} `json:"sync_info"`
	}
	answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/status", port+11))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&struct{ Result any }{&status}); err != nil || status.Sync.First < 40 {
		t.Errorf("it has the blocks from %d on (%v): it took no snapshot", status.Sync.First, err)
	}

	var account struct {
		Exists       bool
		Balance      uint64 `json:"balance_uzen"`
		Transactions uint64
	}
	for !account.Exists { // it catches up
		<-seldom()
		does(t, &account, "account", "show", joined.Operator, "--network", fmt.Sprintf("http://127.0.0.1:%d", port+11))
	}
	var bonded struct{ Height int64 }
	bond := []string{"validator", "bond", "--home", home, "100"}
	for { // a validator of a busy machine is behind again
		code, stdout, stderr := starling(t, append(bond, "-o", "json")...)
		if code == 0 {
			if err := json.Unmarshal([]byte(stdout), &bonded); err != nil {
				t.Fatal(err)
			}
			break
		}
		if !strings.Contains(stderr, "VALIDATOR_BEHIND") {
			t.Fatalf("%s: exit %d\n%s", bond, code, stderr)
		}
		<-seldom()
	}
	var duty struct {
		Height int64
		Power  int64
		Signed bool
	}
	for duty.Height < bonded.Height+5 || !duty.Signed { // half of the votes are its own: without them there is no block
		does(t, &duty, "validator", "status", "--home", home)
	}
	if duty.Power != 100 {
		t.Errorf("its power is %d", duty.Power)
	}
	does(t, &bonded, "validator", "bond", "--home", home, "10")
	for bonded.Height += 5; duty.Height < bonded.Height; {
		does(t, &duty, "validator", "status", "--home", home)
	}
	if duty.Power != 110 {
		t.Errorf("with more stake its power is %d", duty.Power)
	}
	if code, _, stderr := starling(t, "validator", "unjail", "--home",
		home); code == 0 || !strings.Contains(stderr, "validator not jailed") {
		t.Errorf("unjail of who is not jailed: exit %d\n%s", code, stderr)
	}
	does(t, &account, "account", "show", joined.Operator, "--network", rpc)
	if account.Balance >= 40_000_000 || account.Balance < 39_900_000 || account.Transactions != 2 { // it paid fees
		t.Errorf("its operator: %+v", account)
	}
	var history struct {
		Transactions []struct {
			Messages []string
			Refused  string
			Received uint64 `json:"received_uzen"`
			Spent    uint64 `json:"spent_uzen"`
		}
	}
	does(t, &history, "account", "history", joined.Operator, "--network", rpc)
	if h := history.Transactions; len(h) != 3 || h[2].Received != 150_000_000 || h[1].Spent <= 100_000_000 ||
		h[1].Spent > 100_100_000 ||
		len(h[1].Messages) != 2 || h[0].Spent <= 10_000_000 || h[0].Refused != "" {
		t.Errorf("its history: %+v", h)
	}
}

// The folder of a validator is given as those of other commands are.
func TestValidatorHomeByFlag(t *testing.T) {
	for _, cmd := range validator.Command(new(terminal.Console)).Commands() {
		words := []string{"validator", cmd.Name(), "--home", "here"}
		for _, name := range strings.Fields(cmd.Use)[1:] {
			if strings.HasPrefix(name, "-") {
				break
			}
			words = append(words, name)
		}
		if err := takes(words); err != nil {
			t.Errorf("%v: %v", words, err)
		}
		if takes(append(words, "there")) == nil {
			t.Errorf("%s has two folders", cmd.CommandPath())
		}
	}
	if code, _, stderr := starling(t, "validator", "identity", "--home", t.TempDir()); code == 0 ||
		!strings.Contains(stderr, "KEY_NOT_FOUND") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

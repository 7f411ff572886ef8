package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/chain/x/market"
	"github.com/starling-network/starling/client"
	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/client/transaction"
	"github.com/starling-network/starling/cmd/starling/cause"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/node/home"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/plan"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/node/uplink"
)

// Every command that connects to a network reports in the same way that no validator answers there.
func TestNobodyAnswers(t *testing.T) {
	const gone = "http://127.0.0.1:1"
	dir, job := t.TempDir(), writeJob(t, "")
	party := filepath.Join(dir, "party")
	h, _, err := home.Open(party)
	if err != nil {
		t.Fatal(err)
	}
	address := h.Account().Address()
	for _, args := range [][]string{
		{"network", "status"}, {"network", "check"}, {"validator", "join", "--home", filepath.Join(dir, "validator")},
		{"web", dir}, {"gateway", dir, "--home", party},
		{"worker", "up", "--home", party}, {"worker", "status", "--home", party}, {"worker", "explain", "--home", party},
		{"worker", "earnings", "--account", address}, {"worker", "drain", "--home", party},
		{"account", "show", address}, {"account", "history", address}, {"account", "send", address, "1", "--home", party},
		{"account", "stake", "add", "1", "--home", party}, {"account", "stake", "remove", "all", "--home", party},
		{"job", "pause", "job-1", "--home", party}, {"job", "top-up", "job-1", "1", "--home", party},
		{"market", "offers"}, {"market", "orders"}, {"market", "quote", job}, {"explain", "--job", "job-1"},
		{"train", job, "--dry-run"}, {"train", job, "--home", party, "--dir", filepath.Join(dir, "out"), "-q", "-y"},
	} {
		err := execute(t.Context(), new(terminal.Console), append(args, "--network", gone))
		p := &terminal.Problem{}
		if !errors.As(err, &p) || terminal.ExitCode(err) != terminal.ExitUnreachable || p.Code != "NETWORK_UNREACHABLE" ||
			p.What != "no answer from "+gone || p.Why == "" || p.Fix == "" {
			t.Errorf("%v: exit %d: %+v", args, terminal.ExitCode(err), err)
		}
		if err := execute(t.Context(), new(terminal.Console),
			append(args, "--network", "somewhere")); terminal.ExitCode(err) != terminal.ExitUsage {
			t.Errorf("%v at no address: exit %d: %v", args, terminal.ExitCode(err), err)
		}
	}
}

// Raw errors of the packages below get their code and their exit code here.
func TestCauses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "nowhere")
	_, noFile := os.Open(missing)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, noPort := net.Listen("tcp", taken.Addr().String())
	stopped := &endpoint.Unreachable{Network: "http://a", Err: &endpoint.Halted{Code: "DISK_FULL", Why: "no room"}}
	for name, c := range map[string]struct {
		err  error
		exit int
		code string
	}{
		"unreachable":    {&endpoint.Unreachable{Network: "http://a", Err: errors.New("refused")}, 8, "NETWORK_UNREACHABLE"},
		"broken off":     {&url.Error{Op: "Post", URL: "http://a", Err: errors.New("reset")}, 8, "NETWORK_UNREACHABLE"},
		"closed":         {client.ErrClosed, 8, "NETWORK_UNREACHABLE"},
		"stopped":        {stopped, 1, "DISK_FULL"},
		"too slow":       {&url.Error{Op: "Post", URL: "http://a", Err: context.DeadlineExceeded}, 9, "TIMED_OUT"},
		"no block":       {fmt.Errorf("%w from x: %w", keystore.ErrNoBlock, noPort), 9, "TIMED_OUT"},
		"silent":         {fmt.Errorf("%w for 1m0s", uplink.ErrSilent), 9, "TIMED_OUT"},
		"never included": {client.ErrLost, 9, "TIMED_OUT"},
		"unknown":        {client.ErrNotFound, 3, "NOT_FOUND"},
		"no account":     {client.ErrNoAccount, 3, "ACCOUNT_NOT_FOUND"},
		"no funds": {&transaction.Error{ErrorCode: adapter.ErrorCode{Code: 10, Rule: market.ErrFunds}, Space: "market"}, 6,
			"MARKET_10"},
		"no coins": {&transaction.Error{ErrorCode: adapter.ErrorCode{Code: 5, Rule: transaction.ErrRejected}, Space: "sdk"},
			6, "SDK_5"},
		"refused": {&transaction.Error{ErrorCode: adapter.ErrorCode{Code: 2, Rule: market.ErrJob}, Space: "market"}, 1,
			"MARKET_2"},
		"no file":     {noFile, 3, "FILE_NOT_FOUND"},
		"no port":     {noPort, 1, "LISTEN_FAILED"},
		"a plan":      {plan.ErrPlanStale, 5, "PLAN_STALE"},
		"too large":   {fmt.Errorf("%w: x", simulate.ErrSurrogate), 2, "JOB_TOO_LARGE"},
		"explained":   {terminal.WithExit(&terminal.Problem{Code: "X"}, 11), 11, "X"},
		"unexplained": {errors.New("x"), 1, "FAILURE"},
	} {
		err := cause.Explain(fmt.Errorf("while at it: %w", c.err))
		if p := terminal.Problems(err)[0]; terminal.ExitCode(err) != c.exit || p.Code != c.code || p.What == "" &&
			c.code != "X" {
			t.Errorf("%s: exit %d, %+v", name, terminal.ExitCode(err), p)
		}
	}
	if cause.Explain(nil) != nil {
		t.Error("success is explained")
	}
}

// TestWrongAddresses: an address that nothing can have is refused before anything begins.
func TestWrongAddresses(t *testing.T) {
	job := writeJob(t, "")
	for _, args := range [][]string{
		{"train", job, "--dir", filepath.Join(t.TempDir(), "out"), "--web", "127.0.0.1:99999", "-q"},
		{"web", t.TempDir(), "--listen", "127.0.0.1"},
		{"gateway", t.TempDir()}, {"gateway", t.TempDir(), "--network", "http://127.0.0.1:1"},
		{"worker", "earnings", "--account", "starling1qqqqqq", "--network", "http://127.0.0.1:1"},
	} {
		if err := execute(t.Context(), new(terminal.Console), args); terminal.ExitCode(err) != terminal.ExitUsage {
			t.Errorf("%v: exit %d: %v", args, terminal.ExitCode(err), err)
		}
	}
}

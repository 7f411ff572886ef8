package main

import (
	"encoding/hex"
	"encoding/pem"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/attested"
	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/internal/teetest"
)

// attestationOfWorker lets a worker on a machine that is not a confidential one ask for its report, and submit one with
// the right data that no maker has signed.
func attestationOfWorker(t *testing.T, home, network string) {
	t.Helper()
	var list struct{ Attested []attested.Attested }
	does(t, &list, "network", "attested", "--network", network)
	if len(list.Attested) > 0 {
		t.Errorf("%+v", list)
	}
	if code, _, stderr := starling(t, "worker", "attest", "--home", home); code != terminal.ExitNotFound ||
		!strings.Contains(stderr, "NOT_CONFIDENTIAL") {
		t.Errorf("a report of this machine: exit %d\n%s", code, stderr)
	}
	var ch attested.Challenge
	does(t, &ch, "worker", "attest", "--home", home, "--challenge")
	data, err := hex.DecodeString(ch.ReportData)
	if err != nil || len(data) != 64 || ch.Block == 0 {
		t.Fatalf("%+v, %v", ch, err)
	}
	e := teetest.NewSNP([64]byte(data)).Evidence()
	dir := t.TempDir()
	args := []string{"worker", "attest", "--home", home, "--block", strconv.FormatInt(ch.Block, 10)}
	var chain []byte
	for _, der := range e.Certificates {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	for name, text := range map[string][]byte{"report": e.Quote, "chain.pem": chain, "crl.der": e.Revocations[0]} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		flag := "--collateral"
		if name == "report" {
			flag = "--report"
		}
		args = append(args, flag, file)
	}
	if code, _, stderr := starling(t, args...); code != terminal.ExitVerification ||
		!strings.Contains(stderr, "QUOTE_REFUSED") || !strings.Contains(stderr, "root: ARK-Milan is not pinned") {
		t.Errorf("a report with a root of a test: exit %d\n%s", code, stderr)
	}
}

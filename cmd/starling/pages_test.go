package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/cmd/starling/catalog"
	"github.com/starling-network/starling/cmd/starling/data"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/hosting/pages"
)

// A listed data set is sold page by page on a network of processes: a reader pays for each page once, the holders of
// the shares of the listing have their part, and the work that it was made from has its royalty of that.
func TestDataByPages(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	dir, port, at := t.TempDir(), porttest.Ports(t, 40), porttest.Address(t)
	net, set := filepath.Join(dir, "net"), filepath.Join(dir, "set")
	up(t, net, "--workers", "0", "--verifiers", "0", "--block-time", "300ms", "--port", fmt.Sprint(port))
	network := fmt.Sprintf("http://127.0.0.1:%d", port+1)
	as := func(home string, args ...string) []string { return append(args, "--home", home, "--network", network) }
	seller, author, reader := filepath.Join(net, "consumer"), filepath.Join(dir, "author"), filepath.Join(dir, "reader")
	for _, home := range []string{author, reader} {
		fund(t, network, seller, home, "50")
	}
	if err := os.Mkdir(set, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"a.jsonl": 5000, "b.jsonl": 5000} {
		writeFile(t, filepath.Join(set, name), bytes.Repeat([]byte(name), size)[:size])
	}
	var source, listed catalog.Listed
	does(t, &source, as(author, "model", "catalog", "add", set, "--data", "--title", "Source", "--licence", "CC0-1.0",
		"--royalty", "25")...)
	does(t, &listed, as(seller, "model", "catalog", "add", set, "--data", "--title", "Set", "--licence", "CC0-1.0",
		"--parent", fmt.Sprint(source.Listing))...)

	c := command(t, as(seller, "data", "host", set, "--price", "5", "--page", "4096", "--job", listed.Shares, "--part",
		"100", "--listen", at, "-o", "json")...)
	var stdout bytes.Buffer
	c.Stdout = &stdout
	says(t, news(t, c), "has 3 pages at")
	fetch := func(want data.Fetched, more ...string) {
		t.Helper()
		var got data.Fetched
		does(t, &got, as(reader, append([]string{"data", "fetch", "set", "--budget", "40", "--private", "--to",
			filepath.Join(dir, "got")}, more...)...)...)
		if got.Pages != want.Pages || got.Present != want.Present || got.Amount != want.Amount || got.Of != 3 {
			t.Errorf("%+v, wanted %+v", got, want)
		}
	}
	fetch(data.Fetched{Amount: "5.00", Counts: pages.Counts{Pages: 1}}, "--pages", "1")
	fetch(data.Fetched{Amount: "10.00", Counts: pages.Counts{Pages: 2, Present: 1}})
	for _, name := range []string{"a.jsonl", "b.jsonl"} {
		have, err := os.ReadFile(filepath.Join(dir, "got", name))
		if err != nil || !bytes.Equal(have, bytes.Repeat([]byte(name), 5000)[:5000]) {
			t.Errorf("%s is another: %v", name, err)
		}
	}
	for code, args := range map[string][]string{
		"BUDGET_SPENT": {"data", "fetch", "set", "--budget", "0.1", "--private", "--to", filepath.Join(dir, "none")},
		"NO_DATA_SET":  {"data", "fetch", "other", "--budget", "1", "--to", filepath.Join(dir, "none")},
		"NO_PROVIDER":  {"data", "fetch", "set", "--budget", "1", "--to", filepath.Join(dir, "none")},
		"NO_DATA":      {"data", "host", filepath.Join(dir, "got"), "--page", "1", "--price", "1", "--listen", "127.0.0.1:0"},
	} {
		if exit, _, stderr := starling(t, as(author, args...)...); exit == 0 || !strings.Contains(stderr, "code: "+code) {
			t.Errorf("%v: exit %d\n%s", args, exit, stderr)
		}
	}
	_ = c.Process.Signal(syscall.SIGINT)
	if err := c.Wait(); err != nil {
		t.Errorf("the seller: %v", err)
	}
	var earned data.Earned
	if err := json.Unmarshal(stdout.Bytes(), &earned); err != nil || earned.Shares != "14.25" || earned.Fee != "0.75" {
		t.Errorf("%+v, %v", earned, err)
	}
	for _, claim := range []struct{ home, work, says string }{{author, source.Shares, "3.00 ZEN are claimed"},
		{seller, listed.Shares, "10.00 ZEN are claimed"}} {
		if code, out, stderr := starling(t, as(claim.home, "model", "claim", claim.work)...); code != 0 ||
			!strings.Contains(out, claim.says) {
			t.Errorf("exit %d, wanted %q: %s%s", code, claim.says, out, stderr)
		}
	}
}

package runs

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/runs/synthetic"
	"github.com/starling-network/starling/web"
)

// browserFolder holds the program that drives Chromium, and, after npm ci, what it needs.
const browserFolder = "../../web/browser"

// needBrowser skips the test where there is no browser, or nothing to drive it, and says so on standard error too.
func needBrowser(t *testing.T) (chromium string) {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	skip := func(why string) {
		fmt.Fprintf(os.Stderr, "\n*** THE DASHBOARD IS NOT TESTED: %s ***\n\n", why)
		t.Skip(why)
	}
	if _, err := exec.LookPath("node"); err != nil {
		skip("there is no node: install Debian's nodejs")
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		skip("there is no chromium: install Debian's chromium")
	}
	if _, err := os.Stat(filepath.Join(browserFolder, "node_modules", "playwright-core")); err != nil {
		skip("nothing drives the browser: run npm ci in web/browser")
	}
	return chromium
}

// serve shows a folder at an address until stop.
func serve(t *testing.T, dir, address string) (at string, stop func()) {
	t.Helper()
	lib, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- web.New(web.Config{Runs: lib, Network: hamlet{}, Version: api.Version{Version: "test"}}).Serve(ctx, l)
	}()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return l.Addr().String(), stop
}

// hamlet is a network that stands still.
type hamlet struct{}

func (hamlet) Overview(context.Context) (api.Network, error) {
	return api.Network{Address: "http://validator", ChainID: "hamlet-1", Height: 7, Validators: []api.Validator{{Address: strings.Repeat("AB", 20), Power: 5, Signed: true}, {Address: strings.Repeat("CD", 20), Power: 5, Missed: 60}}, Window: 100,
		Links:        []api.Link{{By: "starling1aaaaaaaaaaaaaaaaaaaaaaaa", Of: "starling1bbbbbbbbbbbbbbbbb", Bytes: 3e6, Rate: 1e6, RTT: 12}, {By: "starling1bbbbbbbbbbbbbbbbb", Of: "starling1aaaaaaaaaaaaaaaaaaaaaaaa", Bytes: 1e6}},
		Participants: []api.Participant{{ID: "starling1aaaaaaaaaaaaaaaaaaaaaaaa", Roles: []string{"worker"}, Offers: true, Price: 1e9, Stake: 1e8, Jobs: []string{"job-1"}, Device: "linux/amd64"}, {ID: "starling1bbbbbbbbbbbbbbbbb", Roles: []string{}, Jailed: true, Jobs: []string{}}},
		Orders:       []api.Order{{Job: "job-2", Why: "no_worker_fits", Budget: 5e6}}, Runs: []api.NetworkRun{{Job: "job-1", Phase: "train", Round: 2, Rounds: 9, Workers: 3, Verifiers: 1, Budget: 5e6, Paid: 1e6}}}, nil
}
func (hamlet) Account(_ context.Context, a string) (api.Account, error) {
	return api.Account{Address: a, Balance: 1e12, Stake: 1e8, Reasons: []api.Standing{{Code: "trains", Kind: "works", Job: "job-1", Round: 2, Text: "one unit to train", Until: 99, Do: "keep the machine on"}}}, nil
}
func (hamlet) Blocks(context.Context, int64, int) (api.Blocks, error) {
	return api.Blocks{Blocks: []api.Block{{Height: 7, Hash: strings.Repeat("ab", 32), Proposer: strings.Repeat("AB", 20), Signed: 2, Txs: []api.Tx{{Hash: strings.Repeat("cd", 32), Messages: []string{"starling.training.v1.MsgCommit"}, Signers: []string{"starling1aaaaaaaaaaaaaaaaaaaaaaaa"}}}}}}, nil
}
func (hamlet) Tx(_ context.Context, hash string, _ int64) (api.Tx, error) {
	return api.Tx{Hash: hash, Height: 7, Messages: []string{"starling.training.v1.MsgCommit"}, Signers: []string{"starling1aaaaaaaaaaaaaaaaaaaaaaaa"}, GasUsed: 1, Bytes: 100}, nil
}

// seen is what the browser saw of a page.
type seen struct {
	Name, Theme, Title, Text    string
	Maps                        []string // what the maps of the page say to who does not see them
	Errors, Outside, Violations []string
	Reconnected                 bool
	ChartMS                     float64 `json:"chart_ms"`
	Saved                       []saved
	Keys                        struct {
		First, Tab, Reads, Went string
		Moves                   bool
	}
}

// saved is a figure of a page, the points of its curves, and the files that its buttons gave: CSV, SVG and PNG.
type saved struct {
	Title  string
	Points int
	Names  []string
}

func made(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, r := range []synthetic.Run{{Name: "long", Steps: 20_000, Every: 20, Finished: true}, {Name: "short", Steps: 200, Every: 10}} {
		if err := r.Write(filepath.Join(root, r.Name)); err != nil {
			t.Fatal(err)
		}
	}
	for i, text := range []string{`{"name":"s","rounds":2,"steps":20,"first_eval_loss":5,"final_eval_loss":3,"seconds":20,"bytes_up":100,"parties":[{"name":"worker-0"}]}`, `{"name":"s","rounds":4,"steps":20,"seconds":40,"bytes_up":50}`} {
		dir := filepath.Join(root, "sweep", []string{"000", "001"}[i])
		write(t, dir, map[string]string{fileSimulation: text, fileMetrics: metricLines(0) + metricLines(1)})
	}
	write(t, filepath.Join(root, "long"), map[string]string{"model.safetensors": "x", "config.json": "{}", fileLog: "time=now level=INFO msg=begun\ntime=now level=WARN msg=slow\n"})
	return root
}

// TestEveryPage opens every page in both themes: it comes up without an error, asks nobody else for anything, and axe-core
// finds nothing that keeps people out. A picture of each is not empty; STARLING_SHOTS names a folder to keep them in.
func TestEveryPage(t *testing.T) {
	chromium := needBrowser(t)
	address, stop := serve(t, made(t), "127.0.0.1:0")
	defer stop()
	want := map[string]string{
		"jobs": "long", "jobs/long": "Where the budget went", "jobs/long/charts": "Gradient norm", "jobs/long/charts?x=time&smooth=0.9&log=1": "Throughput", "jobs/long/workers": "1.25 MB/s", "jobs/long/lineage": "checkpoints, each signed", "jobs/long/receipts": "5\u202f000 receipts",
		"jobs/long/disputes": "The referee computed the tile", "jobs/long/samples": "main() {", "jobs/long/log": "slow", "jobs/long/job": "/v1/jobs/long/metrics", "jobs/short": "no process trains it", "jobs/sweep:000/workers": "worker-0",
		"compare?runs=long,short&x=tokens": "Side by side", "models": "Who trained it", "simulator": "2 variants", "network": "12 ms", "workers": "In the runs of this server", "workers/starling1aaaaaaaaaaaaaaaaaaaaaaaa": "one unit to train",
		"validators": "50 %", "explorer": "Commit", "explorer/tx/" + strings.Repeat("cd", 32): "executed", "health": "Checks", "nowhere": "NO_SUCH_PAGE", "jobs/nobody": "NOT_FOUND",
	}
	shots := cmp.Or(os.Getenv("STARLING_SHOTS"), t.TempDir())
	task := map[string]any{"chromium": chromium, "shots": shots, "files": t.TempDir()}
	var pages []map[string]any
	for path := range want {
		pages = append(pages, map[string]any{"name": path, "url": "http://" + address + "/" + path, "saves": path == "simulator" || path == "jobs/long/charts"})
	}
	task["pages"] = pages
	all := drive(t, task, nil)
	if len(all) != 2*len(want) {
		t.Errorf("%d pages of %d", len(all), 2*len(want))
	}
	pictures, err := filepath.Glob(filepath.Join(shots, "*.png"))
	if err != nil || len(pictures) != len(all) {
		t.Errorf("%d pictures of %d pages (%v)", len(pictures), len(all), err)
	}
	for _, p := range pictures {
		if n := shades(t, p); n < 3 {
			t.Errorf("%s has %d colours", p, n)
		}
	}
	for _, p := range all {
		if p.Theme == "light" {
			figures := map[string]int{"simulator": 2, "jobs/long/charts": 14}[p.Name]
			if len(p.Saved) != figures {
				t.Errorf("%s: %d figures are saved, of %d", p.Name, len(p.Saved), figures)
			}
			for _, s := range p.Saved {
				s.read(t, task["files"].(string))
			}
		}
		if moved := map[string]string{"jobs/long/workers": "fetched over 4 links", "network": "4.00 MB fetched over 2 links"}[p.Name]; moved != "" && !strings.Contains(strings.Join(p.Maps, ""), moved) {
			t.Errorf("the map of %s says %q", p.Name, p.Maps)
		}
		if counts := map[string]string{"jobs/long/lineage": "2 updates"}[p.Name]; !strings.Contains(p.Text, counts) {
			t.Errorf("%s counts no %s: %.300q", p.Name, counts, p.Text)
		}
		missing := strings.HasPrefix(p.Name, "jobs/nobody") // its 404 is an error of the console
		if len(p.Errors) > 0 && !missing || len(p.Outside) > 0 || len(p.Violations) > 0 || !strings.Contains(p.Text, want[p.Name]) {
			t.Errorf("%s, %s: errors %q, outside %q, violations %q, text %.300q", p.Name, p.Theme, p.Errors, p.Outside, p.Violations, p.Text)
		}
	}
}

// TestKeyboard uses the pages without a pointer.
func TestKeyboard(t *testing.T) {
	chromium := needBrowser(t)
	address, stop := serve(t, made(t), "127.0.0.1:0")
	defer stop()
	got := drive(t, map[string]any{"chromium": chromium, "keys": map[string]any{"url": "http://" + address + "/jobs/long", "next": "/jobs/long/charts", "goes": map[string]string{"key": "h", "path": "/health"}}}, nil)
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if k := got[0].Keys; !strings.HasPrefix(k.First, "Skip to") || k.Tab != "/jobs/long/charts" || !strings.HasPrefix(k.Reads, "inner step ") || k.Went != "/health" || !k.Moves {
		t.Errorf("%+v", k)
	}
}

// TestPageReconnects stops the server under a page, lets the run go on, and starts it again: the page catches up by itself. It
// also draws a chart of ten thousand points, and saves it.
func TestPageReconnects(t *testing.T) {
	chromium := needBrowser(t)
	root := made(t)
	address, stop := serve(t, root, "127.0.0.1:0")
	task := map[string]any{"chromium": chromium, "files": t.TempDir(), "reconnect": map[string]string{"url": "http://" + address + "/jobs/short", "shows": "210"}}
	got := drive(t, task, func() {
		stop()
		if err := (synthetic.Run{Name: "short", Steps: 200, Every: 10}).Append(filepath.Join(root, "short"), 20, 21); err != nil {
			t.Error(err)
		}
		_, stop = serve(t, root, address)
	})
	stop()
	if len(got) != 1 || !got[0].Reconnected || len(got[0].Saved) != 1 || got[0].Saved[0].Points != 10_000 {
		t.Fatalf("%+v", got)
	}
	got[0].Saved[0].read(t, task["files"].(string))
	t.Logf("10,000 points were drawn in %.0f ms", got[0].ChartMS)
}

// shades counts the colours of a picture, up to three: that of the page, that of a card, and that of letters.
func shades(t *testing.T, path string) int {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	found, size := map[color.Color]bool{}, picture.Bounds()
	for y := size.Min.Y; y < size.Max.Y && len(found) < 3; y++ {
		for x := size.Min.X; x < size.Max.X && len(found) < 3; x++ {
			found[picture.At(x, y)] = true
		}
	}
	return len(found)
}

// drive runs the driver; at is called when it asks for it.
func drive(t *testing.T, task map[string]any, at func()) []seen {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "drive.js", string(text))
	cmd.Dir = browserFolder
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	var last string
	for {
		line, err := lines.ReadString('\n')
		if line == "now\n" {
			at()
			_, _ = io.WriteString(in, "done\n")
		} else if line != "" {
			last = line
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var all []seen
	if err := json.Unmarshal([]byte(last), &all); err != nil {
		t.Fatalf("%v: %s", err, last)
	}
	return all
}

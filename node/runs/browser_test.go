package runs

import (
	"cmp"
	"context"
	"fmt"
	"image/color"
	"image/png"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/runs/synthetic"
	"github.com/starling-network/starling/web"
	"github.com/starling-network/starling/web/browser"
)

// browserFolder holds the program that drives Chromium, and, after npm ci, what it needs.
const browserFolder = "../../web/browser"

// needBrowser skips the test where there is no browser, or nothing to drive it, and says so on standard error too.
func needBrowser(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	chromium, err := browser.Chromium(browserFolder)
	if err != nil {
		fmt.Fprintf(os.Stderr, "\n*** THE DASHBOARD IS NOT TESTED: %v ***\n\n", err)
		t.Skip(err)
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
		done <- web.New(web.Config{Runs: lib, Network: synthetic.Network{},
			Version: api.Version{Version: "test"}}).Serve(ctx, l)
	}()
	stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	return l.Addr().String(), stop
}

func made(t *testing.T) string {
	root := t.TempDir()
	if err := synthetic.Folder(root); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestEveryPage opens every page in both themes, on a screen and on a phone: it loads without an error and without a
// request to another host, does not scroll sideways on a phone, and axe-core finds no barrier. A picture of each is
// not empty; STARLING_SHOTS names a folder for pictures of whole pages.
func TestEveryPage(t *testing.T) {
	chromium := needBrowser(t)
	address, stop := serve(t, made(t), "127.0.0.1:0")
	defer stop()
	want := map[string]string{
		"jobs": "long", "jobs/long": "Where the budget went", "jobs/long/charts": "Gradient norm",
		"jobs/long/charts?x=time&smooth=0.9&log=1": "Throughput", "jobs/long/workers": "1.25 MB/s",
		"jobs/long/lineage": "checkpoints, each signed", "jobs/long/receipts": "1\u202f000 receipts",
		"jobs/long/receipts?zero=true": "No receipt matches", "jobs/short/receipts": "4 work, 1 audit",
		"jobs/long/disputes": "The referee computed the tile", "jobs/long/samples": "main() {", "jobs/long/log": "slow",
		"jobs/long/job": "/v1/jobs/long/metrics", "jobs/short": "no process trains it", "jobs/sweep:000/workers": "worker-0",
		"compare?runs=long,short&x=tokens":    "Side by side",
		"compare?runs=same,short&metric=loss": "same and short have the same values", "models": "gpt2",
		"models/long": "Who trained it", "models/nothing": "left a model here",
		"simulator": "2 variants", "network": "12 ms", "workers": "In the runs of this server",
		"workers/starling1aaaaaaaaaaaaaaaaaaaaaaaa": "one unit to train",
		"validators": "50 %", "explorer": "2.50 ZEN to starling1bbb", "explorer?busy=1": "With transactions",
		"explorer/tx/" + strings.Repeat("cd", 32):            "for the winter",
		"explorer/account/starling1aaaaaaaaaaaaaaaaaaaaaaaa": "1000000.00 ZEN",
		"health": "Checks", "nowhere": "NO_SUCH_PAGE", "jobs/unknown": "NOT_FOUND",
	}
	kept := os.Getenv("STARLING_SHOTS")
	shots := cmp.Or(kept, t.TempDir())
	task := browser.Task{Chromium: chromium, Shots: shots, Whole: kept != "", Files: t.TempDir()}
	for _, path := range synthetic.Pages {
		task.Pages = append(task.Pages, browser.Page{Name: path, URL: "http://" + address + "/" + path,
			Saves: path == "simulator" || path == "jobs/long/charts"})
	}
	// what runs and sweeps leave
	for name, text := range map[string]string{"example": "Who earned what", "comparison": "Variant"} {
		path, err := filepath.Abs("../../web/report/testdata/" + name + ".html")
		if err != nil {
			t.Fatal(err)
		}
		want[name] = text
		task.Pages = append(task.Pages, browser.Page{Name: name, URL: "file://" + path, Plain: true})
	}
	all := drive(t, task, nil)
	if len(all) != 4*len(want) {
		t.Errorf("%d pages of %d", len(all), 4*len(want))
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
	findings := 0
	for _, p := range all {
		findings += len(p.Violations)
		looked(t, p, want[p.Name], task.Files)
	}
	t.Logf("findings %d over %d pages, 2 themes and 2 widths", findings, len(want))
}

// looked checks what the browser saw of a page.
func looked(t *testing.T, p browser.Seen, want, files string) {
	t.Helper()
	if p.Theme == "light" && p.Width == 1280 {
		figures := map[string]int{"simulator": 2, "jobs/long/charts": 8}[p.Name]
		if len(p.Saved) != figures {
			t.Errorf("%s: %d figures are saved, of %d", p.Name, len(p.Saved), figures)
		}
		for _, s := range p.Saved {
			saved(s).read(t, files)
		}
	}
	if moved := map[string]string{"jobs/long/workers": "fetched over 4 links",
		"network": "4.00 MB fetched over 2 links"}[p.Name]; moved != "" &&
		!strings.Contains(strings.Join(p.Maps, ""), moved) {
		t.Errorf("the map of %s says %q", p.Name, p.Maps)
	}
	for _, text := range map[string][]string{"jobs/long/lineage": {"2 updates"},
		"jobs/long/charts": {"The same all along", "active workers 4"}, "network": {"same"},
		"explorer/tx/" + strings.Repeat("cd", 32): {"0.000020 ZEN", "2.50", "starling1bbb"},
		"models/long": {"long --prompt", "config.json"}}[p.Name] {
		if !strings.Contains(p.Text, text) {
			t.Errorf("%s has no %q: %.600q", p.Name, text, p.Text)
		}
	}
	missing := strings.HasPrefix(p.Name, "jobs/unknown") // its 404 is an error of the console
	if len(p.Errors) > 0 && !missing || len(p.Outside) > 0 || len(p.Violations) > 0 || !strings.Contains(p.Text, want) {
		t.Errorf("%s, %s, %d px: errors %q, outside %q, violations %q, text %.300q", p.Name, p.Theme, p.Width, p.Errors,
			p.Outside, p.Violations, p.Text)
	}
}

// TestKeyboard uses the pages without a pointer.
func TestKeyboard(t *testing.T) {
	chromium := needBrowser(t)
	address, stop := serve(t, made(t), "127.0.0.1:0")
	defer stop()
	got := drive(t, browser.Task{Chromium: chromium,
		Keys: map[string]any{"url": "http://" + address + "/jobs/long", "next": "/jobs/long/charts",
			"goes": map[string]string{"key": "h", "path": "/health"}}}, nil)
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	if k := got[0].Keys; !strings.HasPrefix(k.First, "Skip to") || k.Tab != "/jobs/long/charts" ||
		!strings.HasPrefix(k.Reads, "inner step ") || k.Went != "/health" || !k.Moves {
		t.Errorf("%+v", k)
	}
}

// TestPageReconnects stops the server under an open page, continues the run, and starts the server again: the page
// updates by itself. The test also draws a chart of ten thousand points, and saves it.
func TestPageReconnects(t *testing.T) {
	chromium := needBrowser(t)
	root := made(t)
	address, stop := serve(t, root, "127.0.0.1:0")
	task := browser.Task{Chromium: chromium, Files: t.TempDir(),
		Reconnect: map[string]string{"url": "http://" + address + "/jobs/short", "shows": "210", "rounds": "21 of"}}
	got := drive(t, task, func() {
		stop()
		if err := (synthetic.Run{Name: "short", Steps: 200, Every: 10}).Append(filepath.Join(root, "short"), 20,
			21); err != nil {
			t.Error(err)
		}
		_, stop = serve(t, root, address)
	})
	stop()
	if len(got) != 1 || !got[0].Reconnected || got[0].Rounds == "" || len(got[0].Saved) != 1 ||
		got[0].Saved[0].Points != 10_000 {
		t.Fatalf("%+v", got)
	}
	saved(got[0].Saved[0]).read(t, task.Files)
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
func drive(t *testing.T, task browser.Task, at func()) []browser.Seen {
	t.Helper()
	all, err := browser.Drive(t.Context(), browserFolder, task, at)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

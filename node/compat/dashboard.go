package compat

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/node/runs/synthetic"
	"github.com/starling-network/starling/web"
	"github.com/starling-network/starling/web/browser"
)

// Accessibility opens every page of the dashboard, and the reports that runs and sweeps leave, in both themes and at
// two widths, and returns what axe-core finds on them.
func Accessibility(ctx context.Context, tree string) (pages int, findings []string, err error) {
	dir := filepath.Join(tree, "web", "browser")
	task := browser.Task{}
	if task.Chromium, err = browser.Chromium(dir); err != nil {
		return 0, nil, err
	}
	root, err := os.MkdirTemp("", "starling-compat-")
	if err != nil {
		return 0, nil, err
	}
	defer os.RemoveAll(root)
	if err := synthetic.Folder(root); err != nil {
		return 0, nil, err
	}
	for _, name := range []string{"example", "comparison"} {
		path, err := filepath.Abs(filepath.Join(tree, "web", "report", "testdata", name+".html"))
		if err != nil {
			return 0, nil, err
		}
		task.Pages = append(task.Pages, browser.Page{Name: name, URL: "file://" + path, Plain: true})
	}
	lib, err := runs.Open(root)
	if err != nil {
		return 0, nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, nil, err
	}
	for _, path := range synthetic.Pages {
		task.Pages = append(task.Pages, browser.Page{Name: path, URL: "http://" + l.Addr().String() + "/" + path})
	}
	serving, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		c := web.Config{Runs: lib, Network: synthetic.Network{}, Version: api.Version{Version: "test"}}
		done <- web.New(c).Serve(serving, l)
	}()
	all, err := browser.Drive(ctx, dir, task, nil)
	stop()
	if err = errors.Join(err, <-done); err != nil {
		return 0, nil, err
	}
	if want := 4 * len(task.Pages); len(all) != want {
		return 0, nil, fmt.Errorf("compat: the browser looked %d times, not %d", len(all), want)
	}
	for _, p := range all {
		for _, v := range p.Violations {
			findings = append(findings, fmt.Sprintf("%s, %s, %d px: %s", p.Name, p.Theme, p.Width, v))
		}
	}
	return len(task.Pages), findings, nil
}

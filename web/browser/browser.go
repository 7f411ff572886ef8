// Package browser drives the dashboard in Chromium, by the program drive.js in its folder, which needs node and
// the packages that npm ci installs here: it is for tests and measurements, in a source tree.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// ErrMissing wraps what is not installed.
var ErrMissing = errors.New("not installed")

// Page is an address to look at.
type Page struct {
	Name  string `json:"name"`
	URL   string `json:"url"`
	Saves bool   `json:"saves,omitempty"` // press the buttons of its figures, once
	Plain bool   `json:"plain,omitempty"` // a file without the dashboard's script
}

// Task is what the driver does; drive.js says what each key is.
type Task struct {
	Chromium  string            `json:"chromium"`
	Pages     []Page            `json:"pages,omitempty"`
	Shots     string            `json:"shots,omitempty"`
	Whole     bool              `json:"whole,omitempty"`
	Files     string            `json:"files,omitempty"`
	Keys      any               `json:"keys,omitempty"`
	Reconnect map[string]string `json:"reconnect,omitempty"`
}

// Seen is what the browser saw of a page.
type Seen struct {
	Name, Theme, Title, Text    string
	Width                       int
	Rounds                      string   // what the strip of rounds says
	Maps                        []string // texts of the maps of the page for people who do not see them
	Errors, Outside, Violations []string
	Reconnected                 bool
	ChartMS                     float64 `json:"chart_ms"`
	Saved                       []Saved
	Keys                        struct {
		First, Tab, Reads, Went string
		Moves                   bool
	}
}

// Saved is a figure of a page, the points of its curves, and the files that its buttons gave: CSV, SVG and PNG.
type Saved struct {
	Title  string
	Points int
	Names  []string
}

// Chromium finds the browser, and what drives it in dir, this folder of the source tree. The error wraps ErrMissing.
func Chromium(dir string) (path string, err error) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", fmt.Errorf("%w: node: install Debian's nodejs", ErrMissing)
	}
	for _, name := range []string{"chromium-headless-shell", "chromium"} { // the shell is quicker: it has no window
		if path == "" {
			path, _ = exec.LookPath(name) // the next one may be there
		}
	}
	if path == "" {
		return "", fmt.Errorf("%w: a browser: install Debian's chromium-headless-shell, or chromium", ErrMissing)
	}
	for _, name := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", name)); err != nil {
			return "", fmt.Errorf("%w: %s: run npm ci in web/browser", ErrMissing, name)
		}
	}
	return path, nil
}

// Drive runs the driver of dir; at is called when it asks for it.
func Drive(ctx context.Context, dir string, task Task, at func()) (all []Seen, err error) {
	text, err := json.Marshal(task)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", "drive.js", string(text))
	cmd.Dir = dir
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	var last string
	for {
		line, err := lines.ReadString('\n')
		if line == "now\n" && at != nil {
			at()
			_, _ = io.WriteString(in, "done\n") // a driver that is gone says why below
		} else if line != "" {
			last = line
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("browser: %w\n%s", err, errs.String())
	}
	if err := json.Unmarshal([]byte(last), &all); err != nil {
		return nil, fmt.Errorf("browser: %w: %s", err, last)
	}
	return all, nil
}

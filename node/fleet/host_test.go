//go:build unix

package fleet

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// shells returns a host whose workers are shell scripts, and a function that returns the lines which the host printed.
func shells() (*Host, func() string) {
	var mu sync.Mutex
	var said []string
	h := &Host{Program: "/bin/sh", Final: func(code int) bool { return code == 2 }, pause: time.Millisecond,
		Say: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, text)
		}}
	return h, func() string {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(said, "\n")
	}
}

func script(name, text string) Worker { return Worker{Name: name, Args: []string{"-c", text}} }

// A worker that fails is started again until it ends, and one that cannot be started is not.
func TestAHostRestartsWorkers(t *testing.T) {
	h, said := shells()
	count := filepath.Join(t.TempDir(), "count")
	err := h.Run(t.Context(), []Worker{
		script("again", "echo run; echo x >> "+count+"; [ $(wc -l < "+count+") = 3 ]"),
		script("wrong", "exit 2"), script("done", "echo a line"),
	}, nil)
	if err == nil || !strings.Contains(err.Error(), "wrong: exit status 2") || strings.Contains(err.Error(), "again") {
		t.Errorf("it ended with %v", err)
	}
	if runs, _ := os.ReadFile(count); strings.Count(string(runs), "x") != 3 {
		t.Errorf("a failing worker was started %d times", strings.Count(string(runs), "x"))
	}
	for _, want := range []string{"again: run", "done: a line", "done: ended", "again: ended"} {
		if !strings.Contains(said(), want) {
			t.Errorf("it does not say %q:\n%s", want, said())
		}
	}
}

// A worker that ends for good while it drains, with work that is not settled, is no worker that ended well.
func TestAHostTellsOfWorkersThatDrainInVain(t *testing.T) {
	h, said := shells()
	ctx, cancel := context.WithCancel(t.Context())
	say := h.Say
	h.Say = func(text string) {
		if say(text); text == "w: up" {
			cancel()
		}
	}
	err := h.Run(ctx, []Worker{script("w", `trap "exit 2" TERM; echo up; while :; do sleep 0.01; done`)}, nil)
	if err == nil || !strings.Contains(err.Error(), "w: exit status 2") {
		t.Errorf("it ended with %v:\n%s", err, said())
	}
}

// The first signal lets workers drain, and the second ends them.
func TestAHostPassesSignalsOn(t *testing.T) {
	h, said := shells()
	news, say := make(chan struct{}, 100), h.Say
	h.Say = func(text string) {
		say(text)
		news <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	stop := make(chan os.Signal, 1)
	ended := make(chan error)
	go func() {
		ended <- h.Run(ctx, []Worker{script("w",
			`trap 'trap "echo ends; exit 0" TERM; echo drains' TERM; echo up; while :; do sleep 0.01; done`)}, stop)
	}()
	until := func(text string) {
		t.Helper()
		for !strings.Contains(said(), text) {
			select {
			case <-news:
			case <-t.Context().Done():
				t.Fatalf("it does not say %q:\n%s", text, said())
			}
		}
	}
	until("w: up")
	cancel()
	until("w: drains")
	stop <- os.Interrupt
	if err := <-ended; err != nil || !strings.Contains(said(), "w: ends") {
		t.Errorf("%v:\n%s", err, said())
	}
}

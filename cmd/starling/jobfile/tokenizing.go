package jobfile

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/node/dataset"
)

// Tokenizing shows the progress of tokenizing on standard error, unless that takes less than half a second, and ends it
// with the context. The caller calls done at its end.
func Tokenizing(ctx context.Context, c *terminal.Console) (watch data.Watch, done func()) {
	t := &tokenizing{to: os.Stderr, mode: terminal.ModeFor(os.Stderr, c.Quiet || c.Form.Machine()), begin: time.Now()}
	return func(p data.Progress) error {
		t.show(time.Now(), p)
		return ctx.Err()
	}, t.done
}

type tokenizing struct {
	to    io.Writer
	mode  terminal.Mode
	begin time.Time
	last  time.Time // of the last line; zero: there was none
}

// every is how often the mode shows a line.
var every = map[terminal.Mode]time.Duration{terminal.Line: 200 * time.Millisecond, terminal.Plain: 10 * time.Second}

func (t *tokenizing) show(now time.Time, p data.Progress) {
	last := t.last
	if last.IsZero() {
		last = t.begin
	}
	if t.mode == terminal.Quiet || now.Sub(last) < max(every[t.mode], time.Second/2) {
		return
	}
	t.last = now
	line := dataset.Tokenizing(p, now.Sub(t.begin))
	if t.mode == terminal.Line {
		fmt.Fprint(t.to, "\r\x1b[K", line)
	} else {
		fmt.Fprintln(t.to, line)
	}
}

func (t *tokenizing) done() {
	if t.mode == terminal.Line && !t.last.IsZero() {
		fmt.Fprint(t.to, "\r\x1b[K")
	}
}

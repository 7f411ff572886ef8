package jobfile

import (
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/cmd/starling/terminal"
	"github.com/starling-network/starling/compute/data"
)

// Progress is shown at intervals, with its speed, and not at once.
func TestTokenizing(t *testing.T) {
	for mode, want := range map[terminal.Mode]string{
		terminal.Plain: "tokenizing: 500 MB, 100.0 million tokens, 25.0 MB/s\n", terminal.Quiet: "",
		terminal.Line: "\r\x1b[Ktokenizing: 500 MB, 100.0 million tokens, 25.0 MB/s\r\x1b[K",
	} {
		var said strings.Builder
		begin := time.Unix(1000, 0)
		p := &tokenizing{to: &said, mode: mode, begin: begin}
		p.show(begin.Add(100*time.Millisecond), data.Progress{Bytes: 1e6})
		p.show(begin.Add(20*time.Second), data.Progress{Bytes: 5e8, Tokens: 1e8})
		p.show(begin.Add(20*time.Second+time.Millisecond), data.Progress{Bytes: 5e8, Tokens: 1e8})
		p.done()
		if said.String() != want {
			t.Errorf("mode %d: %q, want %q", mode, said.String(), want)
		}
	}
}

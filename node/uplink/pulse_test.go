package uplink

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestPulse: the owner of a process gets one message when blocks stop, and one when they arrive again.
func TestPulse(t *testing.T) {
	var said []string
	p := NewPulse("http://validator", func(text string) { said = append(said, text) })
	defer p.Stop()
	for range 2 {
		p.Block(6)
		p.Block(7)
		p.Silent(nil)
		p.Silent(nil)
		p.Block(9)
		p.Block(10)
	}
	want := []string{
		"no block came for 30s: the validator at http://validator is gone, or the network makes none; the process keeps " +
			"trying",
		"blocks come again, at height 9",
	}
	if !slices.Equal(said, append(want, want...)) {
		t.Errorf("%q", said)
	}
	p.Silent(errors.New("it does not know the ticket"))
	if last := said[len(said)-1]; !strings.Contains(last, "the head of the local network carries nothing for this "+
		"machine: it does not know the ticket; the process") {
		t.Errorf("%q", last)
	}
}

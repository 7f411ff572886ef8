package tokenize

import "testing"

// The text is the same on every machine, and has words, numbers and punctuation.
func TestTextIsTheSame(t *testing.T) {
	a, b := newWriter(), newWriter()
	for range 3 {
		if x, y := a.document(), b.document(); x != y || len(x) < 300 {
			t.Fatalf("%d bytes, %q and %q", len(x), x[:50], y[:50])
		}
	}
}

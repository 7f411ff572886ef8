package jobs

import (
	"testing"

	"github.com/starling-network/starling/web/sourcetest"
)

func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"1.2.3.abc", "0.0.0.", "-1.0.0.a", "9999999999.0.0.", "1.2.3"} {
		f.Add(seed)
	}
	h := sourcetest.Run(5)
	f.Fuzz(func(t *testing.T, text string) {
		c, ok := parseCursor(text)
		if ok && c.holds(h) {
			_ = since(c, h)
		}
		if again, back := parseCursor(c.String()); ok && (!back || again != c) {
			t.Errorf("%q is read as %v and again as %v", text, c, again)
		}
	})
}

package catalog

import (
	"strings"
	"testing"
)

// A title of a stranger adds no lines or columns to a lineage, and moves no cursor.
func TestTitlesAreOneCell(t *testing.T) {
	var b strings.Builder
	Node{Listing: 7, Title: "a\n  8 b\t50 %\x1b[2J", Part: "100.00", Licence: "MIT", Shares: "listing/7"}.write(&b, 0)
	if line := b.String(); strings.Count(line, "\n") != 1 || strings.Count(line, "\t") != 5 ||
		strings.Contains(line, "\x1b") {
		t.Errorf("%q", line)
	}
}

package main

import (
	"strings"
	"testing"

	"github.com/starling-network/starling/cmd/starling/catalog"
)

// A lineage says that the number of contributions is a claim.
func TestContributionsAreClaimed(t *testing.T) {
	var b strings.Builder
	catalog.Node{Proven: 2, Setup: 3}.Write(&b, 0)
	if !strings.Contains(b.String(), "2 layers, 3 contributions claimed") {
		t.Errorf("%q", b.String())
	}
}

// A title of a stranger adds no lines or columns to a lineage, and moves no cursor.
func TestTitlesAreOneCell(t *testing.T) {
	var b strings.Builder
	catalog.Node{Listing: 7, Title: "a\n  8 b\t50 %\x1b[2J", Part: "100.00", Licence: "MIT",
		Shares: "listing/7"}.Write(&b, 0)
	if line := b.String(); strings.Count(line, "\n") != 1 || strings.Count(line, "\t") != 5 ||
		strings.Contains(line, "\x1b") {
		t.Errorf("%q", line)
	}
}

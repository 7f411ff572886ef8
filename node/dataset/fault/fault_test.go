package fault

import (
	"slices"
	"testing"
)

// Faults of a file that are the same are one group, whatever lies between them.
func TestFaultsAreGrouped(t *testing.T) {
	faults := []Fault{{"a", 0, "torn"}, {"a", 1, "x"}, {"a", 2, "x"}, {"a", 3, "x"}, {"a", 4, "y"}, {"a", 6, "y"},
		{"a", 7, "y"}, {"b", 7, "y"}}
	var said []string
	for _, g := range Grouped(faults) {
		said = append(said, g.File+":"+g.Lines()+":"+g.Why)
	}
	if want := []string{"a::torn", "a:1-3:x", "a:4 to 7 (3 lines):y", "b:7:y"}; !slices.Equal(said, want) {
		t.Errorf("%q, want %q", said, want)
	}
}

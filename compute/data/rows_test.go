package data

import (
	"errors"
	"slices"
	"testing"
)

// Examples are drawn into two parts, in which each window is an example.
func TestRows(t *testing.T) {
	var rows [][]uint32
	for i := range uint32(40) {
		rows = append(rows, []uint32{i, 100 + i, 200 + i})
	}
	c, err := Rows(rows, 256, 7, 0.25)
	if err != nil {
		t.Fatal(err)
	}
	if c.Train.Len() != 90 || c.Val.Len() != 30 || c.Windows(3) != 29 {
		t.Fatalf("%d tokens to train on in %d windows, %d held out", c.Train.Len(), c.Windows(3), c.Val.Len())
	}
	var seen []uint32
	for _, part := range []Tokens{c.Train, c.Val} {
		for i := 0; i < part.Len(); i += 3 {
			first := part.At(i)
			if part.At(i+1) != 100+first || part.At(i+2) != 200+first {
				t.Fatalf("a row is torn at %d", i)
			}
			seen = append(seen, first)
		}
	}
	if slices.IsSorted(seen) {
		t.Error("the order is that of the files")
	}
	slices.Sort(seen)
	if len(slices.Compact(seen)) != 40 {
		t.Errorf("examples %v", seen)
	}
	if other, err := Rows(rows, 256, 8, 0.25); err != nil || other.Manifest(1000).Digest() == c.Manifest(1000).Digest() {
		t.Errorf("another seed gives the same order (%v)", err)
	}
	for name, bad := range map[string][][]uint32{"none": {}, "empty": {{}}, "uneven": {{1, 2}, {1}}, "token": {{256}}} {
		if _, err := Rows(bad, 256, 7, 0); !errors.Is(err, ErrRows) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Rows(rows, 256, 7, 1); !errors.Is(err, ErrFraction) {
		t.Errorf("a fraction of 1: %v", err)
	}
}

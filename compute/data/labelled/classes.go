package labelled

import (
	"fmt"
	"slices"
)

// Classes are the classes of examples with these labels, ascending: those that are given, of which each label has to be
// one, or else those that occur.
func Classes(labels, given []string) ([]string, error) {
	all := slices.Compact(slices.Sorted(slices.Values(labels)))
	if len(given) == 0 {
		return all, nil
	}
	want := slices.Compact(slices.Sorted(slices.Values(given)))
	for _, l := range all {
		if _, is := slices.BinarySearch(want, l); !is {
			return nil, fmt.Errorf("%q is none of the %d classes of the job", l, len(want))
		}
	}
	return want, nil
}

package handover_test

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/handover"
)

func head(frames ...string) (h handover.Head) {
	for i, f := range frames {
		h = h.After(0, 2, uint32(i), []canon.Digest{canon.Sum(f)})
	}
	return h
}

// Each head binds the frames before it, their order, and their tasks.
func TestHeads(t *testing.T) {
	roots := []canon.Digest{canon.Sum("x")}
	all := []handover.Head{head("one", "two"), head("two", "one"), head("one"), head("one", "two", "three"),
		handover.Head{}.After(0, 2, 0, roots), handover.Head{}.After(1, 2, 0, roots), handover.Head{}.After(0, 3, 0, roots),
		handover.Head{}.After(0, 2, 1, roots), handover.Head{}.After(0, 2, 0, append(roots, roots...))}
	for i := range all {
		for k := range i {
			if all[i] == all[k] {
				t.Errorf("heads %d and %d are equal", k, i)
			}
		}
	}
}

// Of three stages that pass two forwards on and two backwards back, the one that could continue is named.
func TestStalled(t *testing.T) {
	at := func(from, to uint32) handover.Link { return handover.Link{From: from, To: to} }
	links := []handover.Link{at(0, 1), at(1, 2), at(2, 1), at(1, 0)}
	need := func(out handover.Link, frames uint64, in handover.Link) uint64 {
		switch {
		case out == at(1, 2) && in == at(0, 1), out == at(2, 1) && in == at(1, 2), out == at(1, 0) && in == at(2, 1):
			return frames
		}
		return 0
	}
	last := func(handover.Link) uint64 { return 2 }
	for name, c := range map[string]struct {
		progress map[handover.Link]handover.Progress
		want     []uint32
	}{
		"nothing is sent":             {nil, []uint32{0}},
		"the middle withholds":        {map[handover.Link]handover.Progress{at(0, 1): {2, 2}}, []uint32{1}},
		"the last withholds":          {map[handover.Link]handover.Progress{at(0, 1): {2, 2}, at(1, 2): {2, 2}}, []uint32{2}},
		"a frame is shown, not taken": {map[handover.Link]handover.Progress{at(0, 1): {2, 1}}, []uint32{1}},
		"all is done": {map[handover.Link]handover.Progress{at(0, 1): {2, 2}, at(1, 2): {2, 2}, at(2, 1): {2, 2},
			at(1, 0): {2, 2}}, nil},
	} {
		got := handover.Stalled(links, func(l handover.Link) handover.Progress { return c.progress[l] }, last, need)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, wanted %v", name, got, c.want)
		}
	}
}

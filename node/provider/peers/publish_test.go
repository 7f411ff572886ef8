package peers

import (
	"strings"
	"testing"
)

func TestToldByACopy(t *testing.T) {
	var told Told
	first, own := []string{"/ip4/10.0.0.1/tcp/1"}, []string{"/ip4/10.0.0.1/tcp/2"}
	other := []string{"/ip4/10.0.0.9/tcp/1"}
	blocks := func(there, own []string, n int) (texts []string) {
		for range n {
			if text := told.Block(there, own); text != "" {
				texts = append(texts, text)
			}
		}
		return texts
	}
	if texts := blocks(first, first, 9); texts != nil {
		t.Errorf("its own addresses: %q", texts)
	}
	told.add(own)
	if texts := append(blocks(first, own, 9), blocks(own, own, 9)...); texts != nil {
		t.Errorf("a change: %q", texts)
	}
	if texts := blocks(other, own, 2); texts != nil {
		t.Errorf("too early: %q", texts)
	}
	texts := blocks(other, own, 9)
	if len(texts) != 1 || !strings.HasPrefix(texts[0], "KEY_IN_USE: ") || !strings.Contains(texts[0], other[0]) {
		t.Errorf("a copy: %q", texts)
	}
	for range 2 * maxTold {
		told.add(own)
	}
	if len(told.lists) > maxTold {
		t.Errorf("it keeps %d lists", len(told.lists))
	}
}

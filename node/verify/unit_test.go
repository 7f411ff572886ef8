package verify

import "testing"

// Updates that were taken are not kept: their bytes lie in memory until the last round otherwise.
func TestTake(t *testing.T) {
	v := &verification{sent: []sent{{cid: "a"}, {cid: "b"}, {cid: "c"}}}
	array := v.sent
	if first := v.take(2); len(first) != 2 || first[0].cid != "a" || first[1].cid != "b" {
		t.Errorf("took %v", first)
	}
	if len(v.sent) != 1 || v.sent[0].cid != "c" || array[0].cid != "" || array[1].cid != "" {
		t.Errorf("%v are left of %v", v.sent, array)
	}
}

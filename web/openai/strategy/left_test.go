package strategy

import (
	"net/http"
	"slices"
	"testing"
)

// An answer names the stages that any of its texts was continued without.
func TestLeft(t *testing.T) {
	var whole *Trace
	left := (&Trace{Left: []int{3}}).Join((&Trace{Left: []int{2, 3}}).Join(whole.Join(nil)))
	if !slices.Equal(left, []int{2, 3}) || State("fp_1", left) != "fp_1-without-2-3" || State("fp_1", nil) != "fp_1" {
		t.Error(left, State("fp_1", left))
	}
	h := http.Header{}
	if Mark(h, nil); len(h) > 0 {
		t.Error(h)
	}
	if Mark(h, left); h.Get(HeaderLeft) != "2,3" || h.Get(http.TrailerPrefix+HeaderLeft) != "2,3" {
		t.Error(h)
	}
}

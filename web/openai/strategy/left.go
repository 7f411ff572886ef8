package strategy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// HeaderLeft is the header of an answer, of a stream the trailer, that names the stages of a model without which texts
// of it were continued.
const HeaderLeft = "X-Starling-Left-Stages"

// Join adds the stages that an answer was continued without to others; of a trace that is nil there are none.
func (t *Trace) Join(left []int) []int {
	if t == nil || t.Left == nil {
		return left
	}
	left = slices.Concat(left, t.Left)
	slices.Sort(left)
	return slices.Compact(left)
}

// named are stages as text.
func named(left []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(left), "[]"), " ", ",")
}

// Mark names stages in the header of an answer, and in its trailer.
func Mark(h http.Header, left []int) {
	if len(left) > 0 {
		h.Set(HeaderLeft, named(left))
		h.Set(http.TrailerPrefix+HeaderLeft, named(left))
	}
}

// State is the fingerprint of the weights that wrote an answer: of a model without some stages it is another than that
// of the whole.
func State(whole string, left []int) string {
	if len(left) == 0 {
		return whole
	}
	return whole + "-without-" + strings.ReplaceAll(named(left), ",", "-")
}

// Package fragment divides the layers of a model into fragments, by the names of their parameters.
package fragment

import "strings"

// Of returns the fragment of a parameter, of the given number of fragments of the layers: its layer is the
// first number in its name, and neighbouring layers are in different fragments. Parameters without a layer are in the
// last fragment.
func Of(name string, fragments uint32) uint32 {
	at := strings.IndexFunc(name, isDigit)
	if at < 0 {
		return fragments - 1
	}
	var layer uint64
	for _, c := range name[at:] {
		if !isDigit(c) {
			break
		}
		layer = layer*10%uint64(fragments) + uint64(c-'0')
	}
	return uint32(layer % uint64(fragments))
}

func isDigit(c rune) bool { return c >= '0' && c <= '9' }

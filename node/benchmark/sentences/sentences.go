// Package sentences is made-up text, from which models of measurements learn.
package sentences

import (
	"strings"

	"github.com/starling-network/starling/compute/philox"
)

// Of is text of a number of words, each of which follows from the one before it by one of three rules.
func Of(words int) string {
	list := strings.Fields("the a one no old new red dim fox dog owl hen runs naps eats sees over under near past lazy " +
		"quick small brown and but so then now soon here there up down out in")
	var b strings.Builder
	at := 0
	for i := range words {
		at = (at*7 + int(philox.Block(13, 3, uint64(i))[0]%3) + 1) % len(list)
		b.WriteString(list[at] + " ")
	}
	return b.String()
}

// Package sentences is made-up text by simple rules, from which models of measurements learn. It is no language, and
// what a model gains on it says nothing about languages.
package sentences

import (
	"strings"

	"github.com/starling-network/starling/compute/philox"
)

// Of is text of a number of words, each of which follows from the one before it by one of three rules.
func Of(words int) string { return text(words, 13, func(uint32) byte { return ' ' }) }

// Ended is such text in sentences and lines, whose ends no rule gives.
func Ended(words int) string {
	return text(words, 11, func(drawn uint32) byte { return " .\n"[min(int(drawn%32), 31)/15] })
}

// text draws words from a stream; after gives the letter after a word.
func text(words int, stream uint64, after func(drawn uint32) byte) string {
	list := strings.Fields("the a one no old new red dim fox dog owl hen runs naps eats sees over under near past lazy " +
		"quick small brown and but so then now soon here there up down out in")
	var b strings.Builder
	at := 0
	for i := range words {
		drawn := philox.Block(stream, 3, uint64(i))
		at = (at*7 + int(drawn[0]%3) + 1) % len(list)
		b.WriteString(list[at])
		b.WriteByte(after(drawn[1]))
	}
	return b.String()
}

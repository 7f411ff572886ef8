package tokenize

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// writer writes a text whose words are distributed as those of a language (Zipf): the word of rank r is 1/r as often as
// the first.
type writer struct {
	words []string
	dice  *rand.Rand
}

// words is how many different words the text has, besides numbers.
const words = 100_000

var syllables = strings.Fields("ba con ter in lo me sta ri ther qua no el ing ous ex pre un ty ment al sho gra vi den")

// newWriter returns a writer. All writers write the same text.
func newWriter() *writer {
	w := &writer{words: make([]string, words), dice: rand.New(rand.NewPCG(1, 1))}
	for i := range w.words {
		for range 1 + int(math.Log2(float64(i+2)))/5 + w.dice.IntN(2) {
			w.words[i] += syllables[w.dice.IntN(len(syllables))]
		}
	}
	return w
}

// document is a text of some sentences.
func (w *writer) document() string {
	var b strings.Builder
	for range 5 + w.dice.IntN(40) {
		w.sentence(&b)
	}
	b.WriteByte('\n')
	return b.String()
}

func (w *writer) sentence(b *strings.Builder) {
	for k := range 8 + w.dice.IntN(12) {
		word := w.words[int(math.Pow(words, w.dice.Float64()))-1]
		if k > 0 {
			b.WriteByte(' ')
		} else {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
		switch w.dice.IntN(24) {
		case 0:
			b.WriteByte(',')
		case 1:
			fmt.Fprint(b, " ", w.dice.IntN(3000))
		}
	}
	b.WriteString([...]string{". ", ".\n", "?\n\n", "! "}[w.dice.IntN(4)])
}

// Package text turns the tokens of a text into pieces of it as they come: a Writer gives whole characters only, and
// ends the text before the first of its stop strings. It generates nothing; tokens are compute/generate's.
package text

import (
	"strings"
	"unicode/utf8"
)

// Decoder turns tokens into bytes, such as a tokenizer.Tokenizer does.
type Decoder interface {
	Decode(ids []uint32) string
}

// Writer holds back what is not a whole character yet, and what may be the beginning of a stop string. The zero Writer
// is of no use.
type Writer struct {
	decoder Decoder
	stops   []string
	tokens  []uint32 // whose bytes end within a character
	held    string   // that a stop string may begin in
	stopped bool
}

// NewWriter returns a writer of a text that ends before the first of the given strings; empty ones end nothing.
func NewWriter(d Decoder, stops ...string) *Writer {
	w := &Writer{decoder: d}
	for _, s := range stops {
		if s != "" {
			w.stops = append(w.stops, s)
		}
	}
	return w
}

// Add returns the further text of a further token, and whether the text has reached a stop string. After that nothing
// is added.
func (w *Writer) Add(id int32) (piece string, stopped bool) {
	if w.stopped {
		return "", true
	}
	w.tokens = append(w.tokens, uint32(id))
	text := w.decoder.Decode(w.tokens)
	if !complete(text) {
		return "", false
	}
	w.tokens = w.tokens[:0]
	w.held += text
	if at := w.first(); at >= 0 {
		piece, w.held, w.stopped = w.held[:at], "", true
		return piece, true
	}
	keep := w.pending()
	piece, w.held = w.held[:len(w.held)-keep], w.held[len(w.held)-keep:]
	return piece, false
}

// Close returns what was held back, if the text ends here.
func (w *Writer) Close() string {
	if w.stopped {
		return ""
	}
	rest := w.held + w.decoder.Decode(w.tokens)
	w.held, w.tokens, w.stopped = "", nil, true
	return rest
}

// first is where the first stop string begins, or -1.
func (w *Writer) first() int {
	first := -1
	for _, s := range w.stops {
		if at := strings.Index(w.held, s); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// pending is the length of the longest end of the text that a stop string begins with.
func (w *Writer) pending() (n int) {
	for _, s := range w.stops {
		for k := min(len(s)-1, len(w.held)); k > n; k-- {
			if strings.HasSuffix(w.held, s[:k]) {
				n = k
			}
		}
	}
	return n
}

// complete reports whether a text does not end within a character.
func complete(text string) bool {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(text[i]) {
			return utf8.FullRuneInString(text[i:])
		}
	}
	return true
}

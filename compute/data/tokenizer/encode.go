package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Encode returns the ids of a text: added tokens are found first, what lies between them is cut into words, and in each
// word the pair of tokens with the lowest rank is merged, the leftmost first, until no pair can be. Nothing is put before
// or after the text: EncodeText puts what the file asks for before it.
func (t *Tokenizer) Encode(text string) []uint32 {
	e := encoder{t: t, cache: map[string][]uint32{}}
	e.queue.less = func(a, b candidate) bool {
		return a.rank < b.rank || a.rank == b.rank && a.at < b.at
	}
	t.added[0].each(text, e.special, func(rest string) {
		t.added[1].each(rest, e.special, e.plain)
	})
	return e.out
}

// Limits of the words that one call of Encode remembers.
const (
	cachedWords   = 1 << 16
	cachedWordLen = 64
)

// encoder is the state of one call of Encode.
type encoder struct {
	t       *Tokenizer
	out     []uint32
	cache   map[string][]uint32
	symbols []symbol
	queue   heap[candidate]
}

// symbol is a token of the word being merged, in a doubly linked list; -1 is no neighbour.
type symbol struct {
	id         uint32
	prev, next int
	gone       bool // merged into its left neighbour
}

// candidate is a merge that was possible when it was queued: of the symbol at a position with the one after it.
type candidate struct{ rank, at int }

func (e *encoder) special(id uint32) { e.out = append(e.out, id) }

// plain encodes text in which no added token occurs.
func (e *encoder) plain(text string) {
	if e.t.prefixSpace && !strings.HasPrefix(text, " ") {
		text = " " + text
	}
	for len(text) > 0 {
		n := e.t.pattern.wordLen(text)
		e.word(text[:n])
		text = text[n:]
	}
}

func (e *encoder) word(w string) {
	if id, ok := e.t.known[w]; ok {
		e.out = append(e.out, id)
		return
	}
	if len(e.t.merges) == 0 {
		for i := range len(w) {
			e.out = append(e.out, e.t.bytes[w[i]])
		}
		return
	}
	if known, ok := e.cache[w]; ok {
		e.out = append(e.out, known...)
		return
	}
	start := len(e.out)
	e.merge(w)
	if len(w) <= cachedWordLen && len(e.cache) < cachedWords {
		e.cache[w] = append([]uint32(nil), e.out[start:]...)
	}
}

// merge takes time n log n in the length of the word, which a hostile text may make as long as itself.
func (e *encoder) merge(w string) {
	e.symbols = e.symbols[:0]
	for i := range len(w) {
		e.symbols = append(e.symbols, symbol{id: e.t.bytes[w[i]], prev: i - 1, next: i + 1})
	}
	e.symbols[len(w)-1].next = -1
	for i := range len(w) {
		e.propose(i)
	}
	for c, ok := e.queue.pop(); ok; c, ok = e.queue.pop() {
		left := &e.symbols[c.at]
		if rank, ok := e.rank(c.at); !ok || rank != c.rank {
			continue // the neighbourhood has changed since
		}
		right := &e.symbols[left.next]
		right.gone = true
		left.id, left.next = e.t.merges[c.rank].id, right.next
		if left.next >= 0 {
			e.symbols[left.next].prev = c.at
		}
		e.propose(left.prev)
		e.propose(c.at)
	}
	for i := range e.symbols {
		if s := &e.symbols[i]; !s.gone {
			e.out = append(e.out, s.id)
		}
	}
}

// propose queues the merge of the symbol at a position with the next one, if there is such a merge.
func (e *encoder) propose(at int) {
	if rank, ok := e.rank(at); ok {
		e.queue.push(candidate{rank, at})
	}
}

func (e *encoder) rank(at int) (int, bool) {
	if at < 0 || e.symbols[at].gone || e.symbols[at].next < 0 {
		return 0, false
	}
	s := e.symbols[at]
	rank, ok := e.t.ranks[pair{s.id, e.symbols[s.next].id}]
	return rank, ok
}

// matcher finds added tokens in a text, indexed by their first byte, longest first.
type matcher map[byte][]addedToken

// each calls special for every added token in the text and plain for the non-empty text between them, in order. White
// space that a token takes belongs to neither, but another token may still be found in it, as in the reference.
func (m matcher) each(text string, special func(id uint32), plain func(text string)) {
	start := 0    // of the text that has not been passed on
	spaceEnd := 0 // of the last white space looked over, so that no text is looked over twice
	for i := 0; len(m) > 0 && i < len(text); {
		found, ok := m.at(text[i:])
		if !ok {
			i++
			continue
		}
		from, to := i, i+len(found.Content)
		i = to
		if found.SingleWord && !isolated(text, from, to) {
			continue
		}
		if found.LStrip && start < from {
			from = start + len(strings.TrimRightFunc(text[start:from], unicode.IsSpace))
		}
		if found.RStrip {
			if spaceEnd < to {
				spaceEnd = len(text) - len(strings.TrimLeftFunc(text[to:], unicode.IsSpace))
			}
			to = spaceEnd
		}
		if start < from {
			plain(text[start:from])
		}
		special(found.ID)
		start = to
	}
	if start < len(text) {
		plain(text[start:])
	}
}

// isolated reports whether there is no character of a word on either side of text[from:to].
func isolated(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !unicode.In(before, ofWords...) && !unicode.In(after, ofWords...)
}

func (m matcher) at(text string) (addedToken, bool) {
	for _, a := range m[text[0]] {
		if strings.HasPrefix(text, a.Content) {
			return a, true
		}
	}
	return addedToken{}, false
}

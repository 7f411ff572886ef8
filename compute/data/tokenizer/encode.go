package tokenizer

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/starling-network/starling/compute/data/tokenizer/bpe"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
	"github.com/starling-network/starling/compute/data/tokenizer/pretokenize"
)

// Encode returns the ids of a text: added tokens are found first, what lies between them is cut into words, and in each
// word the pair of tokens with the lowest rank is merged, the leftmost first, until no pair can be. Nothing is put
// before or after the text: EncodeText puts what the file asks for before it.
func (t *Tokenizer) Encode(text string) []uint32 {
	e := encoder{t: t, cache: map[string][]uint32{}, merger: bpe.NewMerger(&t.merges)}
	e.encode(text)
	return e.out
}

func (e *encoder) encode(text string) {
	t := e.t
	t.added[0].each(text, e.special, func(rest string, at int) {
		if t.parts != nil {
			rest = t.parts.normal.Apply(rest)
		}
		t.added[1].each(rest, e.special, func(rest string, from int) { e.plain(rest, at+from == 0) })
	})
}

// Encoder encodes one text after the other, and remembers the words that it has met. One goroutine uses it at a time.
type Encoder struct{ encoder }

// NewEncoder returns an Encoder of a tokenizer.
func NewEncoder(t *Tokenizer) *Encoder {
	return &Encoder{encoder{t: t, cache: map[string][]uint32{}, merger: bpe.NewMerger(&t.merges)}}
}

// handful is how many tokens of a text are held before they are passed on.
const handful = 1 << 14

// EncodeText passes on what Tokenizer.EncodeText returns, a part at a time: of a long text the tokens are never all in
// memory. A part is not to be kept. begins is false for the rest of a text after a place that Cuts gives.
func (e *Encoder) EncodeText(text string, begins bool, part func(ids []uint32)) {
	begin := e.t.Begin()
	e.out, e.full = e.out[:0], func(ids []uint32) {
		if begins && len(begin) > 0 && (len(ids) < len(begin) || !slices.Equal(ids[:len(begin)], begin)) {
			part(begin)
		}
		begins = false
		part(ids)
	}
	e.encode(text)
	e.full(e.out)
}

// Cuts returns the length of a part of a text, the longest, after which the rest can be encoded by itself, whatever
// follows the text; 0: there is none. It is nil if the tokenizer never knows one.
func Cuts(t *Tokenizer) func(text string) int {
	for _, a := range t.addedTokens {
		if a.LStrip || a.RStrip || a.SingleWord || strings.ContainsAny(a.Content, " \n") {
			return nil
		}
	}
	switch {
	case t.parts != nil:
	case t.pattern != pattern.Whole:
		return func(text string) int { return t.pattern.Cut(text, t.prefixSpace) }
	case len(t.merges.Merges())+len(t.addedTokens)+len(t.known) == 0:
		return func(text string) int { return max(0, len(text)-1) }
	}
	return nil
}

// Limits of the words that an encoder remembers.
const (
	cachedWords   = 1 << 16
	cachedWordLen = 64
)

// encoder is the state of one call of Encode, or of an Encoder.
type encoder struct {
	t      *Tokenizer
	out    []uint32
	cache  map[string][]uint32
	ids    []uint32 // of the characters of a word
	merger *bpe.Merger
	full   func(ids []uint32) // takes what was encoded; nil: it stays in out
}

// wordDone passes on what was encoded, if that is much.
func (e *encoder) wordDone() {
	if e.full != nil && len(e.out) >= handful {
		e.full(e.out)
		e.out = e.out[:0]
	}
}

func (e *encoder) special(id uint32) { e.out = append(e.out, id) }

// plain encodes text in which no added token occurs; first is that of the whole text.
func (e *encoder) plain(text string, first bool) {
	if e.t.parts != nil {
		e.t.parts.cut(e, pretokenize.Piece{Text: text, First: first})
		return
	}
	if e.t.prefixSpace && !strings.HasPrefix(text, " ") {
		text = " " + text
	}
	for len(text) > 0 {
		n := e.t.pattern.WordLen(text)
		e.word(text[:n])
		e.wordDone()
		text = text[n:]
	}
}

func (e *encoder) word(w string) {
	if id, ok := e.t.known[w]; ok {
		e.out = append(e.out, id)
		return
	}
	if len(e.t.merges.Merges()) == 0 {
		for i := range len(w) {
			e.out = append(e.out, e.t.bytes[w[i]])
			e.wordDone()
		}
		return
	}
	e.remember(w, func() {
		e.ids = e.ids[:0]
		for i := range len(w) {
			e.ids = append(e.ids, e.t.bytes[w[i]])
		}
		e.out = e.merger.Append(e.out, e.ids)
	})
}

// remember encodes a word, or gives the tokens that it had before.
func (e *encoder) remember(w string, encode func()) {
	if known, ok := e.cache[w]; ok {
		e.out = append(e.out, known...)
		return
	}
	start := len(e.out)
	encode()
	if len(w) <= cachedWordLen && len(e.cache) < cachedWords {
		// A copy of the word: the word itself would keep the text in memory that it is a part of.
		e.cache[strings.Clone(w)] = append([]uint32(nil), e.out[start:]...)
	}
}

// matcher finds added tokens in a text, the longest at each place: a tree of bytes.
type matcher struct {
	begins [256]bool    // the bytes with which a token begins
	next   map[edge]int // nodes; 0 is the root
	nodes  int
	at     map[int]addedToken // by the node where they end
}

type edge struct {
	from int
	b    byte
}

func (m *matcher) add(a addedToken) {
	if m.next == nil {
		m.next, m.at = map[edge]int{}, map[int]addedToken{}
	}
	if a.Content != "" {
		m.begins[a.Content[0]] = true
	}
	node := 0
	for i := range len(a.Content) {
		e := edge{node, a.Content[i]}
		next, ok := m.next[e]
		if !ok {
			m.nodes++
			next = m.nodes
			m.next[e] = next
		}
		node = next
	}
	if _, ok := m.at[node]; !ok {
		m.at[node] = a
	}
}

// longest is the longest token that a text begins with.
func (m *matcher) longest(text string) (found addedToken, ok bool) {
	node := 0
	for i := range len(text) {
		next, more := m.next[edge{node, text[i]}]
		if !more {
			break
		}
		node = next
		if a, ends := m.at[node]; ends {
			found, ok = a, true
		}
	}
	return found, ok
}

// each calls special for every added token in the text and plain for the non-empty text between them, in order. White
// space that a token takes belongs to neither, but another token may still be found in it, as in the reference.
func (m *matcher) each(text string, special func(id uint32), plain func(text string, at int)) {
	start := 0    // of the text that has not been passed on
	spaceEnd := 0 // of the last white space looked over, so that no text is looked over twice
	for i := 0; m.nodes > 0 && i < len(text); {
		if !m.begins[text[i]] {
			i++
			continue
		}
		found, ok := m.longest(text[i:])
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
			plain(text[start:from], start)
		}
		special(found.ID)
		start = to
	}
	if start < len(text) {
		plain(text[start:], start)
	}
}

// isolated reports whether there is no character of a word on either side of text[from:to].
func isolated(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !unicode.In(before, pattern.OfWords...) && !unicode.In(after, pattern.OfWords...)
}

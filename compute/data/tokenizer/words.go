package tokenizer

import (
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/starling-network/starling/compute/data/tokenizer/component"
	"github.com/starling-network/starling/compute/data/tokenizer/decode"
)

// words is a model of tokens other than byte-level BPE.
type words interface {
	// word appends the tokens of a word, which is not empty.
	word(e *encoder, w string)
}

const maxPiece = 128 // bytes of a token whose model looks for it at every place of a word

// lexicon is the vocabulary of such a model.
type lexicon struct {
	ids      map[string]uint32
	longest  int // bytes of a token
	unk      uint32
	hasUnk   bool
	fallback bool // a character that is no token is written as its bytes, if all are tokens
	bytes    [256]uint32
	hasByte  [256]bool
}

func (l *lexicon) enter(token string, id uint32) error {
	if _, ok := l.ids[token]; ok {
		return fmt.Errorf("%w: token %q occurs twice", ErrMalformed, token)
	}
	l.ids[token], l.longest = id, max(l.longest, len(token))
	if b, ok := decode.ByteOf(token); ok {
		l.bytes[b], l.hasByte[b] = id, true
	}
	return nil
}

func (l *lexicon) unknown(token *string) error {
	if token == nil {
		return nil
	}
	if l.unk, l.hasUnk = l.ids[*token]; !l.hasUnk {
		return fmt.Errorf("%w: unk_token %q is not in the vocabulary", ErrMalformed, *token)
	}
	return nil
}

// asBytes appends the tokens of the bytes of a character, or nothing if they are not all there.
func (l *lexicon) asBytes(out []uint32, character string) ([]uint32, bool) {
	for i := range len(character) {
		if !l.fallback || !l.hasByte[character[i]] {
			return out, false
		}
	}
	for i := range len(character) {
		out = append(out, l.bytes[character[i]])
	}
	return out, true
}

// characterBPE merges characters.
type characterBPE struct {
	lexicon
	fuse  bool // adjacent unknown characters are one token
	whole bool // a word that is a token is that token, whatever the merges say
}

func (t *Tokenizer) readCharacterBPE(raw json.RawMessage) error {
	var m model
	if err := component.Strict(raw, &m); err != nil {
		return err
	}
	if what := m.unsupported(); what != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, what)
	}
	c := &characterBPE{lexicon: lexicon{ids: map[string]uint32{}, fallback: m.ByteFallback}, fuse: m.FuseUnk,
		whole: m.IgnoreMerges}
	for _, token := range m.Vocab.keys() {
		if err := c.enter(token, m.Vocab[token]); err != nil {
			return err
		}
	}
	if err := c.unknown(m.UnkToken); err != nil {
		return err
	}
	t.parts.model, t.parts.kind, t.parts.lexicon = c, CharacterBPE, &c.lexicon
	return t.readMerges(&m)
}

func (c *characterBPE) word(e *encoder, w string) {
	if id, ok := c.ids[w]; ok && c.whole {
		e.out = append(e.out, id)
		return
	}
	ids, unknown := e.ids[:0], false
	for len(w) > 0 {
		_, n := utf8.DecodeRuneInString(w)
		character := w[:n]
		w = w[n:]
		id, ok := c.ids[character]
		if ok {
			if unknown {
				ids, unknown = append(ids, c.unk), false
			}
			ids = append(ids, id)
			continue
		}
		if ids, ok = c.asBytes(ids, character); ok || !c.hasUnk {
			continue
		}
		if unknown && !c.fuse {
			ids = append(ids, c.unk)
		}
		unknown = true
	}
	if unknown {
		ids = append(ids, c.unk)
	}
	e.ids = ids
	e.out = e.merger.Append(e.out, ids)
}

// unigram is the model of Kudo 2018: of all ways to write a word as tokens, that with the highest sum of scores.
type unigram struct {
	lexicon
	scores  []float64 // by id
	penalty float64   // the score of a character that is no token
}

// step is the best way to a place in a word.
type step struct {
	id    uint32
	score float64
	from  int // where the last token begins; -1: no way is known
}

type unigramFields struct {
	Type         string            `json:"type"`
	UnkID        *uint32           `json:"unk_id"`
	Vocab        []json.RawMessage `json:"vocab"`
	ByteFallback bool              `json:"byte_fallback"`
}

func (t *Tokenizer) readUnigram(raw json.RawMessage) error {
	var m unigramFields
	if err := component.Strict(raw, &m); err != nil {
		return err
	}
	u := &unigram{lexicon: lexicon{ids: map[string]uint32{}, fallback: m.ByteFallback}}
	least := math.Inf(1)
	for id, entry := range m.Vocab {
		var token string
		var score float64
		if err := json.Unmarshal(entry, &[]any{&token, &score}); err != nil || len(token) > maxPiece {
			return fmt.Errorf("%w: entry %d of the vocabulary is no token of at most %d bytes with its score", ErrMalformed, id,
				maxPiece)
		}
		if err := u.enter(token, uint32(id)); err != nil {
			return err
		}
		u.scores, least = append(u.scores, score), min(least, score)
	}
	if m.UnkID == nil || int(*m.UnkID) >= len(m.Vocab) {
		return fmt.Errorf("%w: a Unigram without unk_id", ErrUnsupported)
	}
	u.unk, u.hasUnk, u.penalty = *m.UnkID, true, least-10
	t.parts.model, t.parts.kind, t.parts.lexicon = u, UnigramModel, &u.lexicon
	return nil
}

func (u *unigram) word(e *encoder, w string) {
	best := make([]step, len(w)+1)
	for i := range best {
		best[i].from = -1
	}
	best[0].from = 0
	offer := func(to int, s step) {
		if best[to].from < 0 || s.score > best[to].score {
			best[to] = s
		}
	}
	for at := 0; at < len(w); {
		_, width := utf8.DecodeRuneInString(w[at:])
		single := false
		for to := at; to < len(w) && to-at < u.longest; {
			_, n := utf8.DecodeRuneInString(w[to:])
			to += n
			if id, ok := u.ids[w[at:to]]; ok {
				offer(to, step{id, u.scores[id] + best[at].score, at})
				single = single || to-at == width
			}
		}
		if !single {
			offer(at+width, step{u.unk, u.penalty + best[at].score, at})
		}
		at += width
	}
	type run struct {
		from, to int
		unknown  bool
	}
	var reversed []run // adjacent unknown ones are one
	for to := len(w); to > 0; to = best[to].from {
		s := best[to]
		if n := len(reversed); n > 0 && s.id == u.unk && reversed[n-1].unknown {
			reversed[n-1].from = s.from
		} else {
			reversed = append(reversed, run{s.from, to, s.id == u.unk})
		}
	}
	for i := len(reversed) - 1; i >= 0; i-- {
		text := w[reversed[i].from:reversed[i].to]
		if id, ok := u.ids[text]; ok {
			e.out = append(e.out, id)
		} else if e.out, ok = u.asBytes(e.out, text); !ok {
			e.out = append(e.out, u.unk)
		}
	}
}

// wordPiece takes the longest token that a word begins with, again and again.
type wordPiece struct {
	lexicon
	prefix string // of tokens that do not begin a word
	most   int    // characters of a word
}

type wordPieceFields struct {
	Type    string  `json:"type"`
	Unk     *string `json:"unk_token"`
	Prefix  *string `json:"continuing_subword_prefix"`
	MaxWord *int    `json:"max_input_chars_per_word"`
	Vocab   vocab   `json:"vocab"`
}

func (t *Tokenizer) readWordPiece(raw json.RawMessage) error {
	var m wordPieceFields
	if err := component.Strict(raw, &m); err != nil {
		return err
	}
	p := &wordPiece{lexicon: lexicon{ids: map[string]uint32{}}, prefix: "##", most: 100}
	if m.Prefix != nil {
		p.prefix = *m.Prefix
	}
	if m.MaxWord != nil {
		p.most = *m.MaxWord
	}
	if p.most > maxPiece || m.Unk == nil {
		return fmt.Errorf("%w: a WordPiece of words of %d characters, or without unk_token", ErrUnsupported, p.most)
	}
	for _, token := range m.Vocab.keys() {
		if err := p.enter(token, m.Vocab[token]); err != nil {
			return err
		}
	}
	t.parts.model, t.parts.kind, t.parts.lexicon = p, WordPiece, &p.lexicon
	return p.unknown(m.Unk)
}

func (p *wordPiece) word(e *encoder, w string) {
	if utf8.RuneCountInString(w) > p.most {
		e.out = append(e.out, p.unk)
		return
	}
	start := len(e.out)
	for at := 0; at < len(w); {
		prefix := ""
		if at > 0 {
			prefix = p.prefix
		}
		to := min(len(w), at+p.longest)
		for to < len(w) && !utf8.RuneStart(w[to]) {
			to--
		}
		id, ok := uint32(0), false
		for ; to > at; to -= last(w[at:to]) {
			if id, ok = p.ids[prefix+w[at:to]]; ok {
				break
			}
		}
		if !ok {
			e.out = append(e.out[:start], p.unk)
			return
		}
		e.out = append(e.out, id)
		at = to
	}
}

// last is the length of the last character of a text.
func last(text string) int {
	_, n := utf8.DecodeLastRuneInString(text)
	return n
}

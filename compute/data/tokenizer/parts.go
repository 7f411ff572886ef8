package tokenizer

import (
	"fmt"

	"github.com/starling-network/starling/compute/data/tokenizer/component"
	"github.com/starling-network/starling/compute/data/tokenizer/decode"
	"github.com/starling-network/starling/compute/data/tokenizer/normalize"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
	"github.com/starling-network/starling/compute/data/tokenizer/pretokenize"
)

// parts is what a tokenizer of others has besides, or instead of, byte-level BPE of GPT-2's or Llama 3's words: what is
// done to a text before it is cut, how it is cut, and what model makes tokens of a word.
type parts struct {
	normal  *normalize.Normalizer
	cuts    *pretokenize.PreTokenizer
	model   words    // nil: byte-level BPE
	kind    string   // of the model, as Vocabulary has it
	lexicon *lexicon // of the model
	decode  *decode.Decoder
	file    []byte // as it was read
}

// plain reports whether a file is of byte-level BPE of GPT-2's or Llama 3's words, which needs no parts.
func (f *file) plain(t *Tokenizer) (bool, error) {
	if !component.Absent(f.Normalizer) {
		return false, nil
	}
	if kind, err := component.TypeOf(f.Model); err == nil && kind != "BPE" {
		return false, nil
	}
	if kind, err := component.TypeOf(f.Decoder); err != nil || kind != "ByteLevel" {
		return false, err
	}
	if err := t.readPreTokenizer(f); err != nil { // it has other parts
		t.pattern, t.prefixSpace = pattern.Whole, false
		return false, nil
	}
	return true, nil
}

// readParts reads a file that is not plain.
func (t *Tokenizer) readParts(f *file, whole []byte) error {
	t.parts = &parts{file: whole}
	var err error
	if t.parts.normal, err = normalize.Read(f.Normalizer); err != nil {
		return err
	}
	if t.parts.cuts, err = pretokenize.Read(f.PreTokenizer); err != nil {
		return err
	}
	if t.parts.decode, err = decode.Read(f.Decoder, t.parts.cuts.ByteLevel); err != nil {
		return err
	}
	kind, err := component.TypeOf(f.Model)
	if err != nil {
		kind = "BPE" // older files do not say
	}
	switch {
	case kind == "BPE" && t.parts.cuts.ByteLevel:
		return t.readByteBPE(f)
	case kind == "BPE":
		err = t.readCharacterBPE(f.Model)
	case kind == "Unigram":
		err = t.readUnigram(f.Model)
	case kind == "WordPiece":
		err = t.readWordPiece(f.Model)
	default:
		return fmt.Errorf("%w: model %q is not BPE, Unigram or WordPiece", ErrUnsupported, kind)
	}
	if err != nil {
		return err
	}
	if t.parts.cuts.ByteLevel {
		return fmt.Errorf("%w: model %q after ByteLevel", ErrUnsupported, kind)
	}
	return t.placeLexicon(f)
}

// placeLexicon gives the ids of a vocabulary their texts.
func (t *Tokenizer) placeLexicon(f *file) error {
	isAdded := map[string]bool{}
	for _, a := range f.AddedTokens {
		isAdded[a.Content] = true
	}
	t.inModel = t.parts.lexicon.ids
	for _, token := range vocab(t.inModel).keys() {
		if isAdded[token] {
			continue // placed by readAdded
		}
		if token == "" {
			return fmt.Errorf("%w: an empty token", ErrMalformed)
		}
		text := t.parts.decode.Text(token)
		if err := t.place(t.inModel[token], text); err != nil {
			return err
		}
	}
	return nil
}

// readByteBPE reads byte-level BPE whose words are cut otherwise.
func (t *Tokenizer) readByteBPE(f *file) error {
	var m model
	if err := component.Strict(f.Model, &m); err != nil {
		return err
	}
	if what := m.unsupported(); what != "" {
		return fmt.Errorf("%w: %s", ErrUnsupported, what)
	}
	if err := t.readVocab(f, &m); err != nil {
		return err
	}
	return t.readMerges(&m)
}

// cut cuts a text and encodes its words.
func (p *parts) cut(e *encoder, text pretokenize.Piece) {
	p.cuts.Cut(text, func(w string) {
		defer e.wordDone()
		if p.model == nil {
			e.word(w)
			return
		}
		e.remember(w, func() { p.model.word(e, w) })
	})
}

package tokenizer

import "fmt"

// parts is what a tokenizer of others has besides, or instead of, byte-level BPE of GPT-2's or Llama 3's words: what is
// done to a text before it is cut, how it is cut, and what model makes tokens of a word.
type parts struct {
	normal    []normalizer
	cuts      []cutter
	names     []string // of normalizers and cuts, for other file formats; "": it cuts nothing
	prefix    bool     // a text gets a space before it
	model     words    // nil: byte-level BPE
	kind      string   // of the model, as Vocabulary has it
	lexicon   *lexicon // of the model
	byteLevel bool
	decode    decoding
	file      []byte // as it was read
}

// plain reports whether a file is of byte-level BPE of GPT-2's or Llama 3's words, which needs no parts.
func (f *file) plain(t *Tokenizer) (bool, error) {
	if !absent(f.Normalizer) {
		return false, nil
	}
	if kind, err := typeOf(f.Model); err == nil && kind != "BPE" {
		return false, nil
	}
	if kind, err := typeOf(f.Decoder); err != nil || kind != "ByteLevel" {
		return false, err
	}
	if err := t.readPreTokenizer(f); err != nil { // it has other parts
		t.pattern, t.prefixSpace = whole, false
		return false, nil
	}
	return true, nil
}

// readParts reads a file that is not plain.
func (t *Tokenizer) readParts(f *file, whole []byte) error {
	t.parts = &parts{file: whole}
	if err := t.parts.readNormalizers(f.Normalizer); err != nil {
		return err
	}
	if err := t.parts.readCutters(f.PreTokenizer); err != nil {
		return err
	}
	if err := t.parts.readDecoding(f.Decoder); err != nil {
		return err
	}
	kind, err := typeOf(f.Model)
	if err != nil {
		kind = "BPE" // older files do not say
	}
	switch {
	case kind == "BPE" && t.parts.byteLevel:
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
	if t.parts.byteLevel {
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
		text := t.parts.decode.text(token)
		if err := t.place(t.inModel[token], text); err != nil {
			return err
		}
	}
	return nil
}

// readByteBPE reads byte-level BPE whose words are cut otherwise.
func (t *Tokenizer) readByteBPE(f *file) error {
	var m model
	if err := strict(f.Model, &m); err != nil {
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

// normalize is what the model sees of a text between added tokens.
func (p *parts) normalize(text string) string {
	for _, do := range p.normal {
		text = do(text)
	}
	return text
}

// cut cuts a text by the parts from i on and encodes its words.
func (p *parts) cut(e *encoder, i int, at piece) {
	switch {
	case at.text == "":
	case i < len(p.cuts):
		p.cuts[i](at, func(next piece) { p.cut(e, i+1, next) })
	case p.model == nil:
		e.word(at.text)
	default:
		e.remember(at.text, func() { p.model.word(e, at.text) })
	}
}

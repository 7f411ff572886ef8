package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/data/tokenizer/bpe"
	"github.com/starling-network/starling/compute/data/tokenizer/component"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
)

// Limits of a tokenizer.json, which comes from a stranger.
const (
	MaxJSON     = 64 << 20 // bytes
	MaxVocab    = 1 << 20  // ids
	MaxAdded    = 1 << 14  // added tokens
	MaxAddedLen = 256      // bytes of the content of an added token
)

// Errors of Parse, to be tested with errors.Is.
var (
	ErrMalformed   = component.ErrMalformed   // bytes that are not a consistent tokenizer.json
	ErrUnsupported = component.ErrUnsupported // a part that is not known here
)

// file is a tokenizer.json. A field that is not here makes Parse fail: reading on would give a tokenizer that differs
// from the one of the file.
type file struct {
	Version       string          `json:"version"`
	Truncation    json.RawMessage `json:"truncation"`
	Padding       json.RawMessage `json:"padding"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor json.RawMessage `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         json.RawMessage `json:"model"`
}

type addedToken struct {
	ID         uint32 `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	LStrip     bool   `json:"lstrip"`
	RStrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"` // left out by readers who ask for that; Decode keeps it

	inVocab bool // in the model's vocabulary too
}

type model struct {
	Type                    string          `json:"type"`
	Dropout                 json.RawMessage `json:"dropout"`
	UnkToken                *string         `json:"unk_token"` // never needed: every byte has an id
	ContinuingSubwordPrefix *string         `json:"continuing_subword_prefix"`
	EndOfWordSuffix         *string         `json:"end_of_word_suffix"`
	FuseUnk                 bool            `json:"fuse_unk"`
	ByteFallback            bool            `json:"byte_fallback"`
	IgnoreMerges            bool            `json:"ignore_merges"`
	Vocab                   vocab           `json:"vocab"`
	Merges                  []mergeText     `json:"merges"`
}

// Parse reads a tokenizer.json of Hugging Face tokenizers: BPE over bytes or over characters with a fallback to bytes,
// Unigram and WordPiece, with the normalizers, pre-tokenizers and decoders that the files of published models have, any
// added tokens, and a post-processor that only adds special tokens, which Encode leaves out. Errors wrap ErrMalformed
// or ErrUnsupported.
func Parse(tokenizerJSON []byte) (*Tokenizer, error) {
	if len(tokenizerJSON) > MaxJSON {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrMalformed, len(tokenizerJSON), MaxJSON)
	}
	var f file
	if err := component.Strict(tokenizerJSON, &f); err != nil {
		return nil, err
	}
	if !component.Absent(f.Truncation) || !component.Absent(f.Padding) {
		return nil, fmt.Errorf("%w: truncation or padding is not null", ErrUnsupported)
	}
	t := &Tokenizer{}
	plain, err := f.plain(t)
	switch {
	case err != nil:
		return nil, err
	case plain:
		if err = t.readDecoder(&f); err == nil {
			err = t.readByteBPE(&f)
		}
	default:
		err = t.readParts(&f, bytes.Clone(tokenizerJSON))
	}
	if err != nil {
		return nil, err
	}
	if err := t.readPostProcessor(&f); err != nil {
		return nil, err
	}
	return t, t.readAdded(&f)
}

// unsupported names the first thing in a BPE that this package would get wrong, or is empty.
func (m *model) unsupported() string {
	switch {
	case m.Type != "BPE" && m.Type != "":
		return fmt.Sprintf("model %q is not BPE", m.Type)
	case !component.Absent(m.Dropout):
		return "model.dropout is not null"
	case m.ContinuingSubwordPrefix != nil && *m.ContinuingSubwordPrefix != "":
		return "model.continuing_subword_prefix is set"
	case m.EndOfWordSuffix != nil && *m.EndOfWordSuffix != "":
		return "model.end_of_word_suffix is set"
	}
	return ""
}

// readVocab fills pieces and bytes. A key that is not written in byte symbols can only be an added token.
func (t *Tokenizer) readVocab(f *file, m *model) error {
	isAdded := map[string]bool{}
	for _, a := range f.AddedTokens {
		isAdded[a.Content] = true
	}
	if m.IgnoreMerges {
		t.known = make(map[string]uint32, len(m.Vocab))
	}
	t.inModel = m.Vocab
	seen := 0
	for _, symbols := range m.Vocab.keys() {
		id := m.Vocab[symbols]
		piece, ok := fromSymbols(symbols)
		if ok && t.known != nil {
			t.known[piece] = id
		}
		if isAdded[symbols] {
			if ok && piece != symbols {
				return fmt.Errorf("%w: added token %q reads as %q in the vocabulary", ErrUnsupported, symbols, piece)
			}
			continue // placed by readAdded
		}
		if !ok || piece == "" {
			return fmt.Errorf("%w: vocabulary entry %q is not made of byte symbols", ErrMalformed, symbols)
		}
		if err := t.place(id, piece); err != nil {
			return err
		}
		if len(piece) == 1 {
			t.bytes[piece[0]] = id
			seen++
		}
	}
	if seen != 256 {
		return fmt.Errorf("%w: the vocabulary has %d of the 256 bytes", ErrUnsupported, seen)
	}
	return nil
}

// place gives an id its bytes.
func (t *Tokenizer) place(id uint32, piece string) error {
	if id >= MaxVocab {
		return fmt.Errorf("%w: id %d of %q, at most %d", ErrMalformed, id, piece, MaxVocab-1)
	}
	if n := int(id) + 1; n > len(t.pieces) {
		t.pieces = append(t.pieces, make([]string, n-len(t.pieces))...)
	}
	if t.pieces[id] != "" {
		return fmt.Errorf("%w: id %d is used twice", ErrMalformed, id)
	}
	t.pieces[id] = piece
	return nil
}

func (t *Tokenizer) readMerges(file *model) error {
	for _, m := range file.Merges {
		left, okLeft := file.Vocab[m.left]
		right, okRight := file.Vocab[m.right]
		joined, okJoined := file.Vocab[m.left+m.right]
		if !okLeft || !okRight || !okJoined {
			return fmt.Errorf("%w: merge %q %q: a part or the whole is not in the vocabulary", ErrMalformed, m.left, m.right)
		}
		if !t.merges.Add(bpe.Merge{Pair: bpe.Pair{Left: left, Right: right}, ID: joined}) {
			return fmt.Errorf("%w: merge %q %q occurs twice", ErrMalformed, m.left, m.right)
		}
	}
	return nil
}

// readAdded enters the added tokens. The reference numbers those that are not in the vocabulary itself, whatever the
// file says; a file that says something else is refused.
func (t *Tokenizer) readAdded(f *file) error {
	if len(f.AddedTokens) > MaxAdded {
		return fmt.Errorf("%w: %d added tokens, at most %d", ErrMalformed, len(f.AddedTokens), MaxAdded)
	}
	next := uint32(len(t.inModel))
	for _, a := range f.AddedTokens {
		if a.Content == "" || len(a.Content) > MaxAddedLen {
			return fmt.Errorf("%w: added token %d has %d bytes, need 1 to %d", ErrMalformed, a.ID, len(a.Content), MaxAddedLen)
		}
		id, ok := t.inModel[a.Content]
		switch {
		case ok && id != a.ID:
			return fmt.Errorf("%w: added token %q is %d, but %d in the vocabulary", ErrMalformed, a.Content, a.ID, id)
		case !ok && a.ID != next:
			return fmt.Errorf("%w: added token %q is %d, but %d in Hugging Face tokenizers", ErrUnsupported, a.Content, a.ID,
				next)
		}
		a.inVocab = ok
		next = max(next, a.ID+1)
		if err := t.add(a); err != nil {
			return err
		}
	}
	slices.SortFunc(t.addedTokens, func(a, b addedToken) int { return cmp.Compare(a.ID, b.ID) })
	t.inModel = nil
	return nil
}

// add enters one added token.
func (t *Tokenizer) add(a addedToken) error {
	if _, ok := t.ids[a.Content]; ok {
		return fmt.Errorf("%w: added token %q occurs twice", ErrMalformed, a.Content)
	}
	if err := t.place(a.ID, a.Content); err != nil {
		return err
	}
	if t.ids == nil {
		t.ids = map[string]uint32{}
	}
	t.ids[a.Content] = a.ID
	t.addedTokens = append(t.addedTokens, a)
	turn := 0 // the reference looks for tokens to be matched in normalized text after all others
	if a.Normalized {
		turn = 1
		if t.parts != nil {
			a.Content = t.parts.normal.Apply(a.Content)
		}
	}
	if a.Content != "" {
		t.added[turn].add(a)
	}
	return nil
}

// JSON returns a tokenizer.json that Parse and Hugging Face tokenizers read. The same tokenizer has the same bytes.
func (t *Tokenizer) JSON() []byte {
	var out bytes.Buffer
	if t.parts != nil { // as it was read
		if err := json.Indent(&out, bytes.TrimSpace(t.parts.file), "", "  "); err != nil {
			panic(fmt.Sprintf("tokenizer: a file that was read is not JSON: %v", err))
		}
		return append(out.Bytes(), '\n')
	}
	f := file{
		Version:       "1.0",
		AddedTokens:   append([]addedToken{}, t.addedTokens...),
		PreTokenizer:  encode(t.preTokenizer()),
		PostProcessor: t.after,
		Decoder:       encode(byteLevel(true, t.pattern == pattern.GPT2)),
	}
	m := model{Type: "BPE", IgnoreMerges: t.known != nil, Vocab: vocab{}, Merges: make([]mergeText,
		len(t.merges.Merges()))}
	for id, piece := range t.pieces {
		if added, ok := t.ids[piece]; piece != "" && !(ok && added == uint32(id)) {
			m.Vocab[toSymbols(piece)] = uint32(id)
		}
	}
	for _, a := range t.addedTokens {
		if a.inVocab {
			m.Vocab[a.Content] = a.ID
		}
	}
	for rank, one := range t.merges.Merges() {
		m.Merges[rank] = mergeText{toSymbols(t.pieces[one.Left]), toSymbols(t.pieces[one.Right])}
	}
	f.Model = encode(m)
	if err := json.Indent(&out, encode(f), "", "  "); err != nil {
		panic(fmt.Sprintf("tokenizer: own JSON is not JSON: %v", err))
	}
	return out.Bytes()
}

// encode returns the JSON of a value, which characters of HTML do not make longer, and a new line.
func encode(value any) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(fmt.Sprintf("tokenizer: a plain value failed to encode: %v", err))
	}
	return out.Bytes()
}

// vocab maps symbols to ids. It is read and written in the order of the ids.
type vocab map[string]uint32

func (v vocab) keys() []string {
	return slices.SortedFunc(maps.Keys(v), func(a, b string) int {
		return cmp.Or(cmp.Compare(v[a], v[b]), strings.Compare(a, b))
	})
}

// MarshalJSON implements json.Marshaler.
func (v vocab) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i, k := range v.keys() {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(encode(k))
		fmt.Fprintf(&out, ":%d", v[k])
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// mergeText is a merge in symbols: in a file, "left right" (older) or ["left", "right"]. It is written in the older
// form, which every reader knows.
type mergeText struct{ left, right string }

// UnmarshalJSON implements json.Unmarshaler.
func (m *mergeText) UnmarshalJSON(data []byte) error {
	var parts []string
	if len(data) > 0 && data[0] == '"' {
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		parts = strings.Split(s, " ")
	} else if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return fmt.Errorf("merge %s does not have two parts", data)
	}
	m.left, m.right = parts[0], parts[1]
	return nil
}

// MarshalJSON implements json.Marshaler.
func (m mergeText) MarshalJSON() ([]byte, error) {
	return encode(m.left + " " + m.right), nil
}

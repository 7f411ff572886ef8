package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// component is a pre-tokenizer or the decoder of a tokenizer.json. A field that its type does not have stays nil.
type component struct {
	Type           string       `json:"type"`
	Pattern        *textPattern `json:"pattern,omitempty"`
	Behavior       string       `json:"behavior,omitempty"`
	Invert         *bool        `json:"invert,omitempty"`
	PreTokenizers  []component  `json:"pretokenizers,omitempty"`
	AddPrefixSpace *bool        `json:"add_prefix_space,omitempty"`
	TrimOffsets    *bool        `json:"trim_offsets,omitempty"` // offsets are not computed here
	UseRegex       *bool        `json:"use_regex,omitempty"`    // absent: true
}

type textPattern struct {
	Regex  *string `json:"Regex,omitempty"`
	String *string `json:"String,omitempty"`
}

// typeOf returns the type of a component, "" for none. A component of another type may have any fields, so that the
// type is what an error is about.
func typeOf(raw json.RawMessage) (string, error) {
	if absent(raw) {
		return "", nil
	}
	var c struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return "", fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if c.Type == "" {
		return "", fmt.Errorf("%w: %.40s has no type", ErrMalformed, raw)
	}
	return c.Type, nil
}

func absent(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

// strict reads all of data, which may have no fields that into does not have.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("%w: more follows the object", ErrMalformed)
	}
	return nil
}

// readPreTokenizer knows two: ByteLevel, and a Split by Llama 3's pattern before a ByteLevel that cuts nothing.
func (t *Tokenizer) readPreTokenizer(f *file) error {
	kind, err := typeOf(f.PreTokenizer)
	if err != nil {
		return err
	}
	if kind != "ByteLevel" && kind != "Sequence" {
		return fmt.Errorf("%w: pre_tokenizer %q is not ByteLevel, or a Sequence of Split and ByteLevel", ErrUnsupported, kind)
	}
	var c component
	if err := strict(f.PreTokenizer, &c); err != nil {
		return err
	}
	if kind == "ByteLevel" {
		if t.prefixSpace = isTrue(c.AddPrefixSpace, false); isTrue(c.UseRegex, true) {
			t.pattern = gpt2
		}
		return nil
	}
	t.pattern = llama3
	return c.checkLlama3()
}

// checkLlama3 makes sure that a Sequence does no more than llama3Len.
func (c *component) checkLlama3() error {
	if len(c.PreTokenizers) != 2 {
		return fmt.Errorf("%w: a pre_tokenizer of %d parts: need Split and ByteLevel", ErrUnsupported, len(c.PreTokenizers))
	}
	split, level := &c.PreTokenizers[0], &c.PreTokenizers[1]
	switch {
	case split.Type != "Split" || level.Type != "ByteLevel":
		return fmt.Errorf("%w: pre_tokenizer %.32q and %.32q: need Split and ByteLevel", ErrUnsupported, split.Type,
			level.Type)
	case split.Pattern == nil || split.Pattern.Regex == nil || *split.Pattern.Regex != llama3Pattern:
		return fmt.Errorf("%w: the pattern of Split is not that of Llama 3", ErrUnsupported)
	case split.Behavior != "Isolated" || isTrue(split.Invert, false):
		return fmt.Errorf("%w: Split is inverted, or not Isolated", ErrUnsupported)
	case isTrue(level.UseRegex, true) || isTrue(level.AddPrefixSpace, false):
		return fmt.Errorf("%w: ByteLevel after Split has use_regex or add_prefix_space", ErrUnsupported)
	}
	return nil
}

// preTokenizer is what readPreTokenizer reads.
func (t *Tokenizer) preTokenizer() component {
	level := byteLevel(t.prefixSpace, t.pattern == gpt2)
	if t.pattern != llama3 {
		return level
	}
	regex, invert := llama3Pattern, false
	split := component{Type: "Split", Pattern: &textPattern{Regex: &regex}, Behavior: "Isolated", Invert: &invert}
	return component{Type: "Sequence", PreTokenizers: []component{split, level}}
}

func byteLevel(addPrefixSpace, useRegex bool) component {
	trimOffsets := true
	return component{Type: "ByteLevel", AddPrefixSpace: &addPrefixSpace, TrimOffsets: &trimOffsets, UseRegex: &useRegex}
}

func isTrue(flag *bool, fallback bool) bool {
	if flag == nil {
		return fallback
	}
	return *flag
}

// readDecoder knows one, whose options change nothing.
func (t *Tokenizer) readDecoder(f *file) error {
	kind, err := typeOf(f.Decoder)
	if err != nil {
		return err
	}
	if kind != "ByteLevel" {
		return fmt.Errorf("%w: decoder %q is not ByteLevel", ErrUnsupported, kind)
	}
	return strict(f.Decoder, &component{})
}

// postProcessor is ByteLevel, which moves offsets; TemplateProcessing, which puts special tokens around the text for
// those who ask for them, and Encode does not; or a Sequence of them.
type postProcessor struct {
	component
	Processors    []json.RawMessage `json:"processors"`
	Single        []templatePiece   `json:"single"`
	Pair          json.RawMessage   `json:"pair"`
	SpecialTokens json.RawMessage   `json:"special_tokens"`
	Sep           []any             `json:"sep"` // of a content and its id
	Cls           []any             `json:"cls"`
}

type templatePiece struct {
	Sequence     *templateRef `json:"Sequence"`
	SpecialToken *templateRef `json:"SpecialToken"`
}

type templateRef struct {
	ID     string `json:"id"`
	TypeID uint32 `json:"type_id"`
}

func (t *Tokenizer) readPostProcessor(f *file) error {
	if absent(f.PostProcessor) {
		return nil
	}
	t.after = f.PostProcessor
	return t.readProcessor(f.PostProcessor, true)
}

// readProcessor refuses what would change the ids of the text itself.
func (t *Tokenizer) readProcessor(raw json.RawMessage, top bool) error {
	kind, err := typeOf(raw)
	if err != nil {
		return err
	}
	var p postProcessor
	switch kind {
	case "ByteLevel", "TemplateProcessing", "Sequence", "BertProcessing", "RobertaProcessing":
		if err := strict(raw, &p); err != nil {
			return err
		}
	}
	switch {
	case kind == "ByteLevel":
		return nil
	case kind == "BertProcessing", kind == "RobertaProcessing":
		content, ok := "", len(p.Cls) == 2
		if ok {
			content, ok = p.Cls[0].(string)
		}
		if !ok {
			return fmt.Errorf("%w: post_processor %q without cls", ErrMalformed, kind)
		}
		t.begin = append(t.begin, content)
		return nil
	case kind == "TemplateProcessing":
		return t.readTemplate(p.Single)
	case kind == "Sequence" && top:
		for _, part := range p.Processors {
			if err := t.readProcessor(part, false); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%w: post_processor %q is not known", ErrUnsupported, kind)
}

// readTemplate makes sure that the text occurs in a template once.
func (t *Tokenizer) readTemplate(single []templatePiece) error {
	texts := 0
	for _, piece := range single {
		switch {
		case piece.Sequence != nil && piece.SpecialToken == nil && piece.Sequence.ID == "A":
			texts++
		case piece.SpecialToken != nil && piece.Sequence == nil && texts == 0:
			t.begin = append(t.begin, piece.SpecialToken.ID)
		case piece.SpecialToken == nil || piece.Sequence != nil:
			return fmt.Errorf("%w: a template of something other than special tokens and A", ErrMalformed)
		}
	}
	if texts != 1 {
		return fmt.Errorf("%w: a template with the text %d times", ErrUnsupported, texts)
	}
	return nil
}

package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/starling-network/starling/compute/data/tokenizer/component"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
)

// readPreTokenizer knows two: ByteLevel, and a Split by Llama 3's pattern before a ByteLevel that cuts nothing.
func (t *Tokenizer) readPreTokenizer(f *file) error {
	kind, err := component.TypeOf(f.PreTokenizer)
	if err != nil {
		return err
	}
	if kind != "ByteLevel" && kind != "Sequence" {
		return fmt.Errorf("%w: pre_tokenizer %q is not ByteLevel, or a Sequence of Split and ByteLevel", ErrUnsupported, kind)
	}
	var c component.Component
	if err := component.Strict(f.PreTokenizer, &c); err != nil {
		return err
	}
	if kind == "ByteLevel" {
		if t.prefixSpace = component.IsTrue(c.AddPrefixSpace, false); component.IsTrue(c.UseRegex, true) {
			t.pattern = pattern.GPT2
		}
		return nil
	}
	t.pattern = pattern.Llama3
	return checkLlama3(&c)
}

// checkLlama3 makes sure that a Sequence does no more than the pattern of Llama 3.
func checkLlama3(c *component.Component) error {
	if len(c.PreTokenizers) != 2 {
		return fmt.Errorf("%w: a pre_tokenizer of %d parts: need Split and ByteLevel", ErrUnsupported, len(c.PreTokenizers))
	}
	split, level := &c.PreTokenizers[0], &c.PreTokenizers[1]
	switch {
	case split.Type != "Split" || level.Type != "ByteLevel":
		return fmt.Errorf("%w: pre_tokenizer %.32q and %.32q: need Split and ByteLevel", ErrUnsupported, split.Type,
			level.Type)
	case split.Pattern == nil || split.Pattern.Regex == nil || *split.Pattern.Regex != pattern.SourceLlama3:
		return fmt.Errorf("%w: the pattern of Split is not that of Llama 3", ErrUnsupported)
	case split.Behavior != "Isolated" || component.IsTrue(split.Invert, false):
		return fmt.Errorf("%w: Split is inverted, or not Isolated", ErrUnsupported)
	case component.IsTrue(level.UseRegex, true) || component.IsTrue(level.AddPrefixSpace, false):
		return fmt.Errorf("%w: ByteLevel after Split has use_regex or add_prefix_space", ErrUnsupported)
	}
	return nil
}

// preTokenizer is what readPreTokenizer reads.
func (t *Tokenizer) preTokenizer() component.Component {
	level := byteLevel(t.prefixSpace, t.pattern == pattern.GPT2)
	if t.pattern != pattern.Llama3 {
		return level
	}
	regex, invert := pattern.SourceLlama3, false
	split := component.Component{Type: "Split", Pattern: &component.TextPattern{Regex: &regex}, Behavior: "Isolated",
		Invert: &invert}
	return component.Component{Type: "Sequence", PreTokenizers: []component.Component{split, level}}
}

func byteLevel(addPrefixSpace, useRegex bool) component.Component {
	trimOffsets := true
	return component.Component{Type: "ByteLevel", AddPrefixSpace: &addPrefixSpace, TrimOffsets: &trimOffsets,
		UseRegex: &useRegex}
}

// readDecoder knows one, whose options change nothing.
func (t *Tokenizer) readDecoder(f *file) error {
	kind, err := component.TypeOf(f.Decoder)
	if err != nil {
		return err
	}
	if kind != "ByteLevel" {
		return fmt.Errorf("%w: decoder %q is not ByteLevel", ErrUnsupported, kind)
	}
	return component.Strict(f.Decoder, &component.Component{})
}

// postProcessor is ByteLevel, which moves offsets; TemplateProcessing, which puts special tokens around the text for
// those who ask for them, and Encode does not; or a Sequence of them.
type postProcessor struct {
	component.Component
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
	if component.Absent(f.PostProcessor) {
		return nil
	}
	t.after = f.PostProcessor
	return t.readProcessor(f.PostProcessor, true)
}

// readProcessor refuses what would change the ids of the text itself.
func (t *Tokenizer) readProcessor(raw json.RawMessage, top bool) error {
	kind, err := component.TypeOf(raw)
	if err != nil {
		return err
	}
	var p postProcessor
	switch kind {
	case "ByteLevel", "TemplateProcessing", "Sequence", "BertProcessing", "RobertaProcessing":
		if err := component.Strict(raw, &p); err != nil {
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

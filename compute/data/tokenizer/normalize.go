package tokenizer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// normalizer changes text before it is cut.
type normalizer func(text string) string

// Limits of what a file may ask for.
const (
	maxParts  = 16 // normalizers, and parts of a pre-tokenizer or decoder
	maxGrowth = 32 // how many times as long replacements may make a text
)

// rawParts are the components that a Sequence lists, or the component itself.
func rawParts(raw json.RawMessage, key string) ([]json.RawMessage, error) {
	kind, err := typeOf(raw)
	if err != nil || kind == "" {
		return nil, err
	}
	if kind != "Sequence" {
		return []json.RawMessage{raw}, nil
	}
	var s map[string]json.RawMessage
	var list, out []json.RawMessage
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if err := json.Unmarshal(s[key], &list); err != nil {
		return nil, fmt.Errorf("%w: a Sequence without %s", ErrMalformed, key)
	}
	for _, one := range list {
		inner, err := rawParts(one, key)
		if err != nil {
			return nil, err
		}
		if out = append(out, inner...); len(out) > maxParts {
			return nil, fmt.Errorf("%w: a Sequence of more than %d parts", ErrUnsupported, maxParts)
		}
	}
	return out, nil
}

// normalizerFields are what the types of normalizers have.
type normalizerFields struct {
	Type         string       `json:"type"`
	Prepend      string       `json:"prepend"`
	Pattern      *textPattern `json:"pattern"`
	Content      string       `json:"content"`
	StripLeft    bool         `json:"strip_left"`
	StripRight   bool         `json:"strip_right"`
	CleanText    bool         `json:"clean_text"`
	Chinese      bool         `json:"handle_chinese_chars"`
	StripAccents *bool        `json:"strip_accents"`
	Lowercase    bool         `json:"lowercase"`
}

// readNormalizers reads what is done to text between added tokens.
func (p *parts) readNormalizers(raw json.RawMessage) error {
	list, err := rawParts(raw, "normalizers")
	if err != nil {
		return err
	}
	growth := 1
	for _, one := range list {
		var n normalizerFields
		if err := strict(one, &n); err != nil {
			kind, _ := typeOf(one)
			return fmt.Errorf("%w: normalizer %q: %w", ErrUnsupported, kind, err)
		}
		do, times, err := n.build()
		if err != nil {
			return err
		}
		if growth *= times; growth > maxGrowth {
			return fmt.Errorf("%w: normalizers that make a text more than %d times as long", ErrUnsupported, maxGrowth)
		}
		p.normal = append(p.normal, do)
		switch spaces := n.Type == "Replace" && n.Pattern.String != nil && *n.Pattern.String == " "; {
		case n.Type == "Prepend":
			p.prefix = true
		case n.Type != "NFC" && !spaces: // which other formats leave out, or do themselves
			p.names = append(p.names, n.Type)
		}
	}
	return nil
}

// build returns the normalizer, and how many times as long it may make a text.
func (n *normalizerFields) build() (do normalizer, growth int, err error) {
	switch n.Type {
	case "NFC":
		return norm.NFC.String, 1, nil
	case "NFD":
		return norm.NFD.String, 1, nil
	case "NFKC":
		return norm.NFKC.String, 1, nil
	case "NFKD":
		return norm.NFKD.String, 1, nil
	case "Lowercase":
		return lower, 1, nil
	case "StripAccents":
		return func(s string) string { return without(s, unicode.M) }, 1, nil
	case "Strip":
		return n.strip, 1, nil
	case "Prepend":
		return func(s string) string {
			if s == "" {
				return s
			}
			return n.Prepend + s
		}, 1, nil
	case "Replace":
		return n.replace()
	case "BertNormalizer":
		return n.bert, 1, nil
	}
	return nil, 0, fmt.Errorf("%w: normalizer %q is not known", ErrUnsupported, n.Type)
}

func (n *normalizerFields) strip(s string) string {
	if n.StripLeft {
		s = strings.TrimLeftFunc(s, unicode.IsSpace)
	}
	if n.StripRight {
		s = strings.TrimRightFunc(s, unicode.IsSpace)
	}
	return s
}

func (n *normalizerFields) replace() (normalizer, int, error) {
	switch {
	case n.Pattern == nil:
	case n.Pattern.String != nil && *n.Pattern.String != "":
		from := *n.Pattern.String
		growth := max(1, (len(n.Content)+len(from)-1)/len(from))
		return func(s string) string { return strings.ReplaceAll(s, from, n.Content) }, growth, nil
	case n.Pattern.Regex != nil:
		re, err := translate(*n.Pattern.Regex)
		if err != nil {
			return nil, 0, err
		}
		compiled, err := compile(re)
		if err != nil {
			return nil, 0, err
		}
		return func(s string) string { return replaceAll(compiled, s, n.Content) }, max(1, len(n.Content)), nil
	}
	return nil, 0, fmt.Errorf("%w: a Replace without a pattern", ErrMalformed)
}

func replaceAll(re *regexp.Regexp, s, with string) string { return re.ReplaceAllLiteralString(s, with) }

// bert is BertNormalizer: in this order, control characters are dropped, Chinese characters stand alone, accents and
// capitals go.
func (n *normalizerFields) bert(s string) string {
	if n.CleanText {
		s = strings.Map(clean, s)
	}
	if n.Chinese {
		s = spaceChinese(s)
	}
	accents := n.Lowercase
	if n.StripAccents != nil {
		accents = *n.StripAccents
	}
	if accents {
		s = without(norm.NFD.String(s), unicode.Mn)
	}
	if n.Lowercase {
		s = lower(s)
	}
	return s
}

// clean makes white space a space, and drops control characters, also those of no category.
func clean(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case r == 0 || r == unicode.ReplacementChar || unicode.In(r, unicode.C), !unicode.In(r, assigned...):
		return -1
	}
	return r
}

var assigned = []*unicode.RangeTable{
	unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, letters16, numbers16, marks16,
}

func without(s string, table *unicode.RangeTable) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(table, r) {
			return -1
		}
		return r
	}, s)
}

// lower is the lower case of each character by itself, in full.
func lower(s string) string {
	return strings.ReplaceAll(strings.Map(func(r rune) rune {
		if r == dottedI {
			return r
		}
		return unicode.ToLower(r)
	}, s), string(dottedI), "i\u0307")
}

// dottedI is the one letter whose lower case is two characters.
const dottedI = '\u0130'

var chinese = &unicode.RangeTable{
	R16: []unicode.Range16{{0x3400, 0x4dbf, 1}, {0x4e00, 0x9fff, 1}, {0xf900, 0xfaff, 1}},
	R32: []unicode.Range32{
		{0x20000, 0x2a6df, 1}, {0x2a700, 0x2b73f, 1}, {0x2b740, 0x2b81f, 1}, {0x2b920, 0x2ceaf, 1}, {0x2f800, 0x2fa1f, 1},
	},
}

func spaceChinese(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.Is(chinese, r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

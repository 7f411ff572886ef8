// Package normalize changes text before it is cut into words, as the normalizers of published tokenizers do.
package normalize

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/starling-network/starling/compute/data/tokenizer/component"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
)

// normalizer changes text before it is cut.
type normalizer func(text string) string

// maxGrowth is how many times as long replacements may make a text.
const maxGrowth = 32

// normalizerFields are what the types of normalizers have.
type normalizerFields struct {
	Type         string                 `json:"type"`
	Prepend      string                 `json:"prepend"`
	Pattern      *component.TextPattern `json:"pattern"`
	Content      string                 `json:"content"`
	StripLeft    bool                   `json:"strip_left"`
	StripRight   bool                   `json:"strip_right"`
	CleanText    bool                   `json:"clean_text"`
	Chinese      bool                   `json:"handle_chinese_chars"`
	StripAccents *bool                  `json:"strip_accents"`
	Lowercase    bool                   `json:"lowercase"`
}

// Normalizer is what is done to a text between added tokens.
type Normalizer struct {
	Names  []string // of the steps, for other file formats, without those that these formats leave out or do themselves
	Prefix bool     // a text gets a space before it

	steps []normalizer
}

// Read reads the normalizer of a tokenizer.json, which may be absent.
func Read(raw json.RawMessage) (*Normalizer, error) {
	list, err := component.Parts(raw, "normalizers")
	if err != nil {
		return nil, err
	}
	out, growth := &Normalizer{}, 1
	for _, one := range list {
		var n normalizerFields
		if err := component.Strict(one, &n); err != nil {
			kind, _ := component.TypeOf(one)
			return nil, fmt.Errorf("%w: normalizer %q: %w", component.ErrUnsupported, kind, err)
		}
		do, times, err := n.build()
		if err != nil {
			return nil, err
		}
		if growth *= times; growth > maxGrowth {
			return nil, fmt.Errorf("%w: normalizers that make a text more than %d times as long", component.ErrUnsupported,
				maxGrowth)
		}
		out.steps = append(out.steps, do)
		switch spaces := n.Type == "Replace" && n.Pattern.String != nil && *n.Pattern.String == " "; {
		case n.Type == "Prepend":
			out.Prefix = true
		case n.Type != "NFC" && !spaces:
			out.Names = append(out.Names, n.Type)
		}
	}
	return out, nil
}

// Apply is what the model sees of a text.
func (n *Normalizer) Apply(text string) string {
	for _, do := range n.steps {
		text = do(text)
	}
	return text
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
	return nil, 0, fmt.Errorf("%w: normalizer %q is not known", component.ErrUnsupported, n.Type)
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
		compiled, err := pattern.Compile(*n.Pattern.Regex)
		if err != nil {
			return nil, 0, err
		}
		return func(s string) string { return replaceAll(compiled, s, n.Content) }, max(1, len(n.Content)), nil
	}
	return nil, 0, fmt.Errorf("%w: a Replace without a pattern", component.ErrMalformed)
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
	case r == 0 || r == unicode.ReplacementChar || unicode.In(r, unicode.C), !unicode.In(r, pattern.Assigned...):
		return -1
	}
	return r
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

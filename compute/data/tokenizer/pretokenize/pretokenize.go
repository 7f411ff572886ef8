// Package pretokenize cuts text into words, which a model of tokens then encodes one by one, as the pre-tokenizers of
// published tokenizers do.
package pretokenize

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/starling-network/starling/compute/data/tokenizer/component"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
)

// Piece is text that is cut further; First says whether it begins where the whole text does.
type Piece struct {
	Text  string
	First bool
}

// cutter cuts a piece.
type cutter func(p Piece, emit func(Piece))

// span is called for every part of a text in order, and whether it is one that a pattern matches.
type span = func(text string, match bool)

// cutFields are what the types of pre-tokenizers have.
type cutFields struct {
	component.Component
	Replacement string `json:"replacement"`
	Scheme      string `json:"prepend_scheme"`
	Split       *bool  `json:"split"`   // absent: true
	StrRep      string `json:"str_rep"` // the replacement again
	Individual  bool   `json:"individual_digits"`
}

// PreTokenizer is how text is cut.
type PreTokenizer struct {
	Names     []string // of the cuts, for other file formats; "": it cuts nothing
	Prefix    bool     // a text gets a space before it
	ByteLevel bool     // the model sees bytes

	cuts []cutter
}

// Read reads the pre-tokenizer of a tokenizer.json, which may be absent. A ByteLevel must be the last part.
func Read(raw json.RawMessage) (*PreTokenizer, error) {
	list, err := component.Parts(raw, "pretokenizers")
	if err != nil {
		return nil, err
	}
	p := &PreTokenizer{}
	for i, one := range list {
		var c cutFields
		if err := component.Strict(one, &c); err != nil {
			kind, _ := component.TypeOf(one)
			return nil, fmt.Errorf("%w: pre_tokenizer %q: %w", component.ErrUnsupported, kind, err)
		}
		if c.Type == "ByteLevel" {
			if i != len(list)-1 {
				return nil, fmt.Errorf("%w: pre_tokenizer ByteLevel is not the last part", component.ErrUnsupported)
			}
			p.ByteLevel = true
		}
		cut, err := c.build()
		if err != nil {
			return nil, err
		}
		p.cuts, p.Names = append(p.cuts, cut), append(p.Names, c.name())
		p.Prefix = p.Prefix || component.IsTrue(c.AddPrefixSpace, false) || c.Type == "Metaspace" && c.scheme() != "never"
	}
	return p, nil
}

// Cut calls word for every word of a text, in order.
func (p *PreTokenizer) Cut(text Piece, word func(text string)) { p.cut(0, text, word) }

// cut cuts by the parts from i on.
func (p *PreTokenizer) cut(i int, at Piece, word func(text string)) {
	switch {
	case at.Text == "":
	case i < len(p.cuts):
		p.cuts[i](at, func(next Piece) { p.cut(i+1, next, word) })
	default:
		word(at.Text)
	}
}

// name says what the part does, for other file formats.
func (c *cutFields) name() string {
	switch {
	case c.Type == "ByteLevel" && component.IsTrue(c.UseRegex, true):
		return pattern.SourceGPT2
	case c.Type == "ByteLevel":
		return ""
	case c.Type == "Split" && c.Pattern != nil && c.Pattern.Regex != nil && c.cutsOut():
		return *c.Pattern.Regex
	case c.Type == "Split" && c.Pattern != nil && c.Pattern.String != nil && *c.Pattern.String == " ":
		return "" // where normalizers leave no space, as those that other formats know do
	case c.Type == "Digits" && c.Individual:
		return pattern.SourceDigit
	case c.Type == "Metaspace" && !component.IsTrue(c.Split, true):
		return "" // not cut
	}
	return c.Type
}

// cutsOut reports whether a Split makes a word of everything that it matches.
func (c *cutFields) cutsOut() bool {
	inverted := component.IsTrue(c.Invert, false)
	return c.Behavior == "Isolated" && !inverted || c.Behavior == "Removed" && inverted
}

func (c *cutFields) build() (cutter, error) {
	switch c.Type {
	case "ByteLevel":
		return c.level, nil
	case "Split":
		return c.split()
	case "Digits":
		behavior := "Contiguous"
		if c.Individual {
			behavior = "Isolated"
		}
		return cutting(characters(func(r rune) bool { return pattern.IsNumber(r) }), behavior, false)
	case "Metaspace":
		return c.metaspace()
	case "Whitespace":
		return cutting(wordRuns, "Removed", true)
	case "WhitespaceSplit":
		return cutting(characters(unicode.IsSpace), "Removed", false)
	case "Punctuation":
		behavior := c.Behavior
		if behavior == "" {
			behavior = "Isolated"
		}
		return cutting(characters(isPunctuation), behavior, false)
	case "BertPreTokenizer":
		white, _ := cutting(characters(unicode.IsSpace), "Removed", false)
		marks, _ := cutting(characters(isPunctuation), "Isolated", false)
		return func(p Piece, emit func(Piece)) {
			white(p, func(word Piece) { marks(word, emit) })
		}, nil
	}
	return nil, fmt.Errorf("%w: pre_tokenizer %q is not known", component.ErrUnsupported, c.Type)
}

func isPunctuation(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsPunct(r) || unicode.IsSymbol(r)) || r >= utf8.RuneSelf && unicode.IsPunct(r)
}

// level is ByteLevel, whose bytes are the model's business.
func (c *cutFields) level(p Piece, emit func(Piece)) {
	if component.IsTrue(c.AddPrefixSpace, false) && !strings.HasPrefix(p.Text, " ") {
		p.Text = " " + p.Text
	}
	cut := pattern.Whole
	if component.IsTrue(c.UseRegex, true) {
		cut = pattern.GPT2
	}
	for len(p.Text) > 0 {
		n := cut.WordLen(p.Text)
		emit(Piece{p.Text[:n], p.First})
		p.Text, p.First = p.Text[n:], false
	}
}

func (c *cutFields) split() (cutter, error) {
	switch {
	case c.Pattern == nil:
	case c.Pattern.String != nil && *c.Pattern.String != "":
		literal := *c.Pattern.String
		return cutting(func(text string, yield span) {
			for before, after, ok := strings.Cut(text, literal); ; before, after, ok = strings.Cut(text, literal) {
				if before != "" {
					yield(before, false)
				}
				if !ok {
					return
				}
				yield(literal, true)
				text = after
			}
		}, c.Behavior, component.IsTrue(c.Invert, false))
	case c.Pattern.Regex != nil:
		s, err := pattern.NewSplitter(*c.Pattern.Regex)
		if err != nil {
			return nil, err
		}
		return cutting(s.Each, c.Behavior, component.IsTrue(c.Invert, false))
	}
	return nil, fmt.Errorf("%w: a Split without a pattern", component.ErrMalformed)
}

// scheme is where a Metaspace puts a space before text; older files say it otherwise.
func (c *cutFields) scheme() string {
	switch {
	case c.Scheme != "":
		return c.Scheme
	case component.IsTrue(c.AddPrefixSpace, true):
		return "always"
	}
	return "never"
}

// metaspace writes spaces as another character, one more before the text, and cuts before each.
func (c *cutFields) metaspace() (cutter, error) {
	scheme := c.scheme()
	if utf8.RuneCountInString(c.Replacement) != 1 || scheme != "always" && scheme != "first" && scheme != "never" {
		return nil, fmt.Errorf("%w: a Metaspace of %q with prepend_scheme %q", component.ErrMalformed, c.Replacement, scheme)
	}
	mark := c.Replacement
	cut := func(p Piece, emit func(Piece)) { emit(p) }
	if component.IsTrue(c.Split, true) {
		var err error
		r, _ := utf8.DecodeRuneInString(mark)
		if cut, err = cutting(characters(func(x rune) bool { return x == r }), "MergedWithNext", false); err != nil {
			return nil, err
		}
	}
	return func(p Piece, emit func(Piece)) {
		p.Text = strings.ReplaceAll(p.Text, " ", mark)
		if (scheme == "always" || scheme == "first" && p.First) && !strings.HasPrefix(p.Text, mark) {
			p.Text = mark + p.Text
		}
		cut(p, emit)
	}, nil
}

// characters matches single characters.
func characters(match func(rune) bool) func(text string, yield span) {
	return func(text string, yield span) {
		start := 0
		for i, r := range text {
			if !match(r) {
				continue
			}
			if start < i {
				yield(text[start:i], false)
			}
			_, n := utf8.DecodeRuneInString(text[i:])
			start = i + n
			yield(text[i:start], true)
		}
		if start < len(text) {
			yield(text[start:], false)
		}
	}
}

// wordRuns matches \w+|[^\w\s]+.
func wordRuns(text string, yield span) {
	kind := func(r rune) int {
		switch {
		case unicode.In(r, pattern.OfWords...):
			return 1
		case unicode.IsSpace(r):
			return 0
		}
		return 2
	}
	start, last := 0, -1
	for i, r := range text {
		if k := kind(r); k != last {
			if start < i {
				yield(text[start:i], last > 0)
			}
			start, last = i, k
		}
	}
	if start < len(text) {
		yield(text[start:], last > 0)
	}
}

// part is a span of a text by its ends.
type part struct {
	from, to int
	match    bool
}

// cutting cuts at what a pattern matches, or, inverted, at what it does not.
func cutting(find func(text string, yield span), behavior string, invert bool) (cutter, error) {
	join, ok := behaviors[behavior]
	if !ok {
		return nil, fmt.Errorf("%w: behavior %q is not known", component.ErrUnsupported, behavior)
	}
	return func(p Piece, emit func(Piece)) {
		var list []part
		at := 0
		find(p.Text, func(text string, match bool) {
			list = append(list, part{at, at + len(text), match != invert})
			at += len(text)
		})
		for _, s := range join(list) {
			emit(Piece{p.Text[s.from:s.to], p.First && s.from == 0})
		}
	}, nil
}

// behaviors are what becomes of the parts that match.
var behaviors = map[string]func([]part) []part{
	"Isolated": func(list []part) []part { return list },
	"Removed": func(list []part) (out []part) {
		for _, p := range list {
			if !p.match {
				out = append(out, p)
			}
		}
		return out
	},
	"Contiguous": func(list []part) (out []part) {
		before := false
		for _, p := range list {
			if n := len(out); p.match == before && n > 0 {
				out[n-1].to = p.to
			} else {
				out = append(out, p)
			}
			before = p.match
		}
		return out
	},
	"MergedWithPrevious": func(list []part) (out []part) {
		before := false
		for _, p := range list {
			if n := len(out); p.match && !before && n > 0 {
				out[n-1].to = p.to
			} else {
				out = append(out, p)
			}
			before = p.match
		}
		return out
	},
	"MergedWithNext": func(list []part) []part {
		next, n := false, len(list)
		for i := len(list) - 1; i >= 0; i-- { // from the end, in place
			p := list[i]
			if p.match && !next && n < len(list) {
				list[n].from = p.from
			} else {
				n--
				list[n] = p
			}
			next = p.match
		}
		return list[n:]
	},
}

package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// piece is text that is cut further; it may begin where the whole text does.
type piece struct {
	text  string
	first bool
}

// cutter cuts a piece.
type cutter func(p piece, emit func(piece))

// span is called for every part of a text in order, and whether it is one that a pattern matches.
type span func(text string, match bool)

// cutFields are what the types of pre-tokenizers have.
type cutFields struct {
	component
	Replacement string `json:"replacement"`
	Scheme      string `json:"prepend_scheme"`
	Split       *bool  `json:"split"`   // absent: true
	StrRep      string `json:"str_rep"` // the replacement again
	Individual  bool   `json:"individual_digits"`
}

// readCutters reads how text is cut into words. A ByteLevel must be the last.
func (p *parts) readCutters(raw json.RawMessage) error {
	list, err := rawParts(raw, "pretokenizers")
	if err != nil {
		return err
	}
	for i, one := range list {
		var c cutFields
		if err := strict(one, &c); err != nil {
			kind, _ := typeOf(one)
			return fmt.Errorf("%w: pre_tokenizer %q: %w", ErrUnsupported, kind, err)
		}
		if c.Type == "ByteLevel" {
			if i != len(list)-1 {
				return fmt.Errorf("%w: pre_tokenizer ByteLevel is not the last part", ErrUnsupported)
			}
			p.byteLevel = true
		}
		cut, err := c.build()
		if err != nil {
			return err
		}
		p.cuts, p.names = append(p.cuts, cut), append(p.names, c.name())
		p.prefix = p.prefix || isTrue(c.AddPrefixSpace, false) || c.Type == "Metaspace" && c.scheme() != "never"
	}
	return nil
}

// name says what the part does, for other file formats.
func (c *cutFields) name() string {
	switch {
	case c.Type == "ByteLevel" && isTrue(c.UseRegex, true):
		return PatternGPT2
	case c.Type == "ByteLevel":
		return ""
	case c.Type == "Split" && c.Pattern != nil && c.Pattern.Regex != nil && c.cutsOut():
		return *c.Pattern.Regex
	case c.Type == "Split" && c.Pattern != nil && c.Pattern.String != nil && *c.Pattern.String == " ":
		return "" // where normalizers leave no space, as those that other formats know do
	case c.Type == "Digits" && c.Individual:
		return PatternDigit
	case c.Type == "Metaspace" && !isTrue(c.Split, true):
		return "" // not cut
	}
	return c.Type
}

// cutsOut reports whether a Split makes a word of everything that it matches.
func (c *cutFields) cutsOut() bool {
	inverted := isTrue(c.Invert, false)
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
		return cutting(characters(func(r rune) bool { return classOf(r) == number }), behavior, false)
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
		return func(p piece, emit func(piece)) {
			white(p, func(word piece) { marks(word, emit) })
		}, nil
	}
	return nil, fmt.Errorf("%w: pre_tokenizer %q is not known", ErrUnsupported, c.Type)
}

func isPunctuation(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsPunct(r) || unicode.IsSymbol(r)) || r >= utf8.RuneSelf && unicode.IsPunct(r)
}

// level is ByteLevel, whose bytes are the model's business.
func (c *cutFields) level(p piece, emit func(piece)) {
	if isTrue(c.AddPrefixSpace, false) && !strings.HasPrefix(p.text, " ") {
		p.text = " " + p.text
	}
	cut := whole
	if isTrue(c.UseRegex, true) {
		cut = gpt2
	}
	for len(p.text) > 0 {
		n := cut.wordLen(p.text)
		emit(piece{p.text[:n], p.first})
		p.text, p.first = p.text[n:], false
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
		}, c.Behavior, isTrue(c.Invert, false))
	case c.Pattern.Regex != nil:
		s, err := newSplitter(*c.Pattern.Regex)
		if err != nil {
			return nil, err
		}
		return cutting(s.each, c.Behavior, isTrue(c.Invert, false))
	}
	return nil, fmt.Errorf("%w: a Split without a pattern", ErrMalformed)
}

// scheme is where a Metaspace puts a space before text; older files say it otherwise.
func (c *cutFields) scheme() string {
	switch {
	case c.Scheme != "":
		return c.Scheme
	case isTrue(c.AddPrefixSpace, true):
		return "always"
	}
	return "never"
}

// metaspace writes spaces as another character, one more before the text, and cuts before each.
func (c *cutFields) metaspace() (cutter, error) {
	scheme := c.scheme()
	if utf8.RuneCountInString(c.Replacement) != 1 || scheme != "always" && scheme != "first" && scheme != "never" {
		return nil, fmt.Errorf("%w: a Metaspace of %q with prepend_scheme %q", ErrMalformed, c.Replacement, scheme)
	}
	mark := c.Replacement
	cut := func(p piece, emit func(piece)) { emit(p) }
	if isTrue(c.Split, true) {
		var err error
		r, _ := utf8.DecodeRuneInString(mark)
		if cut, err = cutting(characters(func(x rune) bool { return x == r }), "MergedWithNext", false); err != nil {
			return nil, err
		}
	}
	return func(p piece, emit func(piece)) {
		p.text = strings.ReplaceAll(p.text, " ", mark)
		if (scheme == "always" || scheme == "first" && p.first) && !strings.HasPrefix(p.text, mark) {
			p.text = mark + p.text
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
		case unicode.In(r, ofWords...):
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
		return nil, fmt.Errorf("%w: behavior %q is not known", ErrUnsupported, behavior)
	}
	return func(p piece, emit func(piece)) {
		var list []part
		at := 0
		find(p.text, func(text string, match bool) {
			list = append(list, part{at, at + len(text), match != invert})
			at += len(text)
		})
		for _, s := range join(list) {
			emit(piece{p.text[s.from:s.to], p.first && s.from == 0})
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

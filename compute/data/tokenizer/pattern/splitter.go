package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/starling-network/starling/compute/data/tokenizer/component"
)

// Splitter finds what the regular expression of a Split matches. Expressions run in linear time, so of those that files
// have only the lookahead at the end of GPT-2's is known, which package regexp has not.
type Splitter struct {
	re   *regexp.Regexp
	tail int // the group of white space, whose match gives its last character to the word that follows; 0: none
}

const (
	lookahead = `|\s+(?!\S)|\s+` // at the end of the patterns of GPT-2 and those after it
	maxRegex  = 4096             // bytes
)

// NewSplitter reads a regular expression of a file.
func NewSplitter(source string) (*Splitter, error) {
	head, tail := strings.CutSuffix(source, lookahead)
	re, err := translate(head)
	if err != nil {
		return nil, err
	}
	if tail {
		re = "(?:" + re + ")|([" + spaceClass + "]+)"
	}
	compiled, err := compile(re)
	if err != nil {
		return nil, err
	}
	s := &Splitter{re: compiled}
	if tail {
		s.tail = compiled.NumSubexp()
	}
	return s, nil
}

// Compile reads a regular expression of a file that has no lookahead.
func Compile(source string) (*regexp.Regexp, error) {
	re, err := translate(source)
	if err != nil {
		return nil, err
	}
	return compile(re)
}

// compile refuses what looks at the text around a match, and what matches nothing.
func compile(source string) (*regexp.Regexp, error) {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil || looksAround(tree) {
		return nil, fmt.Errorf("%w: the regular expression %.80q is not one that is matched in linear time",
			component.ErrUnsupported,
			source)
	}
	re, err := regexp.Compile(source)
	if err != nil || re.MatchString("") {
		return nil, fmt.Errorf("%w: the regular expression %.80q matches nothing", component.ErrUnsupported, source)
	}
	return re, nil
}

func looksAround(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary,
		syntax.OpNoWordBoundary:
		return true
	}
	for _, sub := range re.Sub {
		if looksAround(sub) {
			return true
		}
	}
	return false
}

// The sets of the reference for \s, \p{L} and \p{N}, inside of brackets.
const spaceClass = `\t\n\v\f\r\x{85}\p{Z}`

var wide = map[string]string{`\p{L}`: classText(`\p{L}`, letter), `\p{N}`: classText(`\p{N}`, number)}

// classText adds the characters that are younger than package unicode.
func classText(name string, c class) string {
	table := letters16
	if c == number {
		table = numbers16
	}
	var b strings.Builder
	b.WriteString(name)
	for _, r := range table.R16 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, r.Lo, r.Hi)
	}
	for _, r := range table.R32 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, r.Lo, r.Hi)
	}
	return b.String()
}

// translate writes an expression of the reference, of Oniguruma's syntax, as package regexp means the same.
func translate(source string) (string, error) {
	refuse := func(what string) (string, error) {
		return "", fmt.Errorf("%w: %s in the regular expression %.80q", component.ErrUnsupported, what, source)
	}
	if len(source) > maxRegex {
		return refuse("more than 4096 bytes")
	}
	var b strings.Builder
	inside := false // of brackets
	bracket := func(class string) {
		if inside {
			b.WriteString(class)
		} else {
			b.WriteString("[" + class + "]")
		}
	}
	for i := 0; i < len(source); i++ {
		rest := source[i:]
		switch {
		case strings.HasPrefix(rest, `\s`):
			bracket(spaceClass)
			i++
		case strings.HasPrefix(rest, `\S`) && !inside:
			b.WriteString("[^" + spaceClass + "]")
			i++
		case strings.HasPrefix(rest, `\d`):
			b.WriteString(`\p{Nd}`)
			i++
		case strings.HasPrefix(rest, `\p{L}`), strings.HasPrefix(rest, `\p{N}`):
			bracket(wide[rest[:5]])
			i += 4
		case rest[0] == '\\' && len(rest) > 1 && strings.IndexByte(`SwWbBhHDAzZGKkRX0123456789`, rest[1]) >= 0:
			return refuse(rest[:2])
		case rest[0] == '\\' && len(rest) > 1:
			b.WriteString(rest[:2])
			i++
		case rest[0] == '[' && inside, strings.HasPrefix(rest, "&&") && inside:
			return refuse("brackets in brackets")
		case strings.HasPrefix(rest, "(?") && !inside && !strings.HasPrefix(rest, "(?:") && !strings.HasPrefix(rest, "(?i:"):
			return refuse("a lookaround")
		default:
			inside = rest[0] == '[' || inside && rest[0] != ']'
			b.WriteByte(rest[0])
		}
	}
	return b.String(), nil
}

// Each calls yield for what is matched and for what lies between, in order.
func (s *Splitter) Each(text string, yield func(text string, match bool)) {
	for at := 0; at < len(text); {
		m := s.re.FindStringSubmatchIndex(text[at:])
		if m == nil {
			yield(text[at:], false)
			return
		}
		from, to := at+m[0], at+m[1]
		if s.tail > 0 && m[2*s.tail] >= 0 {
			to = from + spaceLen(text[from:])
		}
		if from > at {
			yield(text[at:from], false)
		}
		yield(text[from:to], true)
		at = to
	}
}

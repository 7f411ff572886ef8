// Package pattern cuts text into words as the patterns of published tokenizers do: those of GPT-2 and Llama 3 by hand,
// others by regular expressions that run in linear time. It knows the characters of Unicode 16, as the reference
// implementation does; an expression that it cannot read as the reference does is refused.
package pattern

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pattern is how text is cut into pre-tokens, which no merge crosses.
type Pattern uint8

// The patterns known without a regular expression.
const (
	Whole  Pattern = iota // not at all
	GPT2                  // gpt2Len
	Llama3                // llama3Len
)

// WordLen returns the length in bytes of the first pre-token of s, which is not empty.
func (p Pattern) WordLen(s string) int {
	switch p {
	case GPT2:
		return gpt2Len(s)
	case Llama3:
		return llama3Len(s)
	}
	return len(s)
}

// gpt2Len matches GPT-2's pattern
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// at the start of s, with alternatives in order; the lookahead, which package regexp does not have, makes a run of
// white space leave its last character to the word that follows. Invalid UTF-8 counts as punctuation.
func gpt2Len(s string) int {
	if n := contractionLen(s, false); n > 0 {
		return n
	}
	start := 0
	if s[0] == ' ' {
		start = 1
	}
	if start < len(s) {
		if c, _ := firstClass(s[start:]); c != space {
			n, _ := runLen(s[start:], c)
			return start + n
		}
	}
	return spaceLen(s)
}

// Patterns as tokenizer.json files write them.
const (
	SourceGPT2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	SourceLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ` +
		`?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	SourceQwen2 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ` +
		`?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	SourceDigit = `\p{N}`
)

// llama3Len is gpt2Len for SourceLlama3: numbers go by three digits, any one character but a number or a line end may
// lead a word, and line ends belong to the punctuation or the white space before them.
func llama3Len(s string) int {
	if n := contractionLen(s, true); n > 0 {
		return n
	}
	first, width := firstClass(s)
	lead := 0
	if first != letter && first != number && s[0] != '\r' && s[0] != '\n' {
		lead = width
	}
	if n, _ := runLen(s[lead:], letter); n > 0 {
		return lead + n
	}
	switch first {
	case number:
		return digitsLen(s, 3)
	case other:
		return punctuationLen(s)
	}
	if s[0] == ' ' && len(s) > 1 {
		if c, _ := firstClass(s[1:]); c == other {
			return 1 + punctuationLen(s[1:])
		}
	}
	n, _ := runLen(s, space)
	if end := strings.LastIndexAny(s[:n], "\r\n"); end >= 0 {
		return end + 1
	}
	return spaceLen(s)
}

// digitsLen returns the length of the numbers that s starts with, at most limit of them.
func digitsLen(s string, limit int) int {
	n := 0
	for ; limit > 0 && n < len(s); limit-- {
		c, width := firstClass(s[n:])
		if c != number {
			break
		}
		n += width
	}
	return n
}

// punctuationLen returns the length of a run of punctuation and the line ends that follow it.
func punctuationLen(s string) int {
	n, _ := runLen(s, other)
	return len(s) - len(strings.TrimLeft(s[n:], "\r\n"))
}

// spaceLen matches \s+(?!\S)|\s+ at the start of s, which is white space.
func spaceLen(s string) int {
	n, last := runLen(s, space)
	if n == len(s) || n == last {
		return n
	}
	return n - last
}

// contractionLen returns the length of the English ending that s starts with, or 0. In any case of letters, as Unicode
// folds it, s may also be U+017F.
func contractionLen(s string, anyCase bool) int {
	if s[0] != '\'' {
		return 0
	}
	for _, c := range [...]string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(s, c) || anyCase && len(s) >= len(c) && strings.EqualFold(s[:len(c)], c) {
			return len(c)
		}
	}
	if long := "'\u017f"; anyCase && strings.HasPrefix(s, long) {
		return len(long)
	}
	return 0
}

// runLen returns the length in bytes of the longest prefix of s of one class, and that of its last character.
func runLen(s string, c class) (n, last int) {
	for n < len(s) {
		next, width := firstClass(s[n:])
		if next != c {
			break
		}
		n, last = n+width, width
	}
	return n, last
}

type class uint8

const (
	other  class = iota
	letter       // \p{L}
	number       // \p{N}
	space        // \s
)

func firstClass(s string) (c class, width int) {
	if s[0] < utf8.RuneSelf {
		return asciiClass[s[0]], 1
	}
	r, width := utf8.DecodeRuneInString(s)
	return classOf(r), width
}

// IsNumber reports whether a character is a number.
func IsNumber(r rune) bool { return classOf(r) == number }

func classOf(r rune) class {
	switch {
	case unicode.In(r, letters...):
		return letter
	case unicode.In(r, numbers...):
		return number
	case unicode.IsSpace(r):
		return space
	}
	return other
}

var asciiClass = func() (table [utf8.RuneSelf]class) {
	for r := range table {
		table[r] = classOf(rune(r))
	}
	return table
}()

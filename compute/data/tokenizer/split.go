package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordLen returns the length in bytes of the first pre-token of s, which is not empty. It is GPT-2's pattern
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// matched at the start of s, with alternatives in order; the lookahead, which package regexp does not have, makes a
// run of white space leave its last character to the word that follows. Invalid UTF-8 counts as punctuation.
func wordLen(s string) int {
	if n := contractionLen(s); n > 0 {
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
	n, last := runLen(s, space)
	if n == len(s) || n == last {
		return n
	}
	return n - last
}

func contractionLen(s string) int {
	if s[0] != '\'' {
		return 0
	}
	for _, c := range [...]string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(s, c) {
			return len(c)
		}
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

func classOf(r rune) class {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
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

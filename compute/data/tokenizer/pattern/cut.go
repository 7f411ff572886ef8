package pattern

import "unicode/utf8"

// Cut is the length of a part of a text, the longest, at whose end a pre-token ends whatever the text before it is, and
// whatever follows the text: the rest can be cut by itself. spaces says that the rest is to begin with a space. 0:
// there is none.
func (p Pattern) Cut(s string, spaces bool) int {
	for i := len(s) - 1; i > 0; i-- {
		space := s[i] == ' ' || s[i] == '\n' && !spaces
		if space && p.endsAtSpace(s[:i]) || !space && !spaces && p == Llama3 && s[i-1] == '\n' && startsWord(s[i:]) {
			return i
		}
	}
	return 0
}

// endsAtSpace reports whether the last pre-token of s ends if a space or a line end follows.
func (p Pattern) endsAtSpace(s string) bool {
	r, _ := utf8.DecodeLastRuneInString(s)
	c := classOf(r)
	return c == letter || c == number || p == GPT2 && c == other
}

// startsWord reports whether s begins with a whole character that is no white space. In Llama 3, line ends before it
// belong to the pre-token before them.
func startsWord(s string) bool {
	if !utf8.FullRuneInString(s) {
		return false
	}
	c, _ := firstClass(s)
	return c != space
}

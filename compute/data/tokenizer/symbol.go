package tokenizer

import "strings"

// The files write a token as text: each of its 256 bytes as a printable character of its own. Bytes that are printable
// in Latin-1 stand for themselves; the other 68, ascending, are U+0100 and on. A space is U+0120.
var symbolOf, byteOf = func() (to [256]rune, from map[rune]byte) {
	from = make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range rune(256) {
		to[b] = b
		if b <= ' ' || b >= 0x7f && b <= 0xa0 || b == 0xad {
			to[b] = next
			next++
		}
		from[to[b]] = byte(b)
	}
	return to, from
}()

func toSymbols(piece string) string {
	var s strings.Builder
	for i := range len(piece) {
		s.WriteRune(symbolOf[piece[i]])
	}
	return s.String()
}

func fromSymbols(symbols string) (piece string, ok bool) {
	b := make([]byte, 0, len(symbols))
	for _, r := range symbols {
		v, ok := byteOf[r]
		if !ok {
			return "", false
		}
		b = append(b, v)
	}
	return string(b), true
}

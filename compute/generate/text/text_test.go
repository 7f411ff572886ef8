package text

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// bytesDecoder has a token for every byte.
type bytesDecoder struct{}

func (bytesDecoder) Decode(ids []uint32) string {
	var b []byte
	for _, id := range ids {
		b = append(b, byte(id))
	}
	return string(b)
}

// write adds the bytes of a text and returns the pieces in sum.
func write(t *testing.T, text string, stops ...string) (out string, stopped bool) {
	t.Helper()
	w := NewWriter(bytesDecoder{}, stops...)
	for i := range len(text) {
		piece, end := w.Add(int32(text[i]))
		if utf8.ValidString(text) && !utf8.ValidString(piece) {
			t.Errorf("a piece %q of %q is cut within a character", piece, text)
		}
		out += piece
		if end {
			return out, true
		}
	}
	return out + w.Close(), false
}

func TestWriterStops(t *testing.T) {
	for _, c := range []struct {
		text  string
		stops []string
		want  string
		stop  bool
	}{
		{"hello world", nil, "hello world", false},
		{"hello world", []string{""}, "hello world", false},
		{"hello world", []string{"o w"}, "hell", true},
		{"hello world", []string{"world", "lo"}, "hel", true},
		{"hello world", []string{"worldly"}, "hello world", false},
		{"aaab", []string{"aab"}, "a", true},
		{"a\nUser: b", []string{"\nUser:"}, "a", true},
		{"na\xc3\xafve caf\xc3\xa9 \xf0\x9f\x90\xa6!", []string{"\xf0\x9f\x90\xa6"}, "naïve café ", true},
		{"cut \xf0\x9f", nil, "cut \xf0\x9f", false},
	} {
		if got, stopped := write(t, c.text, c.stops...); got != c.want || stopped != c.stop {
			t.Errorf("%q until %q: %q, stopped %v; want %q, %v", c.text, c.stops, got, stopped, c.want, c.stop)
		}
	}
}

func TestWriterIsOver(t *testing.T) {
	w := NewWriter(bytesDecoder{}, "b")
	w.Add('a')
	if _, stopped := w.Add('b'); !stopped {
		t.Fatal("it goes on")
	}
	if piece, stopped := w.Add('c'); piece != "" || !stopped || w.Close() != "" {
		t.Errorf("%q after the end", piece)
	}
}

func TestComplete(t *testing.T) {
	for text, want := range map[string]bool{"": true, "a": true, "é": true, "a\xc3": false, "\xe2\x82": false, "€": true,
		"\xf0\x9f\x90": false,
		"\xff":         true, "\x80\x80\x80\x80": true, "�": true} {
		if got := complete(text); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// FuzzWriter compares with the shortest beginning of the text that holds a stop string.
func FuzzWriter(f *testing.F) {
	f.Add("hello world", "lo", "w")
	f.Add("aaab", "aab", "ab")
	f.Add("\xf0\x9f\x90\xa6", "\xf0\x9f\x90\xa6", "")
	f.Fuzz(func(t *testing.T, text, a, b string) {
		if !utf8.ValidString(text) || !utf8.ValidString(a) || !utf8.ValidString(b) {
			return // which bytes are a character is the business of Add
		}
		want, stop := text, false
		for end := 0; end <= len(text) && !stop; end++ {
			for _, s := range []string{a, b} {
				if at := strings.Index(text[:end], s); s != "" && at >= 0 && (!stop || at < len(want)) {
					want, stop = text[:at], true
				}
			}
		}
		if got, stopped := write(t, text, a, b); stopped != stop || got != want {
			t.Errorf("%q until %q, %q: %q, %v; want %q, %v", text, a, b, got, stopped, want, stop)
		}
	})
}

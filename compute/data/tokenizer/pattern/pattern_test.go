package pattern

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func (p Pattern) words(s string) []string {
	var out []string
	for len(s) > 0 {
		n := p.WordLen(s)
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

// The expected words are what the reference implementation's pre-tokenizer gives.
func TestWordsOfGPT2(t *testing.T) {
	for text, want := range map[string]string{
		"Hello world":          "Hello| world",
		"I'll've don't 'Tis":   "I|'ll|'ve| don|'t| '|Tis",
		"'S 's it''s":          "'|S| '|s| it|''|s",
		"a  b":                 "a| | b",
		"a   b":                "a|  | b",
		"a \n b":               "a| \n| b",
		"a\n\nb":               "a|\n|\n|b",
		"a\tb":                 "a|\t|b",
		"end  ":                "end|  ",
		"  ":                   "  ",
		" ":                    " ",
		"x=1234 + y2":          "x|=|1234| +| y|2",
		"a\u00a0b":             "a|\u00a0|b",
		"a \u2003 b":           "a| \u2003| b",
		"a\u0085\u0085b":       "a|\u0085|\u0085|b",
		"e\u0301a":             "e|\u0301|a",
		"日本語 テスト１２":            "日本語| テスト|１２",
		"½ Ⅷ²":                 "½| Ⅷ²",
		"\ufeffa \u200bb":      "\ufeff|a| \u200b|b",
		"a\xff\xfe b\xe3\x81":  "a|\xff\xfe| b|\xe3\x81",
		"\x1c\x1f \v\fx":       "\x1c\x1f| \v|\f|x",
		"👩\u200d👩 !!":          "👩\u200d👩| !!",
		"snake_case, (really)": "snake|_|case|,| (|really|)",
	} {
		if got := strings.Join(GPT2.words(text), "|"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// The expected words are what the reference implementation's pre-tokenizer gives.
func TestWordsOfLlama3(t *testing.T) {
	for text, want := range map[string]string{
		"Hello world":                 "Hello| world",
		"I'LL'Ve don'T 'Tis 'ſx":      "I|'LL|'Ve| don|'T| '|Tis| '|ſx",
		"it'ſ":                        "it|'ſ",
		"$price (really) \"a":         "$price| (|really|)| \"|a",
		"a  b":                        "a| | b",
		"\tx\u00a0y\u2003 z":          "\tx|\u00a0y|\u2003| z",
		"1234567 8":                   "123|456|7| |8",
		"a12½Ⅷ٣4":                     "a|12½|Ⅷ٣4",
		"x;\r\n\r\n  y":               "x|;\r\n\r\n| | y",
		"a \n \t\n  b\n":              "a| \n \t\n| | b|\n",
		"end  ":                       "end|  ",
		"\n\na":                       "\n\n|a",
		"\u0085\u0085b\u2028c":        "\u0085|\u0085b|\u2028c",
		"e\u0301a 日本語テスト":             "e|\u0301a| 日本語テスト",
		"\ufeffa \u200bb 👩\u200d👩 !!": "\ufeffa| \u200b|b| 👩\u200d👩| !!",
		"a\xff\xfe b\xe3\x81c":        "a|\xff\xfe| b|\xe3\x81|c",
	} {
		if got := strings.Join(Llama3.words(text), "|"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Package regexp runs the same patterns but for the lookahead, which is put in by hand.
var withoutLookahead = map[Pattern]*regexp.Regexp{
	GPT2: regexp.MustCompile(`^('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^` + spaces + `\p{L}\p{N}]+|[` + spaces +
		`]+)`),
	Llama3: regexp.MustCompile(`^((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^` + spaces +
		`\p{L}\p{N}]+[\r\n]*|[` + spaces + `]*[\r\n]+|[` + spaces + `]+)`),
}

const spaces = "\\s\\v\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

func (p Pattern) wordsByRegexp(s string) []string {
	space := regexp.MustCompile(`^[` + spaces + `]+$`)
	var out []string
	for len(s) > 0 {
		w := withoutLookahead[p].FindString(s)
		if runes := []rune(w); space.MatchString(w) && len(w) < len(s) && len(runes) > 1 &&
			!(p == Llama3 && strings.ContainsAny(w, "\r\n")) {
			w = string(runes[:len(runes)-1])
		}
		out = append(out, w)
		s = s[len(w):]
	}
	return out
}

func FuzzWords(f *testing.F) {
	f.Add("I'll  see\n\n you're ½ \u00a0\u2003x  \n")
	f.Add("\xff'\xe3\x81 's  ")
	f.Add("12345 !\r\n\n 'LL\u00a0x'ſ\t")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, letters16, numbers16) }) {
			return // package regexp has the tables of package unicode
		}
		for _, p := range []Pattern{GPT2, Llama3} {
			got := p.words(text)
			if strings.Join(got, "") != text {
				t.Fatalf("%q: the words %q are not the text", text, got)
			}
			if valid := strings.ToValidUTF8(text, "?"); valid == text {
				if want := p.wordsByRegexp(text); !slices.Equal(got, want) {
					t.Fatalf("%q: got %q, want %q", text, got, want)
				}
			}
		}
	})
}

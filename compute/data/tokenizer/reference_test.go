package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// testdata/llama3.json has everything that tokenizer.json files of Llama 3 have, with a small vocabulary, and added
// tokens with every flag. testdata/llama3.ids.json holds texts with the ids that Hugging Face tokenizers gives them
// for that file, without special tokens around the text.
func TestEncodeMatchesReference(t *testing.T) {
	tok := parseFile(t, "testdata/llama3.json")
	raw, err := os.ReadFile("testdata/llama3.ids.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Text string
		IDs  []uint32
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 50 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		if got := tok.Encode(c.Text); !slices.Equal(got, c.IDs) {
			t.Errorf("%q: got %v, want %v", c.Text, got, c.IDs)
		}
	}
}

func parseFile(t testing.TB, path string) *Tokenizer {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestJSONKeepsLlama3(t *testing.T) {
	want, err := os.ReadFile("testdata/llama3.json")
	if err != nil {
		t.Fatal(err)
	}
	tok := parseFile(t, "testdata/llama3.json")
	if got := tok.JSON(); !bytes.Equal(got, want) {
		t.Errorf("the file reads back as %s", got)
	}
	if id, ok := tok.EndOfText(); !ok || tok.Decode([]uint32{id}) != Llama3EndOfText {
		t.Errorf("a document ends with %d, %t", id, ok)
	}
}

func TestVocabulary(t *testing.T) {
	v := parseFile(t, "testdata/llama3.json").Vocabulary()
	id, ok := v.ID(Llama3EndOfText)
	if !ok || !v.Tokens[id].Special || v.Start != "<|begin_of_text|>" || v.Pattern != PatternLlama3 || !v.IgnoreMerges ||
		v.PrefixSpace {
		t.Errorf("%d, %t: %+v", id, ok, v)
	}
	if id, ok := v.ID("<r>"); !ok || v.Tokens[id].Special || !v.Tokens[id].Strict {
		t.Errorf("<r> is %d: %+v", id, v.Tokens[id])
	}
	if _, ok := v.ID("the"); ok || v.Tokens[' '].Text != "Ġ" || v.Merges[0] != "t h" {
		t.Errorf("a space is %q, the first merge %q", v.Tokens[' '].Text, v.Merges[0])
	}
}

func TestParseRefusesOtherComponents(t *testing.T) {
	raw, err := os.ReadFile("testdata/llama3.json")
	if err != nil {
		t.Fatal(err)
	}
	good := string(raw)
	for _, c := range []struct {
		name, from, to string
		want           error
	}{
		{"a pattern that looks around", `(?i:`, `(?=`, ErrUnsupported},
		{"another behaviour", `"Isolated"`, `"Dropped"`, ErrUnsupported},
		{"another pre-tokenizer", `"type": "Sequence"`, `"type": "Metaspace"`, ErrMalformed},
		{"unknown field of a part", `"invert"`, `"inverse"`, ErrMalformed},
		{"pre-tokenizer without a type", `"type": "Sequence"`, `"tipe": "Sequence"`, ErrMalformed},
		{"another post-processor", `"type": "TemplateProcessing"`, `"type": "BertProcessing"`, ErrMalformed},
		{"nested post-processor", `"type": "TemplateProcessing"`, `"type": "Sequence"`, ErrUnsupported},
		{"a template without the text", `"Sequence": {`, `"SpecialToken": {`, ErrUnsupported},
		{"a template of a pair", `"id": "A"`, `"id": "B"`, ErrMalformed},
		{"another decoder", `"decoder": {`, `"decoder": {"type": "Fuse"}, "post_processor": {`, ErrUnsupported},
		{"an id the reference would not give", `"id": 312`, `"id": 412`, ErrUnsupported},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Fatalf("%s: %q is not in the file", c.name, c.from)
		}
		if _, err := Parse([]byte(text)); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
}

// A token that takes white space must not make a text quadratic.
func TestStrippingIsLinear(t *testing.T) {
	tok := parseFile(t, "testdata/llama3.json")
	n := 1 << 20
	if got := len(tok.Encode(strings.Repeat("<r>", 3) + strings.Repeat("\t", n) + "<l>")); got != 4 {
		t.Errorf("%d tokens, want 4", got)
	}
	var all matcher
	all.add(addedToken{ID: 1, Content: " ", RStrip: true, LStrip: true})
	all.add(addedToken{ID: 2, Content: "\t"})
	count := 0
	all.each(strings.Repeat(" \t", n), func(uint32) { count++ },
		func(text string, _ int) { t.Fatalf("%q is left over", text) })
	if count != 2*n {
		t.Errorf("%d tokens, want %d", count, 2*n)
	}
}

// A text begins as the post-processor says, once, also if it was written with its beginning.
func TestEncodeText(t *testing.T) {
	tok := parseFile(t, "testdata/llama3.json")
	begin := tok.Begin()
	if len(begin) != 1 || tok.Decode(begin) != "<|begin_of_text|>" {
		t.Fatalf("a text begins with %v", begin)
	}
	for _, text := range []string{"", "The rays of light", "<|begin_of_text|>The rays of light"} {
		plain := tok.Encode(strings.TrimPrefix(text, "<|begin_of_text|>"))
		if got := tok.EncodeText(text); !slices.Equal(got, append(slices.Clone(begin), plain...)) {
			t.Errorf("%q: %v", text, got)
		}
	}
	if b := Bytes(); len(b.Begin()) != 0 || !slices.Equal(b.EncodeText("ab"), []uint32{'a', 'b'}) {
		t.Error("bytes begin with something")
	}
}

// An encoder gives the tokens of a long text in parts, after any other text.
func TestEncoderGivesParts(t *testing.T) {
	for name, tok := range map[string]*Tokenizer{"bytes": Bytes(), "llama3": parseFile(t, "testdata/llama3.json"),
		"bpe": trained(t, 280, sample)} {
		e := NewEncoder(tok)
		for _, text := range []string{"", "short", strings.Repeat(sample+" <l> 12345\n\n", 1+3*handful/len(sample))} {
			var got []uint32
			parts := 0
			e.EncodeText(text, true, func(ids []uint32) { got, parts = append(got, ids...), parts+1 })
			if want := tok.EncodeText(text); !slices.Equal(got, want) || len(want) > 2*handful && parts < 3 {
				t.Errorf("%s: %d tokens in %d parts, want %d", name, len(got), parts, len(want))
			}
		}
	}
}

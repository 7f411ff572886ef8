package tokenizer

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer/bpe"
	"github.com/starling-network/starling/compute/data/tokenizer/pattern"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the files in testdata")

const sample = "the cat sat on the mat, the hat that the cat had sat on; aaaa aaaaa it's theirs, isn't it?\n\n  the " +
	"end\n"

func trained(t testing.TB, size int, docs ...string) *Tokenizer {
	t.Helper()
	tok, err := TrainBPE(slices.Values(docs), size)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// randomText is made of pieces that are likely to meet every branch of the splitter and many merges.
func randomText(r *rand.Rand) string {
	pieces := []string{"the", "cat", "a", "aa", " ", "  ", "\n", "'s", "'", "12", "é", "日本", "\u00a0", "\xff", ",",
		EndOfText}
	var b strings.Builder
	for range r.IntN(40) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func TestBytesAreTheirOwnIDs(t *testing.T) {
	tok := Bytes()
	if tok.VocabSize() != 256 {
		t.Fatalf("vocabulary of %d, want 256", tok.VocabSize())
	}
	if _, ok := tok.EndOfText(); ok {
		t.Error("there is a token that ends a document")
	}
	for _, text := range []string{"", "héllo  日本\n", "\x00\xff\xfe", EndOfText} {
		ids := tok.Encode(text)
		for i := range max(len(ids), len(text)) {
			if i >= len(ids) || i >= len(text) || ids[i] != uint32(text[i]) {
				t.Fatalf("%q encodes to %v", text, ids)
			}
		}
		if got := tok.Decode(ids); got != text {
			t.Errorf("%q decodes to %q", text, got)
		}
	}
}

func TestDecodeSkipsUnknownIDs(t *testing.T) {
	if got := Bytes().Decode([]uint32{'a', 256, 1 << 31, 'b'}); got != "ab" {
		t.Errorf("got %q, want ab", got)
	}
}

// wordsOf cuts a text as GPT-2 does.
func wordsOf(text string) (words []string) {
	for len(text) > 0 {
		n := pattern.GPT2.WordLen(text)
		words = append(words, text[:n])
		text = text[n:]
	}
	return words
}

// slowMerge is the definition: merge the leftmost pair of the lowest rank until there is none.
func slowMerge(tok *Tokenizer, w string) []uint32 {
	var ids []uint32
	for i := range len(w) {
		ids = append(ids, tok.bytes[w[i]])
	}
	merges, ranks := tok.merges.Merges(), map[bpe.Pair]int{}
	for rank, m := range merges {
		ranks[m.Pair] = rank
	}
	for {
		best, at := len(merges), -1
		for i := range len(ids) - 1 {
			if rank, ok := ranks[bpe.Pair{Left: ids[i], Right: ids[i+1]}]; ok && rank < best {
				best, at = rank, i
			}
		}
		if at < 0 {
			return ids
		}
		ids = slices.Replace(ids, at, at+2, merges[best].ID)
	}
}

func TestEncodeMatchesDefinition(t *testing.T) {
	tok := trained(t, 400, sample, strings.Repeat("aab aaab baaa ", 9))
	end, _ := tok.EndOfText()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := randomText(r)
		var want []uint32
		for i, part := range strings.Split(text, EndOfText) {
			if i > 0 {
				want = append(want, end)
			}
			for _, w := range wordsOf(part) {
				want = append(want, slowMerge(tok, w)...)
			}
		}
		got := tok.Encode(text)
		if !slices.Equal(got, want) {
			t.Fatalf("%q: got %v, want %v", text, got, want)
		}
		if back := tok.Decode(got); back != text {
			t.Fatalf("%q decodes to %q", text, back)
		}
	}
}

func TestLongWordsAreNotQuadratic(t *testing.T) {
	tok := trained(t, 300, strings.Repeat("a", 200))
	text := strings.Repeat("a", 1<<18)
	if got := tok.Decode(tok.Encode(text)); got != text {
		t.Error("a word of 256 KiB does not survive")
	}
}

func TestAddedTokens(t *testing.T) {
	for _, c := range []struct {
		name, from, to, text string
		want                 []string
	}{
		{"longest first", `"added_tokens": [`,
			`"added_tokens": [` + addedJSON(257, "<x>", false) + `,` + addedJSON(258, "<x><y", false) + `,`,
			"a<x><y<x>", []string{"a", "<x><y", "<x>"}},
		{"normalized ones last", `"added_tokens": [`,
			`"added_tokens": [` + addedJSON(257, "<x>", true) + `,` + addedJSON(258, ">b", false) + `,`,
			"<x>b", []string{"<", "x", ">b"}},
		{"space before every part", `"add_prefix_space": false`, `"add_prefix_space": true`,
			"a" + EndOfText + "b", []string{" ", "a", EndOfText, " ", "b"}},
	} {
		tok, err := Parse([]byte(strings.Replace(string(trained(t, 257, "ab").JSON()), c.from, c.to, 1)))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var got []string
		for _, id := range tok.Encode(c.text) {
			got = append(got, tok.Decode([]uint32{id}))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestJSONIsGolden(t *testing.T) {
	for name, tok := range map[string]*Tokenizer{
		"bytes.json": Bytes(),
		"bpe.json":   trained(t, 280, sample),
	} {
		path := "testdata/" + name
		if *rewrite {
			if err := os.WriteFile(path, tok.JSON(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(tok.JSON(), want) {
			t.Errorf("%s differs; look at the difference, then run with -rewrite", name)
		}
		again, err := Parse(want)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.JSON(), want) || !slices.Equal(again.Encode(sample), tok.Encode(sample)) {
			t.Errorf("%s is another tokenizer once read", name)
		}
	}
}

func addedJSON(id int, content string, normalized bool) string {
	flags := map[bool]string{true: "true", false: "false"}
	return `{"id":` + itoa(id) + `,"content":"` + content +
		`","single_word":false,"lstrip":false,"rstrip":false,"normalized":` +
		flags[normalized] + `,"special":true}`
}

func itoa(n int) string {
	return string([]byte{byte('0' + n/100), byte('0' + n/10%10), byte('0' + n%10)})
}

func TestParseReadsBothFormsOfMerges(t *testing.T) {
	tok := trained(t, 300, sample)
	text := string(tok.JSON())
	for _, m := range tok.merges.Merges() {
		left, right := toSymbols(tok.pieces[m.Left]), toSymbols(tok.pieces[m.Right])
		text = strings.Replace(text, `"`+left+" "+right+`"`, `["`+left+`", "`+right+`"]`, 1)
	}
	again, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.JSON(), tok.JSON()) {
		t.Error("merges as pairs give another tokenizer")
	}
}

func TestParseRefuses(t *testing.T) {
	good := string(trained(t, 258, "aaaa").JSON())
	for _, c := range []struct {
		name, from, to string
		want           error
	}{
		{"normalizer", `"normalizer": null`, `"normalizer": {"type":"Precompiled"}`, ErrUnsupported},
		{"truncation", `"truncation": null`, `"truncation": {"max_length":8}`, ErrUnsupported},
		{"another model", `"type": "BPE"`, `"type": "WordLevel"`, ErrUnsupported},
		{"dropout", `"dropout": null`, `"dropout": 0.1`, ErrUnsupported},
		{"suffix", `"end_of_word_suffix": null`, `"end_of_word_suffix": "</w>"`, ErrUnsupported},
		{"no decoder", `"decoder": {`, `"decoder": null, "post_processor": {`, ErrUnsupported},
		{"a byte is missing", `"!": 33,`, ``, ErrUnsupported},
		{"unknown field", `"version"`, `"verzion"`, ErrMalformed},
		{"more data", `"version"`, `"version": "1.0"} {"version"`, ErrMalformed},
		{"not JSON", `"version"`, `version`, ErrMalformed},
		{"id twice", `"!": 33`, `"!": 34`, ErrMalformed},
		{"id too large", `"!": 33`, `"!": 4000000000`, ErrMalformed},
		{"id negative", `"!": 33`, `"!": -1`, ErrMalformed},
		{"not a symbol", `"!": 33`, `"!": 33, "a b": 300`, ErrMalformed},
		{"merge of three", `"a a"`, `"a a a"`, ErrMalformed},
		{"merge of unknown", `"a a"`, `"a zz"`, ErrMalformed},
		{"merge without a whole", `"a a"`, `"a b"`, ErrMalformed},
		{"merge twice", `"a a"`, `"a a", ["a", "a"]`, ErrMalformed},
		{"empty added token", `"content": "<|endoftext|>"`, `"content": ""`, ErrMalformed},
		{"long added token", `"content": "<|endoftext|>"`, `"content": "` + strings.Repeat("x", 300) + `"`, ErrMalformed},
		{"added token has two ids", `"id": 257`, `"id": 400`, ErrMalformed},
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

func FuzzParse(f *testing.F) {
	f.Add(Bytes().JSON(), "some text")
	f.Add(trained(f, 280, sample).JSON(), sample)
	f.Add(parseFile(f, "testdata/llama3.json").JSON(), "x<l> <s>Ab 12345")
	f.Add([]byte(`{"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"_"},{"type":"NFKC"}]},
		"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first"},"decoder":{"type":"Fuse"},
		"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["_",-1],["a",-2],["_a",-2.5]]}}`), "a ab aa")
	f.Add([]byte(`{"normalizer":{"type":"BertNormalizer","lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},
		"decoder":{"type":"WordPiece","prefix":"##"},`+
		`"model":{"type":"WordPiece","unk_token":"u","vocab":{"u":0,"a":1,"##a":2}}}`), "A aaa É")
	f.Add([]byte(`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a+|\\s+(?!\\S)|\\s+"},"behavior":"MergedWithNext"},
		"decoder":{"type":"Fuse"},"model":{"type":"BPE","byte_fallback":true,`+
		`"vocab":{"a":0,"aa":1," ":2,"<0x62>":3},"merges":["a a"]}}`), " aab  a")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		tok, err := Parse(data)
		if err != nil {
			if !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnsupported) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		again, err := Parse(tok.JSON())
		if err != nil {
			t.Fatalf("own JSON refused: %v", err)
		}
		ids := tok.Encode(text)
		if !slices.Equal(ids, again.Encode(text)) {
			t.Fatalf("%q encodes differently after a round trip", text)
		}
		strips := slices.ContainsFunc(tok.addedTokens, func(a addedToken) bool { return a.LStrip || a.RStrip })
		if tok.parts == nil && !tok.prefixSpace && !strips && tok.Decode(ids) != text {
			t.Fatalf("%q decodes to %q", text, tok.Decode(ids))
		}
	})
}

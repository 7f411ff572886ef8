package data

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// textCorpus has the byte i*i mod 251 at position i, so that windows differ.
func textCorpus(t testing.TB, n int, valFraction float64) *Corpus {
	t.Helper()
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(i * i % 251)
	}
	c, err := Build([]source.File{{Format: source.Text, Data: text}}, tokenizer.Bytes(), valFraction)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func list(t Tokens) []uint32 {
	var out []uint32
	for i := range t.Len() {
		out = append(out, t.At(i))
	}
	return out
}

func TestBuildPutsNothingBetweenBytes(t *testing.T) {
	c, err := Build([]source.File{
		{Format: source.Text, Data: []byte("ab")},
		{Format: source.JSONL, Data: []byte("{\"text\":\"c\"}\n{\"text\":\"d\xff\"}")},
	}, tokenizer.Bytes(), 0.4)
	if err != nil {
		t.Fatal(err)
	}
	// JSON has no invalid UTF-8: the last byte has become U+FFFD.
	if got := tokenizer.Bytes().Decode(append(list(c.Train), list(c.Val)...)); got != "abcd\ufffd" || c.Val.Len() != 2 {
		t.Errorf("tokens %q, the last %d for validation; want abcd\ufffd and 2", got, c.Val.Len())
	}
}

func TestBuildEndsDocuments(t *testing.T) {
	tok, err := tokenizer.TrainBPE(slices.Values([]string{"abab"}), 300)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Build([]source.File{{Format: source.JSONL, Data: []byte("{\"text\":\"ab\"}\n{\"text\":\"c\"}")}}, tok, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.Decode(list(c.Train)), "ab"+tokenizer.EndOfText+"c"+tokenizer.EndOfText; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if c.Vocab != uint32(tok.VocabSize()) || c.Val.Len() != 0 {
		t.Errorf("vocabulary %d, %d validation tokens", c.Vocab, c.Val.Len())
	}
}

func TestBuildRefuses(t *testing.T) {
	text := []source.File{{Format: source.Text, Data: []byte("abc")}}
	for _, fraction := range []float64{-0.1, 1, 2, math.NaN()} {
		if _, err := Build(text, tokenizer.Bytes(), fraction); !errors.Is(err, ErrFraction) {
			t.Errorf("fraction %v: %v", fraction, err)
		}
	}
	for _, empty := range [][]source.File{nil, {{Format: source.Text}},
		{{Format: source.JSONL, Data: []byte("{\"text\":\"\"}")}}} {
		if _, err := Build(empty, tokenizer.Bytes(), 0); !errors.Is(err, ErrEmpty) {
			t.Errorf("%v: %v", empty, err)
		}
	}
}

func wideTokenizer(t *testing.T) *tokenizer.Tokenizer {
	t.Helper()
	text := strings.NewReplacer(`"added_tokens": [`, `"added_tokens": [{"id":70000,"content":"<far>"}`, `"vocab": {`,
		`"vocab": {"<far>": 70000,`).
		Replace(string(tokenizer.Bytes().JSON()))
	tok, err := tokenizer.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestShardsAssemble(t *testing.T) {
	wide, err := Build([]source.File{{Format: source.Text, Data: []byte("some <far> text, <far> away")}},
		wideTokenizer(t), 0.3)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Corpus{textCorpus(t, 1000, 0.1), wide} {
		for _, size := range []int{-1, 1, 7, 100, 1000, math.MaxInt} {
			m, shards := c.Manifest(size), c.Shards(size)
			again, err := DecodeManifest(m.Encode())
			if err != nil {
				t.Fatal(err)
			}
			got, err := Assemble(again, each(shards))
			if err != nil {
				t.Fatal(err)
			}
			if got.Vocab != c.Vocab || !slices.Equal(list(got.Train), list(c.Train)) ||
				!slices.Equal(list(got.Val), list(c.Val)) {
				t.Fatalf("shards of %d tokens give another corpus", size)
			}
			if again.Digest() != m.Digest() {
				t.Fatal("the digest has changed on the way")
			}
		}
	}
}

func TestShardBytesAreTheFormat(t *testing.T) {
	c, err := Build([]source.File{{Format: source.Text, Data: []byte("abc")}}, tokenizer.Bytes(), 0)
	if err != nil {
		t.Fatal(err)
	}
	shards, m := c.Shards(2), c.Manifest(2)
	if !bytes.Equal(bytes.Join(shards, []byte("|")), []byte("a\x00b\x00|c\x00")) {
		t.Errorf("shards %q", shards)
	}
	if want := canon.RootOf(1, canon.Leaf([]byte("c\x00"))); m.Shards[1] != want {
		t.Errorf("root %s, want %s", m.Shards[1], want)
	}
}

func TestAssembleRefuses(t *testing.T) {
	c := textCorpus(t, 1000, 0.1)
	shards := func() [][]byte {
		var out [][]byte
		for _, s := range c.Shards(300) {
			out = append(out, bytes.Clone(s))
		}
		return out
	}
	flipped, short, swapped := shards(), shards(), shards()
	flipped[1][0] ^= 1
	short[2] = short[2][:10]
	swapped[0], swapped[1] = swapped[1], swapped[0]
	for name, s := range map[string][][]byte{"a bit": flipped, "a length": short, "an order": swapped,
		"a beginning": {nil, nil, nil, nil}} {
		if _, err := Assemble(c.Manifest(300), each(s)); !errors.Is(err, ErrShard) {
			t.Errorf("%s wrong: %v", name, err)
		}
	}
	m := c.Manifest(300)
	m.Vocab = 100 // the text has bytes up to 250
	if _, err := Assemble(m, each(shards())); !errors.Is(err, ErrShard) {
		t.Errorf("a token beyond the vocabulary: %v", err)
	}
}

// each gives out shards one after the other.
func each(shards [][]byte) func(i int) ([]byte, error) {
	return func(i int) ([]byte, error) { return shards[i], nil }
}

func TestManifestRefuses(t *testing.T) {
	good := textCorpus(t, 1000, 0.1).Manifest(300)
	for name, change := range map[string]func(*Manifest){
		"no vocabulary":       func(m *Manifest) { m.Vocab = 0 },
		"huge vocabulary":     func(m *Manifest) { m.Vocab = 1<<31 + 1 },
		"width":               func(m *Manifest) { m.Width = 4 },
		"no tokens":           func(m *Manifest) { m.TrainTokens, m.ValTokens = 0, 0 },
		"tokens that wrap":    func(m *Manifest) { m.TrainTokens, m.ValTokens = 1<<63, 1<<63 },
		"empty shards":        func(m *Manifest) { m.ShardTokens = 0 },
		"too large shards":    func(m *Manifest) { m.ShardTokens = 1001 },
		"shards that wrap":    func(m *Manifest) { m.ShardTokens = math.MaxUint64 },
		"a shard is missing":  func(m *Manifest) { m.Shards = m.Shards[1:] },
		"a shard is left":     func(m *Manifest) { m.TrainTokens -= 300 },
		"no shards of nobody": func(m *Manifest) { *m = Manifest{} },
	} {
		m := good
		m.Shards = slices.Clone(m.Shards)
		change(&m)
		if _, err := DecodeManifest(m.Encode()); !errors.Is(err, ErrManifest) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeManifest(f *testing.F) {
	f.Add(textCorpus(f, 100, 0.1).Manifest(30).Encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := DecodeManifest(raw)
		if err != nil {
			if !errors.Is(err, ErrManifest) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		total := int64(0)
		for i := range m.Shards {
			total += m.ShardBytes(i)
		}
		if want := int64(m.TrainTokens+m.ValTokens) * int64(m.Width); total != want {
			t.Fatalf("shards of %d bytes for %d", total, want)
		}
	})
}

package compat

import (
	"embed"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/data/tokenizer"
)

// files are a tokenizer.json for each way in which published ones are put together, which tokenizers.mjs makes.
//
//go:embed tokenizers
var files embed.FS

// digests of the ids that Hugging Face's own library gives to each of Lines, by the names of files.
//
//go:embed tokenizers.expected.json
var digests []byte

// Tokenizer is the outcome of one tokenizer.json.
type Tokenizer struct {
	Name      string `json:"name"`
	Lines     int    `json:"lines"`
	Different int    `json:"different"`       // lines with other ids than Hugging Face's
	First     string `json:"first,omitempty"` // of them
	Error     string `json:"error,omitempty"` // why it does not load
}

// Tokenizers encodes Lines with every file, in ascending order of names.
func Tokenizers() ([]Tokenizer, error) {
	var want map[string][]uint32
	if err := json.Unmarshal(digests, &want); err != nil {
		return nil, fmt.Errorf("compat: %w", err)
	}
	lines := Lines()
	var out []Tokenizer
	for _, name := range slices.Sorted(maps.Keys(want)) {
		t := Tokenizer{Name: name, Lines: len(lines)}
		if err := t.compare(lines, want[name]); err != nil {
			t.Error = err.Error()
		}
		out = append(out, t)
	}
	return out, nil
}

func (t *Tokenizer) compare(lines []string, want []uint32) error {
	raw, err := fs.ReadFile(files, path.Join("tokenizers", t.Name+".json"))
	if err != nil {
		return err
	}
	tok, err := tokenizer.Parse(raw)
	if err != nil {
		return err
	}
	if len(want) != len(lines) {
		return fmt.Errorf("%d digests for %d lines", len(want), len(lines))
	}
	for i, line := range lines {
		if digest(tok.Encode(line)) == want[i] {
			continue
		}
		if t.Different++; t.First == "" {
			t.First = line
		}
	}
	return nil
}

// digest is FNV-1a of ids, as 32 bits in little endian.
func digest(ids []uint32) uint32 {
	h := fnv.New32a()
	for _, id := range ids {
		_, _ = h.Write([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}) // never fails
	}
	return h.Sum32()
}

// scripts are what Lines are made of.
var scripts = []string{
	"the cat", "The", "theirs", "isn't", "They've", "I'M", "WE'LL", "function", "HttpRequest", "snake_case", "x+=1;",
	"//", "https://a.b/c?d=e",
	"Straße", "garçon", "Żółw", "İstanbul", "ﬁne", "e\u0301te", "Ａｂｃ", "naïve", "Þór", "Ελλάδα", "γάτα", "Москва", "мир,",
	"Ёж", "שלום", "עִבְרִית",
	"مرحبا", "١٢٣", "नमस्ते", "दुनिया।", "สวัสดี", "日本語", "東京", "中文，你好", "你好世界", "한국어", "문장입니다.", "ሰላም", "ქართული", "Հայ",
	"😀", "👩‍🚀", "🇫🇷", "—", "“quoted”", "…", "£5", "½", "²", "Ⅷ", "12", "345", "6,789.01", "1e-9", "0x1F", "#$%", "[a]{b}",
	"<s>", "</s>",
	"<|endoftext|>", "<unk>", "[MASK]", "▁", "Ġ", "<0x41>", "\u00a0", "\u2028", "\u200b", "\u3000", "\ufeff",
}

// Lines are 1,000 lines of mixed scripts, the same every time.
func Lines() []string {
	r := rand.New(rand.NewPCG(24, 1000))
	gaps := []string{" ", " ", " ", " ", "", "  ", "\t", "\n", "   ", "\r\n", " \n ", "    "}
	lines := make([]string, 1000)
	for i := range lines {
		var b strings.Builder
		if r.IntN(4) == 0 {
			b.WriteString(gaps[r.IntN(len(gaps))])
		}
		for range 1 + r.IntN(12) {
			b.WriteString(scripts[r.IntN(len(scripts))])
			b.WriteString(gaps[r.IntN(len(gaps))])
		}
		if lines[i] = b.String(); r.IntN(3) > 0 {
			lines[i] = strings.TrimRight(lines[i], " \t\r\n")
		}
	}
	return lines
}

package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// prose is a text of n bytes or a few more.
func prose(n int) string {
	dice := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the bird, sings  of 12 7000 don't (rivers) Überflug 中文字 and\u00a0nothing... else")
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(words[dice.IntN(len(words))])
		b.WriteString([]string{" ", " ", " ", "  ", "\n", ".\n\n", " \n "}[dice.IntN(7)])
	}
	return b.String()
}

// A file of several blocks gives the tokens of each document in order, however many are encoded at once: of lines, and
// of one text that is divided.
func TestBlocksGiveTheTokensOfDocuments(t *testing.T) {
	text := prose(3*blockBytes + 12345)
	var lines bytes.Buffer
	var docs []string
	for i, rest := 0, text; len(rest) > 0; i++ {
		n := min(len(rest), 1+i*i%50000)
		line, err := json.Marshal(map[string]string{"text": rest[:n]})
		if err != nil {
			t.Fatal(err)
		}
		var back map[string]string // JSON has no half characters
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatal(err)
		}
		docs, rest = append(docs, back["text"]), rest[n:]
		lines.Write(append(line, '\n'))
	}
	tok, err := tokenizer.TrainBPE(slices.Values(docs[:20]), 400)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := tok.EndOfText()
	for _, c := range []struct {
		file source.File
		docs []string
	}{{source.File{Format: source.JSONL, Data: lines.Bytes()}, docs},
		{source.File{Format: source.Text, Data: []byte(text)}, []string{text}}} {
		want := Tokens{width: 2}
		for _, d := range c.docs {
			want = want.append(append(tok.EncodeText(d), end))
		}
		for _, processors := range []int{1, 3} {
			before := runtime.GOMAXPROCS(processors)
			var m memory
			var last Progress
			s, err := Write(&m, 4, []source.File{c.file}, tok, Choice{}, func(p Progress) error {
				last = p
				return nil
			})
			runtime.GOMAXPROCS(before)
			if err != nil || !bytes.Equal(m.raw[4:], want.raw) {
				t.Fatalf("%s: %d tokens, %v, and not the %d that were wanted", c.file.Format, s.Tokens, err, want.Len())
			}
			if last != (Progress{Bytes: int64(len(c.file.Data)), Tokens: s.Tokens}) {
				t.Errorf("%s: %+v of %d bytes", c.file.Format, last, len(c.file.Data))
			}
		}
	}
}

// full is a sink without room.
type full struct{ memory }

var errFull = errors.New("no room")

// WriteAt implements io.WriterAt.
func (f *full) WriteAt(p []byte, at int64) (int, error) {
	if at+int64(len(p)) > 1<<20 {
		return 0, errFull
	}
	return f.memory.WriteAt(p, at)
}

// The first error in the order of a file ends the work: of a line, of the sink, or of the watch.
func TestWriteEnds(t *testing.T) {
	line := "{\"text\":\"" + strings.Repeat("word ", 200) + "\"}\n"
	good := strings.Repeat(line, 5000)
	bad := good[:len(line)*4000] + "no json\n" + good[len(line)*4001:] + "none\n"
	write := func(to Sink, text string, watch func(Progress) error) error {
		_, err := Write(to, 0, []source.File{{Format: source.JSONL, Name: "f", Data: []byte(text)}}, tokenizer.Bytes(),
			Choice{}, watch)
		return err
	}
	at := (*source.Error)(nil)
	if err := write(&memory{}, bad, nil); !errors.As(err, &at) || at.Line != 4001 || !errors.Is(err, source.ErrLine) {
		t.Errorf("a bad line: %v", err)
	}
	if err := write(&full{}, good, nil); !errors.Is(err, errFull) {
		t.Errorf("no room: %v", err)
	}
	if err := write(&memory{}, good, func(Progress) error { return io.ErrClosedPipe }); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the watch ends it: %v", err)
	}
}

// goldens are the digests of corpora, as they were when whole files were read into memory.
var goldens = map[string]string{
	"bytes":  "15e2b630b176c96c78af674ae86d8fa0c238d17cb1731617b25eb1c23f72a071",
	"bpe":    "53ea086afef3602b4a57684bc805044d825d435d7f33df79677398986c2c7bff",
	"padded": "01e26af2b1c3dd0e212cbc7a79f837ec245ecac396f791ff75068d9ddbde4fae",
	"learnt": "dc5bad8d689dd40123ac04b8bead415f325b190409d8a22d58a9647b77306dc3",
}

// The same files in the same order have the same digest as ever.
func TestDigestsAreAsEver(t *testing.T) {
	text := prose(200_000)
	bpe, err := tokenizer.TrainBPE(slices.Values([]string{text[:20_000]}), 500)
	if err != nil {
		t.Fatal(err)
	}
	var lines, rows bytes.Buffer
	rows.WriteString("n,text\n")
	for i, d := range strings.Split(text, "\n\n") {
		line, _ := json.Marshal(map[string]string{"text": d})
		lines.Write(append(line, '\n'))
		fmt.Fprintf(&rows, "%d,%q\n", i, strings.NewReplacer("\n", " ", `"`, "").Replace(d))
	}
	files := []source.File{{Format: source.JSONL, Data: lines.Bytes()},
		{Format: source.Text, Data: []byte(text), Weight: 0.3},
		{Format: source.CSV, Data: rows.Bytes(), Weight: 2.5},
		{Format: source.NanoGPT, Data: []byte(strings.Repeat("\x01\x00\x02\x00", 50)), Weight: 1.5}}
	for name, c := range map[string]struct {
		by *tokenizer.Tokenizer
		Choice
	}{"bytes": {by: tokenizer.Bytes()}, "bpe": {by: bpe}, "padded": {bpe, Choice{Pad: 64}},
		"learnt": {bpe, Choice{Learnt: true}}} {
		corpus, err := BuildChosen(files, c.by, 0.1, c.Choice)
		if err != nil {
			t.Fatal(err)
		}
		if got := corpus.Manifest(10_000).Digest().String(); got != goldens[name] {
			t.Errorf("%q: %q,", name, got)
		}
	}
}

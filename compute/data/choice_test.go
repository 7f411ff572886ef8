package data_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// said makes a source of one document a line, of which what lies between < and > is said.
func said(text string) source.File {
	return source.File{Format: source.JSONL, Field: "x", Name: "x.jsonl", Data: []byte(text),
		Examples: func(object map[string]json.RawMessage) ([]source.Document, error) {
			text, raw, err := source.TextOf(object, "x")
			if text != nil || err != nil {
				return []source.Document{{Text: *text}}, err
			}
			raw = bytes.Trim(raw, "[]\"")
			from, to := bytes.IndexByte(raw, '<'), bytes.IndexByte(raw, '>')
			if from < 0 || to < 0 {
				return nil, errors.New("nothing is said")
			}
			return []source.Document{{Text: string(raw), Learnt: []source.TextRange{{From: from, To: to + 1}}}}, nil
		}}
}

// TestBuildChosen marks the tokens that are not to be predicted, through shards and back.
func TestBuildChosen(t *testing.T) {
	file := said("{\"x\":[\"ab<c>d\"]}\n{\"x\":\"e\"}\n{\"x\":[\"<f>\"]}\n")
	c, err := data.BuildChosen([]source.File{file}, tokenizer.Bytes(), 0, data.Choice{Learnt: true})
	if err != nil {
		t.Fatal(err)
	}
	const silent = 256
	want := []uint32{'a' + silent, 'b' + silent, '<', 'c', '>', 'd' + silent, 'e', '<', 'f', '>'}
	tokens := func(c *data.Corpus) (ids []uint32) {
		for i := range c.Train.Len() {
			ids = append(ids, c.Train.At(i))
		}
		return ids
	}
	if got := tokens(c); !slices.Equal(got, want) || c.Vocab != 2*silent {
		t.Errorf("%d of %d, want %d", got, c.Vocab, want)
	}
	again, err := data.Assemble(c.Manifest(4), func(i int) ([]byte, error) { return c.Shards(4)[i], nil })
	if err != nil || !slices.Equal(tokens(again), want) {
		t.Errorf("%v, %v", again, err)
	}
	whole, err := data.Build([]source.File{file}, tokenizer.Bytes(), 0)
	if err != nil || string(rune(whole.Train.At(0))) != "a" || whole.Vocab != silent {
		t.Errorf("%+v, %v", whole, err)
	}
	if whole.Manifest(4).Digest() == c.Manifest(4).Digest() {
		t.Error("what is said is in no digest")
	}
}

// TestPadding begins every document with a window, and trains no prediction of the padding.
func TestPadding(t *testing.T) {
	file := source.File{Format: source.JSONL, Field: "x", Name: "x.jsonl",
		Data: []byte("{\"x\":\"abcde\"}\n{\"x\":\"fghi\"}\n{\"x\":\"j\"}\n")}
	c, err := data.BuildChosen([]source.File{file}, tokenizer.Bytes(), 0.3, data.Choice{Pad: 4})
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for i := range c.Train.Len() + c.Val.Len() {
		part, at := c.Train, i
		if i >= part.Len() {
			part, at = c.Val, i-part.Len()
		}
		if id := part.At(at); id < 256 {
			got = append(got, byte(id))
		} else {
			got = append(got, '.')
		}
	}
	if string(got) != ".bcde....ghi...." || c.Val.Len() != 4 || c.Vocab != 512 {
		t.Errorf("%q, %d held out, a vocabulary of %d", got, c.Val.Len(), c.Vocab)
	}
}

// TestGroups cuts the documents of an example to one length each, and divides the corpus between examples.
func TestGroups(t *testing.T) {
	file := source.File{Format: source.JSONL, Name: "x.jsonl", Data: []byte("{\"a\":\"12\",\"b\":\"345678\"}\n" +
		"{\"a\":\"qrst\",\"b\":\"u\"}\n{\"a\":\"xyz\",\"b\":\"XYZ\"}\n"),
		Examples: func(object map[string]json.RawMessage) (docs []source.Document, err error) {
			for _, key := range []string{"a", "b"} {
				text := "?" + strings.Trim(string(object[key]), "\"")
				docs = append(docs, source.Document{Text: text, Learnt: []source.TextRange{{From: 1, To: len(text)}}})
			}
			return docs, nil
		}}
	build := func(pad int) (*data.Corpus, error) {
		return data.BuildChosen([]source.File{file}, tokenizer.Bytes(), 0.4,
			data.Choice{Learnt: true, Pad: pad, Group: 2})
	}
	c, err := build(4)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	for i := range c.Train.Len() {
		id := c.Train.At(i)
		if id >= 256 {
			id = '.'
		}
		got = append(got, byte(id))
	}
	if string(got) != ".12..345.qrs.u.." || c.Val.Len() != 8 {
		t.Errorf("%q, %d held out", got, c.Val.Len())
	}
	if _, err := build(1); !errors.Is(err, data.ErrUnlearnt) || !strings.Contains(err.Error(), "x.jsonl: example 1") {
		t.Errorf("answers that are cut off: %v", err)
	}
	var docs []string
	for d, err := range file.Documents(1<<20, nil) {
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, d.Text)
	}
	if len(docs) != 6 || docs[5] != "?XYZ" {
		t.Errorf("%q", docs)
	}
	if p := source.NewProfile(file, 5); p.Documents != 6 || len(p.Faults) > 0 {
		t.Errorf("%+v", p)
	}
}

// An answer that is drawn follows a prompt, and is one text that has room.
func TestAnswersHavePrompts(t *testing.T) {
	for text, want := range map[string]string{"?ab": "", "ab": "no prompt", "??a": "2 are the prompt's: at most 1 of a",
		"?abcd": "at most 1 of a prompt and 3 of an answer", "????a": "5 tokens, of which 4"} {
		from := strings.LastIndex(text, "?") + 1
		file := source.File{Format: source.JSONL, Name: "x.jsonl", Data: []byte("{\"a\":\"?x\"}\n{\"a\":\"" + text + "\"}\n"),
			Examples: func(object map[string]json.RawMessage) ([]source.Document, error) {
				said := strings.Trim(string(object["a"]), "\"")
				if said == "?x" {
					return []source.Document{{Text: said, Learnt: []source.TextRange{{From: 1, To: 2}}}}, nil
				}
				return []source.Document{{Text: said, Learnt: []source.TextRange{{From: from, To: len(said)}}}}, nil
			}}
		_, err := data.BuildChosen([]source.File{file}, tokenizer.Bytes(), 0,
			data.Choice{Learnt: true, Pad: 6, Group: 1, Answer: 3, Room: 2})
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, data.ErrAnswer) ||
			!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "x.jsonl: example 2")) {
			t.Errorf("%q: %v, wanted %q", text, err, want)
		}
	}
}

// TestWeights repeats files, and takes parts of them.
func TestWeights(t *testing.T) {
	for weight, want := range map[float64]string{0: "abcdx", 1: "abcdx", 2: "abcdabcdx", 0.5: "abx", 2.25: "abcdabcdax"} {
		sources := []source.File{{Format: source.Text, Name: "a", Data: []byte("abcd"), Weight: weight},
			{Format: source.Text, Name: "b", Data: []byte("x")}}
		c, err := data.Build(sources, tokenizer.Bytes(), 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for i := range c.Train.Len() {
			got = append(got, byte(c.Train.At(i)))
		}
		if string(got) != want {
			t.Errorf("%v times: %q, want %q", weight, got, want)
		}
	}
}

package data_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/tokenizer"
)

// said makes a source of one document a line, of which what lies between < and > is said.
func said(text string) data.Source {
	return data.Source{Format: data.JSONL, Field: "x", Name: "x.jsonl", Data: []byte(text),
		Render: func(raw []byte) (d data.Document, err error) {
			raw = bytes.Trim(raw, "[]\"")
			from, to := bytes.IndexByte(raw, '<'), bytes.IndexByte(raw, '>')
			if from < 0 || to < 0 {
				return d, errors.New("nothing is said")
			}
			d.Text = string(raw)
			d.Said = []data.Span{{From: from, To: to + 1}}
			return d, nil
		}}
}

// TestBuildChosen marks the tokens that are not to be predicted, through shards and back.
func TestBuildChosen(t *testing.T) {
	source := said("{\"x\":[\"ab<c>d\"]}\n{\"x\":\"e\"}\n{\"x\":[\"<f>\"]}\n")
	c, err := data.BuildChosen([]data.Source{source}, tokenizer.Bytes(), 0, data.Choice{Said: true})
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
	again, err := data.Assemble(c.Manifest(4), c.Shards(4))
	if err != nil || !slices.Equal(tokens(again), want) {
		t.Errorf("%v, %v", again, err)
	}
	whole, err := data.Build([]data.Source{source}, tokenizer.Bytes(), 0)
	if err != nil || string(rune(whole.Train.At(0))) != "a" || whole.Vocab != silent {
		t.Errorf("%+v, %v", whole, err)
	}
	if whole.Manifest(4).Digest() == c.Manifest(4).Digest() {
		t.Error("what is said is in no digest")
	}
}

// TestPadding begins every document with a window, and lets nobody predict what is beside the text.
func TestPadding(t *testing.T) {
	source := data.Source{Format: data.JSONL, Field: "x", Name: "x.jsonl",
		Data: []byte("{\"x\":\"abcde\"}\n{\"x\":\"fghi\"}\n{\"x\":\"j\"}\n")}
	c, err := data.BuildChosen([]data.Source{source}, tokenizer.Bytes(), 0.3, data.Choice{Pad: 4})
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

// TestWeights repeats files, and takes parts of them.
func TestWeights(t *testing.T) {
	for weight, want := range map[float64]string{0: "abcdx", 1: "abcdx", 2: "abcdabcdx", 0.5: "abx", 2.25: "abcdabcdax"} {
		sources := []data.Source{{Format: data.Text, Name: "a", Data: []byte("abcd"), Weight: weight},
			{Format: data.Text, Name: "b", Data: []byte("x")}}
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

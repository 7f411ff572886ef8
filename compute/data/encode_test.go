package data

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
)

// Many documents, some long, are the tokens of each in their order, however many are encoded at once.
func TestDocumentsKeepTheirOrder(t *testing.T) {
	var docs []Document
	for i := range 400 {
		docs = append(docs, Document{Text: strings.Repeat(fmt.Sprintf("document %d has words; ", i), 1+i*i%1000)})
	}
	tok, err := tokenizer.TrainBPE(slices.Values(texts(docs[:20])), 300)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := tok.EndOfText()
	want := Tokens{width: 2}
	for _, d := range docs {
		want = want.append(append(tok.EncodeText(d.Text), end))
	}
	got := Tokens{width: 2}.append([]uint32{7}).encoded(docs, tok)
	if got.At(0) != 7 || !bytes.Equal(got.raw[2:], want.raw) {
		t.Errorf("%d tokens, and not the %d that were wanted", got.Len()-1, want.Len())
	}
	for n := range 4 {
		var all []Document
		for _, part := range shares(docs, n+1) {
			all = append(all, part...)
		}
		if len(all) == 0 || all[0].Text != docs[0].Text || len(shares(docs, n+1)) > n+1 {
			t.Errorf("%d shares of %d documents", n+1, len(all))
		}
	}
}

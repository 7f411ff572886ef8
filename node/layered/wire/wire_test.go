package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/modeltest"
)

func layout(t testing.TB) section.Layout {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama, modeltest.Llama())
	if err != nil {
		t.Fatal(err)
	}
	l, err := section.Divide(c, 2)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// pass continues a sequence of the model of modeltest by some tokens.
func pass(id uint64, start, count int) section.Pass {
	return section.Pass{Piece: count > 1, Rows: []section.Row{{ID: id, Start: start, Count: count, Limit: 8}},
		Hidden: make([]float32, 12*count)}
}

func questions() []Question {
	two := pass(1, 3, 1)
	two.Rows = append(two.Rows, section.Row{ID: 2, Count: 1, Limit: 7})
	two.Hidden = make([]float32, 24)
	two.Hidden[5] = 1.5
	return []Question{{Kind: KindHello, Model: [32]byte{1, 2}}, {Kind: KindEnd, ID: 9},
		{Kind: KindPass, Passes: []section.Pass{two}},
		{Kind: KindAgain, Passes: []section.Pass{pass(3, 0, 5), pass(3, 5, 1)}}}
}

func TestQuestions(t *testing.T) {
	l := layout(t)
	for _, q := range questions() {
		if got, err := ReadQuestion(q.Encode(), l); err != nil || !reflect.DeepEqual(got, q) {
			t.Errorf("%+v is read as %+v, %v", q, got, err)
		}
	}
	other := pass(4, 0, 1)
	for name, q := range map[string]Question{
		"passes of two sequences": {Kind: KindAgain, Passes: []section.Pass{pass(3, 0, 1), other}},
		"two passes":              {Kind: KindPass, Passes: []section.Pass{pass(3, 0, 1), other}},
		"no pass":                 {Kind: KindPass},
		"beyond the context":      {Kind: KindPass, Passes: []section.Pass{pass(3, 8, 1)}},
		"no kind":                 {Kind: 77},
	} {
		if _, err := ReadQuestion(q.Encode(), l); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	for _, a := range []Answer{{Kind: KindHello, Hello: Hello{Weights: [32]byte{3}, Stages: 4, Stage: 2}},
		{Kind: KindPass, Hidden: []float32{1, -2}}, {Kind: KindAgain, Digests: make([]canon.Digest, 2)}, {Kind: KindEnd}} {
		if got, err := ReadAnswer(a.Encode(), a.Kind, 2); err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v is read as %+v, %v", a, got, err)
		}
	}
	var told *Refused
	if _, err := ReadAnswer(Refuse("no room"), KindPass, 2); !errors.As(err, &told) || told.Reason != "no room" {
		t.Error(err)
	}
	for _, b := range [][]byte{nil, {KindPass, 0, 0, 0, 0}, append(make([]byte, 0), KindEnd)} {
		if _, err := ReadAnswer(b, KindPass, 2); !errors.Is(err, ErrFrame) {
			t.Errorf("%v: %v", b, err)
		}
	}
}

func FuzzReadQuestion(f *testing.F) {
	for _, q := range questions() {
		f.Add(q.Encode())
	}
	f.Add([]byte{KindAgain, 255, 255, 1})
	l := layout(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := ReadQuestion(b, l)
		if err != nil {
			return
		}
		if !bytes.Equal(q.Encode(), b) {
			t.Errorf("%v is read as %+v", b, q)
		}
		for _, p := range q.Passes {
			if err := l.Check(p); err != nil || len(p.Hidden) != p.Tokens()*l.Config.Width {
				t.Errorf("%+v: %v", p, err)
			}
		}
	})
}

func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte{KindHello, 1}, KindHello)
	f.Add(Refuse("why"), KindPass)
	f.Fuzz(func(t *testing.T, b []byte, kind byte) {
		a, err := ReadAnswer(b, kind, 2)
		if err == nil && kind >= KindHello && kind <= KindEnd && !bytes.Equal(a.Encode(), b) {
			t.Errorf("%v is read as %+v", b, a)
		}
	})
}

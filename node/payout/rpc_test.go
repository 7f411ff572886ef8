package payout

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/starling-network/starling/protocol/payout"
)

func TestSources(t *testing.T) {
	s, err := ParseSource("1=https://node.example/key#21000000")
	if err != nil || s.EVM != 1 || s.RPC.URL != "https://node.example/key" || s.From != 21_000_000 {
		t.Errorf("%+v (%v)", s, err)
	}
	for _, text := range []string{"", "1", "x=http://a", "1=ftp://a", "1=http://a#x"} {
		if s, err := ParseSource(text); err == nil {
			t.Errorf("%q is %+v", text, s)
		}
	}
}

// FuzzAnswers has a node of another chain answer anything: every answer is read, or an error, and deposits count in the
// order of their numbers alone.
func FuzzAnswers(f *testing.F) {
	var answer []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }))
	defer server.Close()
	r := RPC{server.URL}
	topic := `"0x` + string(bytes.Repeat([]byte("01"), 32)) + `"`
	f.Add([]byte(`{"result":"0x539"}`))
	f.Add([]byte(`{"error":{"message":"no"}}`))
	f.Add([]byte(`{"result":[{"topics":[` + topic + "," + topic + "," + topic + `],"data":"0x` +
		string(bytes.Repeat([]byte("02"), 96)) + `"}]}`))
	f.Add([]byte(`{"result":[{"topics":[],"data":"0x"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		answer = text
		if _, err := r.Chain(t.Context()); err != nil && !errors.Is(err, ErrRPC) {
			t.Error(err)
		}
		_, err := r.count(context.Background(), payout.Address{}, "setNumber()", latest)
		if err != nil && !errors.Is(err, ErrRPC) {
			t.Error(err)
		}
		all, err := r.deposits(t.Context(), payout.Address{}, 0, 1, 1)
		if err != nil && !errors.Is(err, ErrRPC) {
			t.Error(err)
		}
		for _, d := range all {
			if len(d.To) != 20 || len(d.Amount) > 32 {
				t.Errorf("%+v", d)
			}
		}
	})
}

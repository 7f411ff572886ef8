package answer_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/answer"
)

func receipt() answer.Receipt {
	return answer.Receipt{Chain: "starling-1", Model: 3, Weights: canon.Sum("weights"), Program: canon.Sum("program"),
		Prompt: []int32{1, 2, 3}, Answer: []int32{4, 5}, Asked: 2, Temperature: 700_000, TopP: answer.Million, Seed: 7,
		Height: 10, Provider: "starling1provider"}
}

var errKey = errors.New("another key")

// signed is a signature that is the key and the digest.
func signed(address string, key []byte, digest canon.Digest, signature []byte) error {
	if address != "starling1"+string(key) || string(signature) != string(key)+string(digest[:]) {
		return errKey
	}
	return nil
}

func sign(t testing.TB, r answer.Receipt) answer.Signed {
	key := []byte("provider")
	s, err := answer.Sign(r, key, func(m []byte) ([]byte, error) { return append(slices.Clone(key), m...), nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReceiptIsSigned(t *testing.T) {
	s, err := answer.Decode(sign(t, receipt()).Encode())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(signed); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(s *answer.Signed){
		"chain":       func(s *answer.Signed) { s.Receipt.Chain = "starling-2" },
		"model":       func(s *answer.Signed) { s.Receipt.Model++ },
		"weights":     func(s *answer.Signed) { s.Receipt.Weights[3]++ },
		"program":     func(s *answer.Signed) { s.Receipt.Program[3]++ },
		"prompt":      func(s *answer.Signed) { s.Receipt.Prompt = []int32{1, 2, 4} },
		"border":      func(s *answer.Signed) { s.Receipt.Prompt, s.Receipt.Answer = []int32{1, 2}, []int32{3, 4} },
		"answer":      func(s *answer.Signed) { s.Receipt.Answer = []int32{4, 6} },
		"asked":       func(s *answer.Signed) { s.Receipt.Asked, s.Receipt.Stopped = 3, true },
		"stopped":     func(s *answer.Signed) { s.Receipt.Stopped = true },
		"temperature": func(s *answer.Signed) { s.Receipt.Temperature = 0 },
		"top_p":       func(s *answer.Signed) { s.Receipt.TopP-- },
		"seed":        func(s *answer.Signed) { s.Receipt.Seed++ },
		"first":       func(s *answer.Signed) { s.Receipt.First++ },
		"height":      func(s *answer.Signed) { s.Receipt.Height++ },
		"provider":    func(s *answer.Signed) { s.Receipt.Provider = "starling1other" },
		"key":         func(s *answer.Signed) { s.Key = []byte("other") },
		"signature":   func(s *answer.Signed) { s.Signature = s.Signature[1:] },
	} {
		s := sign(t, receipt())
		change(&s)
		if err := s.Verify(signed); !errors.Is(err, answer.ErrForged) || !errors.Is(err, errKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReceiptsThatSayNothing(t *testing.T) {
	for name, change := range map[string]func(r *answer.Receipt){
		"no chain":         func(r *answer.Receipt) { r.Chain = "" },
		"a long chain":     func(r *answer.Receipt) { r.Chain = strings.Repeat("x", 129) },
		"no provider":      func(r *answer.Receipt) { r.Provider = "" },
		"no weights":       func(r *answer.Receipt) { r.Weights = canon.Digest{} },
		"no program":       func(r *answer.Receipt) { r.Program = canon.Digest{} },
		"no prompt":        func(r *answer.Receipt) { r.Prompt = nil },
		"no answer":        func(r *answer.Receipt) { r.Answer = nil },
		"too many tokens":  func(r *answer.Receipt) { r.Prompt = make([]int32, answer.MaxTokens-1) },
		"an early end":     func(r *answer.Receipt) { r.Asked = 3 },
		"more than asked":  func(r *answer.Receipt) { r.Asked = 1 },
		"asked for ever":   func(r *answer.Receipt) { r.Asked, r.Stopped = answer.MaxTokens+1, true },
		"a high fever":     func(r *answer.Receipt) { r.Temperature = 100*answer.Million + 1 },
		"no nucleus":       func(r *answer.Receipt) { r.TopP = 0 },
		"more than all":    func(r *answer.Receipt) { r.TopP = answer.Million + 1 },
		"no height":        func(r *answer.Receipt) { r.Height = 0 },
		"a far draw":       func(r *answer.Receipt) { r.First = 1<<32 + 1 },
		"a negative token": func(r *answer.Receipt) { r.Answer = []int32{4, -1} },
	} {
		r := receipt()
		change(&r)
		if err := r.Check(); !errors.Is(err, answer.ErrReceipt) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := answer.Sign(r, nil, nil); !errors.Is(err, answer.ErrReceipt) {
			t.Errorf("%s is signed: %v", name, err)
		}
		if _, err := answer.Decode(answer.Signed{Receipt: r}.Encode()); !errors.Is(err, answer.ErrReceipt) {
			t.Errorf("%s is read: %v", name, err)
		}
	}
}

func TestLengthsAndParts(t *testing.T) {
	for tokens, want := range map[int]int{1: 64, 64: 64, 65: 128, 2049: 4096, 4096: 4096} {
		if n := answer.Length(tokens); n != want {
			t.Errorf("a program for %d tokens reads %d", tokens, n)
		}
	}
	r := receipt()
	r.Answer = make([]int32, 300)
	for from, want := range map[uint32]int{0: 256, 44: 256, 256: 44, 299: 1} {
		if part, err := r.Part(from); err != nil || len(part) != want {
			t.Errorf("from %d on: %d tokens, %v", from, len(part), err)
		}
	}
	for _, from := range []uint32{300, 1<<32 - 1} {
		if _, err := r.Part(from); !errors.Is(err, answer.ErrWindow) {
			t.Errorf("from %d on: %v", from, err)
		}
	}
}

// The longest receipt has room.
func TestLongestReceipt(t *testing.T) {
	r := receipt()
	r.Prompt = slices.Repeat([]int32{1<<31 - 1}, answer.MaxTokens-2)
	r.Chain, r.Provider = strings.Repeat("x", 128), strings.Repeat("x", 128)
	b := answer.Signed{Receipt: r, Key: make([]byte, 33), Signature: make([]byte, 64)}.Encode()
	if _, err := answer.Decode(b); err != nil {
		t.Error(err)
	}
	if _, err := answer.Decode(make([]byte, answer.MaxBytes+1)); !errors.Is(err, answer.ErrReceipt) {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(sign(f, receipt()).Encode())
	r := receipt()
	r.Answer, r.Asked, r.Stopped = []int32{1 << 30}, 5, true
	f.Add(sign(f, r).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := answer.Decode(b)
		if err != nil {
			if !errors.Is(err, answer.ErrReceipt) {
				t.Fatal(err)
			}
			return
		}
		if string(s.Encode()) != string(b) {
			t.Fatal("accepted bytes that Encode does not produce")
		}
		if _, err := s.Receipt.Part(uint32(len(s.Receipt.Answer)) - 1); err != nil {
			t.Fatal(err)
		}
		if n := s.Receipt.Length(); n < len(s.Receipt.Prompt)+len(s.Receipt.Answer) || n > answer.MaxTokens {
			t.Fatalf("a program for %d tokens", n)
		}
	})
}

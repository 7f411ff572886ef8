package hidden

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/arena"
)

func examples() [][]uint32 {
	all := make([][]uint32, arena.MinExamples)
	for i := range all {
		all[i] = []uint32{uint32(i), 1, 2, 3}[:2+i%3]
	}
	return all
}

func TestSet(t *testing.T) {
	s, err := New(canon.Sum("key"), 200, examples())
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(s.Encode())
	if err != nil || back.Root() != s.Root() || back.Length() != 4 ||
		!slices.EqualFunc(back.Tokens(), examples(), slices.Equal) {
		t.Fatalf("%+v, %v", back, err)
	}
	terms := arena.Terms{Set: s.Root(), Examples: arena.MinExamples, Vocab: 200, Length: 4}
	if err := s.Of(terms); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Set){
		"another key":        func(s *Set) { s.Key = canon.Sum("other") },
		"another token":      func(s *Set) { s.Examples[0][0]++ },
		"another order":      func(s *Set) { s.Examples[0], s.Examples[3] = s.Examples[3], s.Examples[0] },
		"another vocabulary": func(s *Set) { s.Vocab++ },
	} {
		other, _ := New(canon.Sum("key"), 200, examples())
		change(&other)
		if err := other.Of(terms); !errors.Is(err, ErrSet) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*Set){
		"another format":   func(s *Set) { s.Format = "x" },
		"no key":           func(s *Set) { s.Key = canon.Digest{} },
		"few examples":     func(s *Set) { s.Examples = s.Examples[1:] },
		"one token":        func(s *Set) { s.Examples[0] = s.Examples[0][:4] },
		"half a token":     func(s *Set) { s.Examples[0] = s.Examples[0][:7] },
		"a token too many": func(s *Set) { binary.LittleEndian.PutUint32(s.Examples[1], 200) },
	} {
		other, _ := New(canon.Sum("key"), 200, examples())
		change(&other)
		if _, err := Decode(other.Encode()); !errors.Is(err, ErrSet) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The file of a stranger decodes to the same bytes, or is refused.
func FuzzDecode(f *testing.F) {
	s, err := New(canon.Sum("key"), 200, examples())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(s.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Decode(data)
		if err != nil {
			return
		}
		if string(s.Encode()) != string(data) || s.Length() < 2 || len(s.Tokens()) < arena.MinExamples {
			t.Errorf("%x is taken", data)
		}
	})
}

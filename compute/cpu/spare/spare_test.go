package spare

import "testing"

// A thing has one taker at a time, and none is kept for which there is no room.
func TestSpares(t *testing.T) {
	var s Spares[string]
	s.Put(1, "a", most/2)
	s.Put(1, "another", 1)
	s.Put(2, "b", most/2)
	if x, ok := s.Take(1); !ok || x != "a" {
		t.Errorf("1 is %q, %v", x, ok)
	}
	for i := range 3 {
		if x, ok := s.Take(i); ok {
			t.Errorf("%d is %q", i, x)
		}
	}
	s.Put(2, "b", most-each)
	if x, ok := s.Take(2); !ok || x != "b" {
		t.Errorf("2 is %q, %v", x, ok)
	}
}

package sums

import (
	"strconv"
	"strings"
	"testing"
)

// A row is a sum that is right, its prompt silent, and no sum that is held out is learned from.
func TestSums(t *testing.T) {
	held := map[string]bool{}
	for _, from := range []*Stream{{Seed: 1, Number: 3, Held: true}, {Seed: 2, Number: 1}} {
		rows := make([]int32, 2000*(Length+1))
		from.Fill(rows)
		for row := 0; row < len(rows); row += Length + 1 {
			var text strings.Builder
			for i, id := range rows[row:][:Length] {
				if (id >= Silent) != (i < Prompt) {
					t.Fatalf("row %d: token %d is %d", row, i, id)
				}
				text.WriteByte(byte(id % Silent))
			}
			asked, answer, _ := strings.Cut(text.String(), "=")
			a, b, _ := strings.Cut(asked, "+")
			if number(t, a)+number(t, b) != number(t, answer) {
				t.Fatalf("%s is wrong", text.String())
			}
			if from.Held {
				held[asked] = true
			} else if held[asked] {
				t.Errorf("%s is held out and learned from", asked)
			}
		}
	}
}

// number reads digits whose first is that of ones.
func number(t *testing.T, text string) (n int) {
	for i := len(text) - 1; i >= 0; i-- {
		d, err := strconv.Atoi(text[i : i+1])
		if err != nil {
			t.Fatal(err)
		}
		n = 10*n + d
	}
	return n
}

package reinforce

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
)

// long is given by .ci/run.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "train a model for some steps")

// A row is a sum that is right, its prompt silent, and no sum that is held out is learned from.
func TestSums(t *testing.T) {
	held := map[string]bool{}
	for _, from := range []*sums{{seed: 1, stream: 3, held: true}, {seed: 2, stream: 1}} {
		rows := make([]int32, 2000*(length+1))
		from.fill(rows)
		for row := 0; row < len(rows); row += length + 1 {
			var text strings.Builder
			for i, id := range rows[row:][:length] {
				if (id >= silent) != (i < prompt) {
					t.Fatalf("row %d: token %d is %d", row, i, id)
				}
				text.WriteByte(byte(id % silent))
			}
			asked, answer, _ := strings.Cut(text.String(), "=")
			a, b, _ := strings.Cut(asked, "+")
			if number(t, a)+number(t, b) != number(t, answer) {
				t.Fatalf("%s is wrong", text.String())
			}
			if from.held {
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

// A model that learns for some steps is measured as a whole.
func TestMeasure(t *testing.T) {
	if !*long {
		t.Skip("it takes some seconds: -long")
	}
	r, err := Measure(t.Context(), Options{Seeds: 1, Steps: 5, Rounds: 2, Played: 6, Threads: 1,
		Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if run := r.Runs[0]; run.Before < shownUntil || run.Steps != 5 || run.After <= 0 || !r.Bars[4].Holds {
		t.Errorf("%+v", r)
	}
}

package factors

import (
	"context"
	"testing"
)

func TestWays(t *testing.T) {
	ways, err := Measure(context.Background(), Size{Owners: 10, Rounds: 10, Base: 400}, func(string) {})
	for _, w := range ways {
		t.Log(w)
	}
	if err != nil {
		t.Fatal(err)
	}
}

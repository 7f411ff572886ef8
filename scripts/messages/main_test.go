package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/starling-network/starling/compute/philox"
)

// The data of the examples is what the program draws.
func TestMessages(t *testing.T) {
	for _, c := range []struct {
		name  string
		seed  uint64
		count int
		write func(*philox.Reader, kind) any
	}{{"messages", 1, 1000, labelled}, {"replies", 2, 2000, answered}} {
		var drawn bytes.Buffer
		if err := lines(&drawn, philox.New(c.seed, 0), c.count, c.write); err != nil {
			t.Fatal(err)
		}
		kept, err := os.ReadFile("../../examples/messages/" + c.name + ".jsonl")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(drawn.Bytes(), kept) {
			t.Errorf("the example has other %s", c.name)
		}
	}
}

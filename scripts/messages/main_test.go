package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/starling-network/starling/compute/philox"
)

// The data of the example is what the program draws.
func TestMessages(t *testing.T) {
	var drawn bytes.Buffer
	if err := write(&drawn, philox.New(1, 0), 1000); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../../examples/messages/messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn.Bytes(), kept) {
		t.Error("the example has other messages")
	}
}

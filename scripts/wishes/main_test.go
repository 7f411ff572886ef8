package main

import (
	"bytes"
	"os"
	"testing"
)

// The data of the example is what the program draws.
func TestWishes(t *testing.T) {
	var drawn bytes.Buffer
	if err := write(&drawn, 1, 1000); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../../examples/wishes/wishes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(drawn.Bytes(), kept) {
		t.Error("the example has other wishes")
	}
}

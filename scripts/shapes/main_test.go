package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/philox"
)

// The data of the example is what the program draws; the compression of its images may be another.
func TestShapes(t *testing.T) {
	var drawn bytes.Buffer
	if err := write(&drawn, philox.New(1, 0), 40, 12); err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile("../../examples/shapes/images.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(kept, []byte("\n"))
	for i, line := range bytes.Split(bytes.TrimSpace(drawn.Bytes()), []byte("\n")) {
		if a, b := decoded(t, line), decoded(t, lines[i]); a != b {
			t.Fatalf("image %d is %q, the example has %q", i, a, b)
		}
	}
}

func decoded(t *testing.T, line []byte) string {
	t.Helper()
	var one struct {
		Image []byte
		Label string
	}
	if err := json.Unmarshal(line, &one); err != nil {
		t.Fatal(err)
	}
	p, err := picture.Decode(one.Image)
	if err != nil {
		t.Fatal(err)
	}
	return one.Label + p.Size.String() + string(p.Values)
}

package boxed

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

// A frame is what was written, nothing is larger than its limit, and one that is cut off is an error.
func TestFrames(t *testing.T) {
	var b bytes.Buffer
	if err := WriteFrame(&b, []byte("begun"), 5); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	if got, err := ReadFrame(bytes.NewReader(whole), 5); err != nil || string(got) != "begun" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ReadFrame(bytes.NewReader(whole), 4); !errors.Is(err, ErrFrame) {
		t.Errorf("too large: %v", err)
	}
	if _, err := ReadFrame(bytes.NewReader(whole[:7]), 5); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
	if err := WriteFrame(io.Discard, []byte("begun"), 4); !errors.Is(err, ErrFrame) {
		t.Errorf("too large to write: %v", err)
	}
}

// Output of a child is cleaned of control characters for the terminal.
func TestClip(t *testing.T) {
	if got := Clip("a\x1b[31m\n\tb\xff"+strings.Repeat("c", 10), 8); got != "cccccccc" {
		t.Errorf("%q", got)
	}
	if got := Clip("a\x1b[31m\n\tb\xff", 80); got != "a?[31m b?" {
		t.Errorf("%q", got)
	}
}

// No bytes do more than give a frame within the limit, or an error.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{2, 0, 0, 0, 'a', 'b'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, err := ReadFrame(bytes.NewReader(b), 1<<10); err == nil && len(got) > 1<<10 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

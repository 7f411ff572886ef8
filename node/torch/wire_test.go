package torch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func frame(body string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// A reply is taken in one form only, and nothing that it says is larger than its limit.
func TestReadReply(t *testing.T) {
	for body, fails := range map[string]bool{
		`{"type":"stepped","loss":2.5}`: false, `{"type":"stepped","loss":null}`: false, `{"type":"begun"}`: false,
		`{"type":"begun"} {}`: true, `{"type":"begun","more":1}`: true, `{}`: true, `[]`: true, ``: true, `{"type":1}`: true,
		`{"type":"stepped","loss":1e400}`: true,
		`{"type":"stepped","loss":NaN}`:   true,
	} {
		if _, err := readReply(bytes.NewReader(frame(body))); (err != nil) != fails || fails && !errors.Is(err, errReply) {
			t.Errorf("%s: %v", body, err)
		}
	}
	large := binary.LittleEndian.AppendUint32(nil, maxReply+1)
	if _, err := readReply(bytes.NewReader(large)); !errors.Is(err, errReply) {
		t.Errorf("too large: %v", err)
	}
	if _, err := readReply(bytes.NewReader(frame(`{"type":"begun"}`)[:9])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
}

// Messages of a child are cleaned of control characters for the terminal.
func TestClip(t *testing.T) {
	if got := clip("a\x1b[31m\n\tb\xff"+strings.Repeat("c", 10), 8); got != "cccccccc" {
		t.Errorf("%q", got)
	}
	if got := clip("a\x1b[31m\n\tb\xff", 80); got != "a?[31m b?" {
		t.Errorf("%q", got)
	}
}

// No bytes of a child do more than give a reply or an error.
func FuzzReadReply(f *testing.F) {
	for _, body := range []string{`{"type":"stepped","loss":2.5}`, `{"type":"error","code":"STEP","message":"x"}`, `{`,
		``} {
		f.Add(frame(body))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readReply(bytes.NewReader(b))
		if err != nil {
			return
		}
		if r.Type == "" || len(r.Message) > maxReply {
			t.Errorf("%+v was taken", r)
		}
		if x := float64(r.loss()); r.Loss == nil && !math.IsNaN(x) {
			t.Errorf("a loss of %v from none", x)
		}
		if e := reported(r.Code, r.Message); !strings.HasPrefix(e.Code, "EXECUTOR_") || e.Fix == "" ||
			len([]rune(e.Why)) > maxWhy {
			t.Errorf("%+v", e)
		}
	})
}

// TestChildDoesNotGetTheLoadersPath checks that what its owner has the loader read is not what the child's loader
// reads.
func TestChildDoesNotGetTheLoadersPath(t *testing.T) {
	t.Setenv("LD_LIBRARY_PATH", "/somewhere")
	t.Setenv("LD_PRELOAD", "/somewhere/else.so")
	for _, v := range environment(nil, Options{}) {
		if strings.HasPrefix(v, "LD_") {
			t.Error(v)
		}
	}
}

package torch

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// A reply is taken in one form only, and nothing that it says is larger than its limit.
func TestReplyOf(t *testing.T) {
	for body, fails := range map[string]bool{
		`{"type":"stepped","loss":2.5}`: false, `{"type":"stepped","loss":null}`: false, `{"type":"begun"}`: false,
		`{"type":"begun"} {}`: true, `{"type":"begun","more":1}`: true, `{}`: true, `[]`: true, ``: true, `{"type":1}`: true,
		`{"type":"stepped","loss":1e400}`: true,
		`{"type":"stepped","loss":NaN}`:   true,
	} {
		if _, err := replyOf([]byte(body)); (err != nil) != fails || fails && !errors.Is(err, errReply) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// No bytes of a child do more than give a reply or an error.
func FuzzReplyOf(f *testing.F) {
	for _, body := range []string{`{"type":"stepped","loss":2.5}`, `{"type":"error","code":"STEP","message":"x"}`, `{`,
		``} {
		f.Add([]byte(body))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := replyOf(b)
		if err != nil {
			return
		}
		if r.Type == "" || len(r.Message) > 3*len(b) {
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

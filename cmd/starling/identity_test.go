package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// A folder that is lost comes back from its phrase, and a key that is there is never overwritten.
func TestWorkerIdentity(t *testing.T) {
	show := func(want int, stdin string, args ...string) (id identity, stderr string) {
		t.Helper()
		c := command(t, append([]string{"worker", "identity", "-o", "json"}, args...)...)
		var out, errs bytes.Buffer
		c.Stdin, c.Stdout, c.Stderr = strings.NewReader(stdin), &out, &errs
		_ = c.Run()
		if code := c.ProcessState.ExitCode(); code != want {
			t.Fatalf("%v: exit %d, want %d\n%s", args, code, want, errs.String())
		}
		if want == 0 {
			if err := json.Unmarshal(out.Bytes(), &id); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out.String())
			}
		}
		return id, errs.String()
	}
	dir := filepath.Join(t.TempDir(), "home")
	first, _ := show(0, "", "--home", dir)
	if !first.Made || len(strings.Fields(first.Phrase)) != 24 || !strings.HasPrefix(first.Address, "starling1") || first.PeerID == "" {
		t.Errorf("made: %+v", first)
	}
	again, _ := show(0, "", "--home", dir)
	if again.Made || again.Phrase != "" || again.Address != first.Address || again.PeerID != first.PeerID {
		t.Errorf("shown again: %+v", again)
	}
	if told, _ := show(0, "", "--home", dir, "--phrase"); told.Phrase != first.Phrase {
		t.Errorf("asked for: %+v", told)
	}
	if back, _ := show(0, first.Phrase+"\n", "--home", dir+"-restored", "--restore"); back.Address != first.Address || back.PeerID != first.PeerID {
		t.Errorf("restored: %+v", back)
	}
	if _, stderr := show(5, first.Phrase, "--home", dir, "--restore"); !strings.Contains(stderr, "KEY_EXISTS") {
		t.Errorf("over a key:\n%s", stderr)
	}
	if _, stderr := show(4, "abandon ship", "--home", dir+"-none", "--restore"); !strings.Contains(stderr, "PHRASE_INVALID") {
		t.Errorf("no phrase:\n%s", stderr)
	}
}

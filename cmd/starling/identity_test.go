package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The keys of a validator come back from their phrase, and are never overwritten.
func TestValidatorIdentity(t *testing.T) {
	dir := t.TempDir()
	code, stdout, stderr := starling(t, "network", "init", filepath.Join(dir, "net"), "--workers", "0", "--verifiers", "0")
	if code != 0 || !strings.Contains(stdout, "validator identity --home "+filepath.Join(dir, "net",
		"validator-0")+" --phrase") {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	lost, back := filepath.Join(dir, "net", "validator-0"), filepath.Join(dir, "back")
	restore := func(home, phrase string) (code int, stderr string) {
		t.Helper()
		c := command(t, "validator", "identity", "--home", home, "--restore")
		var errs bytes.Buffer
		c.Stdin, c.Stderr = strings.NewReader(phrase), &errs
		_ = c.Run()
		return c.ProcessState.ExitCode(), errs.String()
	}
	var first, told, again validatorIdentity
	does(t, &first, "validator", "identity", "--home", lost)
	does(t, &told, "validator", "identity", "--home", lost, "--phrase")
	if first.Phrase != "" || len(strings.Fields(told.Phrase)) != 24 || !strings.HasPrefix(first.Operator, "starling1") ||
		first.Node == "" {
		t.Fatalf("%+v, with its phrase %+v", first, told)
	}
	if code, stderr := restore(back, told.Phrase+"\n"); code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	if does(t, &again, "validator", "identity", "--home",
		back); again.Operator != first.Operator || again.Node != first.Node {
		t.Errorf("restored: %+v, want %+v", again, first)
	}
	for name, c := range map[string]struct {
		home, phrase string
		exit         int
		code         string
	}{
		"over keys": {back, told.Phrase, 5, "KEY_EXISTS"},
		"no phrase": {filepath.Join(dir, "none"), "abandon ship", 4, "PHRASE_INVALID"},
	} {
		if code, stderr := restore(c.home, c.phrase); code != c.exit || !strings.Contains(stderr, c.code) {
			t.Errorf("%s: exit %d\n%s", name, code, stderr)
		}
	}
	if code, _, stderr := starling(t, "validator", "identity", "--home", filepath.Join(dir,
		"none")); code != 3 || !strings.Contains(stderr, "KEY_NOT_FOUND") {
		t.Errorf("no keys: exit %d\n%s", code, stderr)
	}
}

// A folder that is lost comes back from its phrase, and a key that is there is never overwritten.
func TestWorkerIdentity(t *testing.T) {
	show := func(want int, stdin string, args ...string) (id workerIdentity, stderr string) {
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
	if !first.Made || len(strings.Fields(first.Phrase)) != 24 || !strings.HasPrefix(first.Address, "starling1") ||
		first.PeerID == "" {
		t.Errorf("made: %+v", first)
	}
	again, _ := show(0, "", "--home", dir)
	if again.Made || again.Phrase != "" || again.Address != first.Address || again.PeerID != first.PeerID {
		t.Errorf("shown again: %+v", again)
	}
	if told, _ := show(0, "", "--home", dir, "--phrase"); told.Phrase != first.Phrase {
		t.Errorf("asked for: %+v", told)
	}
	if back, _ := show(0, first.Phrase+"\n", "--home", dir+"-restored", "--restore"); back.Address != first.Address ||
		back.PeerID != first.PeerID {
		t.Errorf("restored: %+v", back)
	}
	if first.Key != "" {
		t.Errorf("a key beside words that wallets open the account with: %+v", first)
	}
	older, _ := show(0, first.Phrase, "--home", dir+"-older", "--restore", "--older", "--phrase")
	if older.Address == first.Address || older.PeerID != first.PeerID || len(older.Key) != 64 ||
		older.Phrase != first.Phrase {
		t.Errorf("an older folder: %+v", older)
	}
	if _, stderr := show(5, first.Phrase, "--home", dir, "--restore"); !strings.Contains(stderr, "KEY_EXISTS") {
		t.Errorf("over a key:\n%s", stderr)
	}
	if _, stderr := show(4, "abandon ship", "--home", dir+"-none", "--restore"); !strings.Contains(stderr,
		"PHRASE_INVALID") {
		t.Errorf("no phrase:\n%s", stderr)
	}
}

// Keys that their owner has encrypted are read with the passphrase alone, of a worker and of a validator, and can be
// left unencrypted again.
func TestEncryptedKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, stdout, stderr := starling(t, "network", "init", filepath.Join(dir, "net"), "--workers", "1",
		"--verifiers", "0"); code != 0 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	right, wrong := filepath.Join(dir, "right"), filepath.Join(dir, "wrong")
	for file, text := range map[string]string{right: "correct horse\nand more\n", wrong: "battery staple\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, args := range map[string][]string{
		"worker":    {"worker", "identity", "--home", filepath.Join(dir, "net", "worker-0")},
		"validator": {"validator", "identity", "--home", filepath.Join(dir, "net", "validator-0")},
	} {
		if name == "worker" && !*long { // each passphrase takes a third of a second
			continue
		}
		var before, sealed, after map[string]any
		does(t, &before, args...)
		does(t, &sealed, append(args, "--encrypt", "--new-passphrase-file", right)...)
		if before["encrypted"] != false || sealed["encrypted"] != true {
			t.Errorf("%s: %v, encrypted %v", name, before, sealed)
		}
		if code, _, stderr := starling(t, args...); code != 4 || !strings.Contains(stderr, "KEY_LOCKED") {
			t.Errorf("%s without a passphrase: exit %d\n%s", name, code, stderr)
		}
		if code, _, stderr := starling(t, append(args, "--passphrase-file", wrong)...); code != 4 ||
			!strings.Contains(stderr, "PASSPHRASE_WRONG") {
			t.Errorf("%s with another passphrase: exit %d\n%s", name, code, stderr)
		}
		does(t, &after, append(args, "--decrypt", "--passphrase-file", right)...)
		if !reflect.DeepEqual(after, before) {
			t.Errorf("%s: %v, after it %v", name, before, after)
		}
	}
}

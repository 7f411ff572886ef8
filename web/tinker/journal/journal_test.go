package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/starling-network/starling/web/failure"
)

// begun is a log of the model m with a pass and a step that are answered, and a pass that is not.
func begun(t testing.TB) (l *Log, dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := New(dir, Head{Model: "m", Session: "s", Token: "t", Request: "r", Create: json.RawMessage(`{"Rank":2}`)})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"pass1", "step1", "pass2"} {
		ask(t, l, id)
	}
	answer(t, l, "pass1", false)
	answer(t, l, "step1", true)
	return l, dir
}

func entry(id string) Entry {
	return Entry{ID: id, Name: strings.TrimRight(id, "0123456789"), Digest: "d",
		Body: json.RawMessage(fmt.Sprintf(`{"of":%q}`, id))}
}

func ask(t testing.TB, l *Log, id string) {
	t.Helper()
	if err := l.Ask(entry(id), strings.HasPrefix(id, "step")); err != nil {
		t.Fatal(err)
	}
}

func answer(t testing.TB, l *Log, id string, ends bool) {
	t.Helper()
	if err := l.Answer(id, json.RawMessage(`{"of":1}`), nil, ends); err != nil {
		t.Fatal(err)
	}
}

// state lists the requests of a log, and how far each has come.
func state(l *Log) string {
	all, ended := l.Entries()
	var parts []string
	for i, e := range all {
		s := e.ID
		if e.Answered {
			s += "+"
		}
		if i < ended {
			s += "."
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

// opened is the state of the only log of a folder.
func opened(t testing.TB, dir string) string {
	t.Helper()
	all, err := Open(dir)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d logs, %v", len(all), err)
	}
	defer all[0].Close()
	return state(all[0])
}

func code(err error) string {
	if known := (*failure.Error)(nil); errors.As(err, &known) {
		return known.Code
	}
	return ""
}

// A process may end within each write: what was noted before is there, and the part of a line is not.
func TestTornTail(t *testing.T) {
	l, dir := begun(t)
	whole, err := os.ReadFile(l.path)
	if err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	states := map[string]bool{"": true}
	first := bytes.IndexByte(whole, '\n') + 1
	for n := first; n <= len(whole); n++ {
		cut := &Log{path: l.path}
		if err := cut.read(whole[:n]); err != nil {
			t.Fatal(err)
		}
		states[state(cut)] = true
	}
	if err := os.WriteFile(l.path, whole[:len(whole)-3], 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := Open(dir)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d logs, %v", len(all), err)
	}
	answer(t, all[0], "step1", true)
	if got := opened(t, copied(t, all[0])); got != "pass1+. step1+. pass2" {
		t.Errorf("after a part of a line that was left out, %s", got)
	}
	want := map[string]bool{"": true, "pass1": true, "pass1 step1": true, "pass1 step1 pass2": true,
		"pass1+ step1 pass2": true, "pass1+. step1+. pass2": true}
	if fmt.Sprint(states) != fmt.Sprint(want) {
		t.Errorf("%v", states)
	}
}

// A bit that is another one in a line that was written to its end is found, and the error names the file.
func TestFlippedBit(t *testing.T) {
	l, dir := begun(t)
	whole, err := os.ReadFile(l.path)
	if err != nil || l.Close() != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n')
	for n := range last {
		text := slices.Clone(whole)
		text[n] ^= 1 << (n % 8)
		if err := os.WriteFile(l.path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir)
		if code(err) != "LOG_DAMAGED" || !strings.Contains(err.Error(), l.path) {
			t.Fatalf("byte %d: %v", n, err)
		}
		if after, err := os.ReadFile(l.path); err != nil || !bytes.Equal(after, text) {
			t.Fatalf("the damaged file is changed: %v", err)
		}
	}
	for name, text := range map[string][]byte{"empty": {}, "without a head": whole[bytes.IndexByte(whole, '\n')+1:],
		"of no line": []byte("{}\n"), "two of them": append(slices.Clone(whole), whole...)} {
		if err := os.WriteFile(l.path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); code(err) != "LOG_DAMAGED" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(os.Remove(l.path), os.WriteFile(filepath.Join(dir, "other.log"), whole, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); code(err) != "LOG_DAMAGED" {
		t.Errorf("the log of another model: %v", err)
	}
}

// A file that is full has room for a step, after which it has room again.
func TestBound(t *testing.T) {
	l, _ := begun(t)
	l.size = maxBytes - reserve // as if the requests had been larger
	ask(t, l, "pass0")          // bodies of the step before are dropped
	l.size = maxBytes - reserve
	if err := l.Ask(entry("pass3"), false); code(err) != "QUEUE_FULL" {
		t.Fatalf("a pass at a file that is full: %v", err)
	}
	if got := state(l); got != "pass1+. step1+. pass2 pass0" {
		t.Errorf("after a refusal %s", got)
	}
	ask(t, l, "step2")
	answer(t, l, "pass2", false)
	answer(t, l, "pass0", false)
	answer(t, l, "step2", true)
	ask(t, l, "pass3")
	if got := state(l); got != "pass2+. pass0+. step2+. pass3" || l.size > 4096 {
		t.Errorf("%s, %d bytes", got, l.size)
	}
	l.size = maxBytes - 10
	if err := l.Ask(entry("step3"), true); code(err) != "QUEUE_FULL" {
		t.Errorf("a step at a file without room: %v", err)
	}
}

// full is a file on a disk that has room for some more bytes.
type full struct {
	file
	room int
}

func (f *full) WriteAt(p []byte, at int64) (int, error) {
	if f.room >= len(p) {
		f.room -= len(p)
		return f.file.WriteAt(p, at)
	}
	n, err := f.file.WriteAt(p[:f.room], at)
	f.room -= n
	return n, errors.Join(err, syscall.ENOSPC)
}

// A disk without room refuses requests, loses none that were taken, and tells an answer later that it had no room for.
func TestDiskFull(t *testing.T) {
	l, dir := begun(t)
	l.f = &full{l.f, 10}
	blocked := l.path + ".part" // a disk that is full has no room for another file either
	if err := os.Mkdir(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.Ask(entry("pass3"), false); code(err) != "DISK_FULL" {
		t.Fatalf("a request without room: %v", err)
	}
	if err := l.Answer("pass2", json.RawMessage(`{}`), nil, false); err == nil {
		t.Error("an answer without room is kept")
	}
	if err := l.Ask(entry("pass4"), false); err == nil {
		t.Error("a request is taken whose file is not written")
	}
	if got := opened(t, copied(t, l)); got != "pass1+. step1+. pass2" {
		t.Errorf("a process that ends then leaves %s", got)
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	ask(t, l, "step2")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := opened(t, dir); got != "pass1+. step1+. pass2+ step2" {
		t.Errorf("with room again %s", got)
	}
}

// copied is a folder with the file of a log as it is.
func copied(t testing.TB, l *Log) (dir string) {
	t.Helper()
	text, err := os.ReadFile(l.path)
	dir = t.TempDir()
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, filepath.Base(l.path)), text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A log that was removed is not written again.
func TestRemoved(t *testing.T) {
	l, dir := begun(t)
	if err := errors.Join(l.Remove(), l.Ask(entry("step2"), true), l.Answer("pass2", nil, nil, false)); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// FuzzRead: no file makes a server that starts fail but by an error with a code.
func FuzzRead(f *testing.F) {
	l, _ := begun(f)
	whole, err := os.ReadFile(l.path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add([]byte("00000000 {}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := &Log{path: "m.log"}
		if err := l.read(text); err != nil && code(err) != "LOG_DAMAGED" {
			t.Error(err)
		}
	})
}

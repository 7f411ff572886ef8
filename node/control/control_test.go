package control

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/starling-network/starling/node/pause"
)

type process struct{ drained atomic.Int32 }

func (p *process) Status() any { return map[string]any{"height": 7, "drained": p.drained.Load()} }
func (p *process) Drain()      { p.drained.Add(1) }

// pauser is that of a process over a folder.
func pauser(t *testing.T, dir string) *pause.Pauser {
	t.Helper()
	p, err := pause.Open(dir, pause.Conditions{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// folder has a short name: a socket's path has few bytes.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "control")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestAskAndDrain(t *testing.T) {
	dir, p := folder(t), &process{}
	if err := Drain(t.Context(), dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("nobody there: %v", err)
	}
	stop, err := Serve(dir, p, pauser(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, fileSocket))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := Drain(t.Context(), dir); err != nil || p.drained.Load() != 1 {
		t.Errorf("%v, drained %d times", err, p.drained.Load())
	}
	var s struct{ Height, Drained int }
	if err := Status(t.Context(), dir, &s); err != nil || s.Height != 7 || s.Drained != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if now, err := Pause(t.Context(), dir, 90*time.Minute); err != nil || !now.Paused ||
		now.Until.Sub(now.Since) != 90*time.Minute {
		t.Errorf("%+v, %v", now, err)
	}
	if _, err := Pause(t.Context(), dir, 2*pause.MaxFor); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("%v", err)
	}
	if _, err := Pause(t.Context(), dir, -time.Second); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("%v", err)
	}
	if now, err := Resume(t.Context(), dir); err != nil || now.Paused {
		t.Errorf("%+v, %v", now, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if err := Status(t.Context(), dir, &s); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after its end: %v", err)
	}
}

// slow is a process that begins to end while it is asked for its status.
type slow struct {
	process
	asked, ends chan struct{}
}

func (s *slow) Status() any {
	close(s.asked)
	<-s.ends
	return s.process.Status()
}

// A request that arrives while the process ends is answered.
func TestAnswersWhileItEnds(t *testing.T) {
	dir, p := folder(t), &slow{asked: make(chan struct{}), ends: make(chan struct{})}
	stop, err := Serve(dir, p, pauser(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	var s struct{ Height int }
	answered, stopped := make(chan error, 1), make(chan error, 1)
	go func() { answered <- Status(t.Context(), dir, &s) }()
	<-p.asked
	go func() { stopped <- stop() }()
	for { // until the socket accepts no request
		if _, err := os.Stat(filepath.Join(dir, fileSocket)); err != nil {
			break
		}
	}
	close(p.ends)
	if err := errors.Join(<-answered, <-stopped); err != nil || s.Height != 7 {
		t.Errorf("%+v, %v", s, err)
	}
}

// A process that is killed while it answers does not run.
func TestKilledWhileItAnswers(t *testing.T) {
	dir := folder(t)
	l, err := net.Listen("unix", filepath.Join(dir, fileSocket))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for _, text := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n{"} {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			_, _ = c.Write([]byte(text))
			_ = c.Close()
		}
	}()
	for range 2 {
		if err := Status(t.Context(), dir, &struct{}{}); !errors.Is(err, ErrNotRunning) {
			t.Errorf("%v", err)
		}
	}
}

// The process may go between the connection and the question, so that the question finds the connection closed.
func TestGoneBeforeTheQuestion(t *testing.T) {
	dir := folder(t)
	l, err := net.Listen("unix", filepath.Join(dir, fileSocket))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	for range 300 {
		if err := Status(t.Context(), dir, new(any)); !errors.Is(err, ErrNotRunning) {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A process that was killed leaves its socket. The next one takes its place.
func TestLeftSocketIsReplaced(t *testing.T) {
	dir := folder(t)
	if err := os.WriteFile(filepath.Join(dir, fileSocket), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stop, err := Serve(dir, &process{}, pauser(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := Drain(t.Context(), dir); err != nil {
		t.Error(err)
	}
}

func TestLongPath(t *testing.T) {
	dir := filepath.Join(folder(t), strings.Repeat("x", 200))
	if _, err := Serve(dir, &process{}, pauser(t, dir)); !errors.Is(err, ErrLongPath) {
		t.Errorf("%v", err)
	}
	if err := Drain(t.Context(), dir); !errors.Is(err, ErrLongPath) {
		t.Errorf("%v", err)
	}
}

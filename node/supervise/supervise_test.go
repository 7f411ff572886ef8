package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/starling-network/starling/internal/releasetest"
	"github.com/starling-network/starling/node/releases"
)

// The test binary is a program that is supervised when this variable is set. It works as the version in the other one:
// a release is a script that sets it to the name of its folder.
const (
	asProgram = "STARLING_TEST_SUPERVISED"
	asVersion = "STARLING_TEST_VERSION"
)

// Programs that are no good.
const (
	neverStarts = "v1.1.0"
	neverReady  = "v1.2.0"
	endsSoon    = "v1.3.0"
	endsLater   = "v1.4.0" // when it was ready
	good        = "v1.5.0"
	early       = "v1.6.0" // is for a later time
	changes     = "v1.7.0" // with an upgrade of the chain
	neverGets   = "v1.4.1" // to its network
	loses       = "v1.4.2" // its network when it was ready, once
)

// asSupervisor is the argument with which the test binary supervises the program, without releases: the folder, the
// address of releases and the file of their root follow.
const asSupervisor = "supervise"

func superviseAlone() int {
	root, err := os.ReadFile(os.Args[4])
	if err == nil {
		var code int
		code, err = Run(context.Background(), Options{Home: os.Args[2], Args: []string{"work"}, Program: os.Args[0],
			Version: "v1.0.0", Machine: "this", URL: os.Args[3], Root: root, Every: time.Hour, Within: patience,
			Again: func(int) bool { return false }, Say: func(string) {}}, nil)
		if err == nil {
			return code
		}
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// unreachable is the exit code of a program that does not reach its network.
const unreachable = 8

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(asProgram) == "":
		os.Exit(m.Run())
	case os.Args[1] == asSupervisor:
		os.Exit(superviseAlone())
	default:
		os.Exit(work())
	}
}

// work is the program.
func work() int {
	version := os.Getenv(asVersion)
	if os.Args[1] == "version" {
		if version == neverStarts {
			return 1
		}
		return 0
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	away := os.Getenv(asProgram) + "-away"
	switch version {
	case endsSoon: // while the network of the program before it is away
		_ = os.WriteFile(away, nil, 0o600)
		return 3
	case neverReady:
	case neverGets:
		return unreachable
	case loses:
		_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
		if f, err := os.OpenFile(os.Getenv(asProgram), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = f.Close()
			return unreachable
		}
	default:
		_, _ = daemon.SdNotify(false, daemon.SdNotifyReady)
	}
	if version != endsSoon && os.Remove(away) == nil {
		<-time.After(100 * time.Millisecond)
		return unreachable
	}
	if version == endsLater {
		<-time.After(100 * time.Millisecond)
		return 4
	}
	<-stop
	return 7
}

// patience is longer than a program needs to be ready on a busy machine; it has to stay for a tenth of it.
const patience = 15 * time.Second

// supervised is a program under a supervisor.
type supervised struct {
	t    *testing.T
	home string
	repo *releasetest.Repository
	end  context.CancelFunc
	over chan int

	mu    sync.Mutex
	lines []string
}

// begin supervises the test binary, with releases that are published.
func begin(t *testing.T, r *releasetest.Repository, home string, within time.Duration) *supervised {
	t.Helper()
	t.Setenv(asProgram, filepath.Join(home, "lost"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &supervised{t: t, home: home, repo: r, end: cancel, over: make(chan int, 1)}
	o := Options{Home: home, Args: []string{"work"}, Program: self, Version: "v1.0.0", Machine: "this", URL: r.URL(),
		Root: r.Root(), Every: 50 * time.Millisecond, Within: within,
		Again: func(code int) bool { return code == unreachable }, Say: func(line string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.lines = append(s.lines, line)
		}}
	go func() {
		code, err := Run(ctx, o, nil)
		if err != nil {
			t.Error(err)
		}
		s.over <- code
	}()
	t.Cleanup(func() {
		s.stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Log(strings.Join(s.lines, "\n"))
	})
	return s
}

// stop ends it, and checks that it ends as its process does.
func (s *supervised) stop() {
	s.t.Helper()
	s.end()
	if code := <-s.over; code != 7 {
		s.t.Errorf("it ends with exit code %d", code)
	}
	s.over <- 7
}

// until waits for a status.
func (s *supervised) until(what string, holds func(Status) bool) Status {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	for {
		now, err := Ask(ctx, s.home)
		if err == nil && holds(now) {
			return now
		}
		if err != nil && !errors.Is(err, ErrNotRunning) {
			s.t.Fatalf("%s: %v", what, err)
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("%s: %+v", what, now)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// shortDir is a folder whose sockets have short paths.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func add(t *testing.T, r *releasetest.Repository, version string, n releases.Notes) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text := "#!/bin/sh\n" + asVersion + "=$(basename \"$(dirname \"$0\")\") exec '" + self + "' \"$@\"\n"
	file := filepath.Join(t.TempDir(), "starling")
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	r.Add(version, file, n)
	r.Release()
}

// The program of a supervisor that is killed ends with it.
func TestKilledSupervisor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems have no signal for it")
	}
	r, home := releasetest.New(t), shortDir(t)
	root, self := filepath.Join(home, "root.json"), must(os.Executable())(t)
	if err := os.WriteFile(root, r.Root(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, asSupervisor, home, r.URL(), root)
	cmd.Env = append(os.Environ(), asProgram+"="+filepath.Join(home, "lost"))
	out, err := cmd.StdoutPipe() // the program has it, too: it is at its end when both are gone
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	s := &supervised{t: t, home: home}
	s.until("the program is ready", func(now Status) bool { return now.Ready })
	over := make(chan error, 1)
	go func() { _, err := io.ReadAll(out); over <- err }()
	_ = cmd.Process.Kill() // it has not ended
	select {
	case err = <-over:
	case <-time.After(time.Minute):
		err = errors.New("the program outlives its supervisor")
	}
	if _ = cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// must ends the test if there is an error.
func must[T any](x T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// A release that is no good leaves the program before it, which runs again by itself; a good one stays, also after a
// restart; one for a later time waits until its owner asks for it.
func TestReleases(t *testing.T) {
	r := releasetest.New(t)
	home := shortDir(t)
	s := begin(t, r, home, patience)
	s.until("the installed program runs", func(now Status) bool { return now.Running == "v1.0.0" })
	s.refuses(neverStarts, endsSoon, endsLater)
	add(t, r, loses, releases.Notes{})
	s.until("one that lost its network runs", func(now Status) bool { return now.Running == loses && now.Candidate == "" })
	add(t, r, good, releases.Notes{})
	s.until("the good one runs", func(now Status) bool { return now.Running == good && now.Candidate == "" })
	add(t, r, early, releases.Notes{From: time.Now().Add(time.Hour)})
	s.until("the later one is known", func(now Status) bool { return now.Latest == early })
	s.stop()
	again := begin(t, r, home, patience)
	if _, err := os.Stat(filepath.Join(home, dirName, "versions", endsLater)); err == nil {
		t.Error("a release that was refused is kept")
	}
	again.until("the good one runs again", func(now Status) bool {
		return now.Running == good && now.Latest == early && now.Ready
	})
	if now, err := Upgrade(t.Context(), home, endsSoon); err != nil || !strings.Contains(now.Failed, "it ended") ||
		now.Running != good {
		t.Errorf("a bad one that is asked for: %+v, %v", now, err)
	}
	if now, err := Upgrade(t.Context(), home, "v8.0.0"); err != nil || now.Failed == "" || now.Running != good {
		t.Errorf("one that is not there: %+v, %v", now, err)
	}
	if now, err := Upgrade(t.Context(), home, ""); err != nil || now.Failed != "" || now.Running != early {
		t.Errorf("the latest: %+v, %v", now, err)
	}
	if now, err := Upgrade(t.Context(), home, good); err != nil || now.Failed != "" || now.Running != good {
		t.Errorf("an earlier one: %+v, %v", now, err)
	}
	add(t, r, changes, releases.Notes{})
	now := again.until("a later one is known", func(now Status) bool { return now.Latest == changes })
	if now.Running != good {
		t.Errorf("%s runs, though the owner asked for another", now.Running)
	}
	again.stop()
	last := begin(t, r, home, patience)
	last.until("the one that the owner asked for runs", func(now Status) bool { return now.Running == good && now.Ready })
}

// refuses publishes releases, none of which takes the place of the installed program.
func (s *supervised) refuses(versions ...string) {
	s.t.Helper()
	for _, version := range versions {
		add(s.t, s.repo, version, releases.Notes{})
		s.until(version+" is refused", func(now Status) bool {
			return now.Refused[version] != "" && now.Running == "v1.0.0" && now.Candidate == "" && now.Ready
		})
	}
}

// A release that is not ready in time is refused, also if it ends and is started again because it does not reach its
// network.
func TestReleasesThatAreNotReady(t *testing.T) {
	s := begin(t, releasetest.New(t), shortDir(t), time.Second)
	s.until("the installed program runs", func(now Status) bool { return now.Running == "v1.0.0" && now.Ready })
	s.refuses(neverReady, neverGets)
}

// A validator takes a release with an upgrade when its chain waits for that upgrade, and not before.
func TestUpgradeOfTheChain(t *testing.T) {
	r := releasetest.New(t)
	home := shortDir(t)
	for name, text := range map[string]string{"validator.json": "{}", "data/upgrade-info.json": `{"name":"other"}`} {
		if err := os.MkdirAll(filepath.Join(home, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := begin(t, r, home, patience)
	add(t, r, changes, releases.Notes{Upgrade: "v2"})
	s.until("it is known", func(now Status) bool { return now.Latest == changes })
	add(t, r, early, releases.Notes{From: time.Now().Add(time.Hour)}) // gives it the time of a look
	if now := s.until("both are", func(now Status) bool { return len(now.Available) == 2 }); now.Running != "v1.0.0" {
		t.Errorf("%s runs before the chain waits", now.Running)
	}
	info := []byte(`{"name":"v2","height":20}`)
	if err := os.WriteFile(filepath.Join(home, "data/upgrade-info.json"), info, 0o600); err != nil {
		t.Fatal(err)
	}
	s.until("it runs", func(now Status) bool { return now.Running == changes && now.Candidate == "" })
}

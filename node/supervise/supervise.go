// Package supervise runs a worker, a verifier or a validator as a child process, and replaces its program by a newer
// release: it sets the work of the old one aside, runs the new one as a candidate, and starts the old one again if the
// new one is not ready in time or ends. It decides nothing about the chain, and trusts no program that package
// releases did not verify.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/starling-network/starling/internal/process"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/releases"
)

// Options say what is supervised.
type Options struct {
	Home    string        // folder of the process
	Args    []string      // of the program: worker up --home Home
	Program string        // that is installed
	Version string        // of it; "": it is no release
	Machine string        // name of the machine, which draws its place in a rollout
	URL     string        // of the releases
	Root    []byte        // root.json of the releases
	Every   time.Duration // between two looks at the releases
	Within  time.Duration // a new program must be ready, and then stay for a tenth of it
	// reports whether a program that ends with an exit code is not to blame, such as for a network that is not there: in
	// the place of another one it is started again
	Again func(code int) bool
	Say   func(string)
}

// dirName is the folder of the supervisor within that of the process.
const dirName = "releases"

// supervisor is one process with its programs.
type supervisor struct {
	Options
	dir      string
	source   releases.Source
	state    State
	listed   []releases.Release // at the last look, latest first
	looking  chan []releases.Release
	requests chan request
	fetched  chan fetched
	fetching bool
	child    *child
	waiting  *request // that is answered when its version runs or failed
	verdict  string   // why the latest version that was tried does not run; "": it does
	drained  bool     // the process is to end
}

// Run supervises until the process ends, and returns its exit code. When the context ends it asks the process to end,
// and again with each value of stop.
func Run(ctx context.Context, o Options, stop <-chan os.Signal) (code int, err error) {
	s := &supervisor{Options: o, dir: filepath.Join(o.Home, dirName), looking: make(chan []releases.Release, 1),
		requests: make(chan request), fetched: make(chan fetched, 1)}
	s.source = releases.Source{URL: o.URL, Root: o.Root, Dir: s.dir}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return 1, err
	}
	unlock, err := folder.Lock(s.dir)
	if err != nil {
		return 1, err
	}
	defer unlock()
	if err := s.load(); err != nil {
		return 1, err
	}
	s.save()
	closed, err := s.serve()
	if err != nil {
		return 1, err
	}
	defer closed()
	if s.child, err = s.start(s.state.Current); err != nil {
		return 1, err
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	go s.look(life)
	return s.follow(ctx, stop)
}

// againAfter is the time until a program that is not to blame is started again.
const againAfter = time.Second

// chainEvery is the time between two looks at whether the chain waits for another program.
const chainEvery = time.Second

// follow acts on what happens until the process ends for good.
func (s *supervisor) follow(ctx context.Context, stop <-chan os.Signal) (code int, err error) {
	leave := ctx.Done()
	look := time.NewTicker(chainEvery)
	defer look.Stop()
	for {
		select {
		case <-leave:
			leave, s.drained = nil, true
			_ = process.Interrupt(s.child.Process)
		case <-stop:
			_ = process.Interrupt(s.child.Process)
		case <-s.child.ready:
			s.becameReady()
		case <-s.child.judged:
			err = s.judge()
		case failed := <-s.child.ended:
			var again bool
			if again, code, err = s.childEnded(failed); !again {
				return code, err
			}
		case s.listed = <-s.looking:
		case <-look.C:
			s.consider(ctx)
		case f := <-s.fetched:
			err = s.tryOut(ctx, f)
		case r := <-s.requests:
			s.asked(ctx, r)
		}
		if err != nil {
			return 1, err // no program starts
		}
		s.settle()
	}
}

// look lists the releases from time to time.
func (s *supervisor) look(ctx context.Context) {
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	for {
		list, err := s.source.List()
		if err != nil {
			s.Say(err.Error())
		} else {
			select {
			case s.looking <- list:
			case <-ctx.Done():
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// running is the version of the program that runs; "": it is no release.
func (s *supervisor) running() string {
	if s.child.version != "" {
		return s.child.version
	}
	return s.Version
}

// consider begins with a release that is due, or that the chain waits for.
func (s *supervisor) consider(ctx context.Context) {
	if s.drained || s.state.Candidate != "" || s.fetching {
		return
	}
	for _, r := range s.listed {
		if s.state.Refused[r.Version] != "" || !releases.Newer(r.Version, s.running()) {
			continue
		}
		due := s.state.Pinned == "" && !time.Now().Before(r.Turn(s.Machine))
		if r.Upgrade != "" && s.validator() { // also of a process that is to stay with its version
			due = r.Upgrade == s.chainWaits()
		}
		if due {
			s.fetch(ctx, r.Version)
			return
		}
	}
}

// fetched is a release that was fetched, and whether it starts.
type fetched struct {
	version       string
	failed, wrong error
}

// fetch gets a release while the process runs, and lets its program print its version.
func (s *supervisor) fetch(ctx context.Context, version string) {
	s.fetching = true
	go func() {
		f := fetched{version: version}
		var program string
		if program, f.failed = s.source.Fetch(version); f.failed == nil {
			f.wrong = starts(ctx, program)
		}
		s.fetched <- f
	}()
}

// tryOut puts a release in the place of the program that runs.
func (s *supervisor) tryOut(ctx context.Context, f fetched) error {
	s.fetching = false
	switch {
	case f.failed != nil:
		why := fmt.Sprintf("it cannot be fetched: %v", f.failed)
		s.Say(f.version + ": " + why)
		s.listed, s.verdict = nil, why // until the next look
		return nil
	case f.wrong != nil:
		s.refuse(f.version, fmt.Sprintf("it does not start: %v", f.wrong))
		return nil
	case s.drained:
		s.verdict = "the process is to end"
		return nil
	}
	s.Say(fmt.Sprintf("switching from %s to %s", s.name(s.running()), f.version))
	s.handOver(ctx)
	s.state.Candidate = f.version
	s.save()
	return s.replace(f.version)
}

// replace starts another program, as a candidate if it is not the current one. Where that is impossible it starts the
// current one.
func (s *supervisor) replace(version string) (err error) {
	if s.child, err = s.start(version); err != nil && version != s.state.Current {
		s.refuse(version, err.Error())
		s.child, err = s.start(s.state.Current)
	}
	if err != nil {
		return err
	}
	if s.child.replaces = true; s.state.Candidate != "" {
		s.child.judged = time.After(s.Within)
	}
	return nil
}

// becameReady begins the time for which a candidate must stay.
func (s *supervisor) becameReady() {
	s.child.ready, s.child.wasReady = nil, true
	if s.state.Candidate != "" {
		s.child.judged = time.After(s.Within / 10)
	}
}

// judge decides about a candidate whose time is over.
func (s *supervisor) judge() error {
	version := s.state.Candidate
	if s.child.judged = nil; version == "" {
		return nil
	}
	if !s.child.wasReady {
		s.child.kill()
		<-s.child.ended
		s.refuse(version, fmt.Sprintf("it was not ready within %s", s.Within))
		return s.replace(s.state.Current)
	}
	before := s.state.Current
	s.state.Current, s.state.Candidate, s.verdict = version, "", ""
	s.save()
	s.Say(version + " runs: it was ready in time, and did not end")
	if err := s.source.Prune(version, before); err != nil {
		s.Say(fmt.Sprintf("earlier releases cannot be deleted: %v", err))
	}
	return nil
}

// childEnded reports whether another process was started, or with which code the supervisor ends.
func (s *supervisor) childEnded(failed error) (again bool, code int, err error) {
	if exit, ok := errors.AsType[*exec.ExitError](failed); ok {
		code = exit.ExitCode()
	}
	if s.child.replaces && !s.drained && s.Again(code) {
		time.Sleep(againAfter)
		before := s.child
		if err := s.replace(before.version); err != nil {
			return false, 1, err
		}
		if !before.wasReady && s.child.version == before.version {
			s.child.judged = before.judged // its time began with the first process
		}
		return true, 0, nil
	}
	if failed == nil || s.drained || s.state.Candidate == "" {
		if code < 0 || code == 0 && failed != nil { // a signal ended it
			code = 1
		}
		return false, code, nil
	}
	s.refuse(s.state.Candidate, fmt.Sprintf("it ended: %v", failed))
	return true, 0, s.replace(s.state.Current)
}

// refuse notes that a release is not to be tried again.
func (s *supervisor) refuse(version, why string) {
	if s.state.Refused == nil {
		s.state.Refused = map[string]string{}
	}
	s.state.Refused[version], s.state.Candidate, s.verdict = why, "", why
	s.save()
	s.Say(fmt.Sprintf("%s is refused: %s; %s runs", version, why, s.name(s.state.Current)))
}

func (s *supervisor) name(version string) string {
	switch {
	case version != "":
		return version
	case s.Version != "":
		return s.Version
	}
	return "the installed program"
}

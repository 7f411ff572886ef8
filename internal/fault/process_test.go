package fault

import (
	"bufio"
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// limit is how long the tests wait for a condition before they fail.
const limit = 5 * time.Minute

// process is one process of the program, again and again over the same folder.
type process struct {
	t       testing.TB
	name    string
	machine *machine
	dir     string // in which it runs; "": the one of the tests
	args    []string
	hidden  bool   // it accepts no connection: no address of its machine reaches it
	address string // account of a worker, a verifier, or a consumer
	diary   diary

	pid    int
	stdout bytes.Buffer
	ended  chan struct{} // closed when it is over
	code   int           // then

	mu    sync.Mutex
	lines []string      // its output
	since int           // number of them when it was started last
	more  chan struct{} // closed with the next line
}

// start starts the process; shift is by how much its clock is wrong.
func (p *process) start(shift time.Duration) {
	p.t.Helper()
	c := p.machine.command(append([]string{program}, p.args...)...)
	c.Dir = p.dir
	// The kernel sends Pdeathsig when the thread ends that started the process. Go ends a thread only while a goroutine
	// is locked to it.
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	pipe, err := c.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.stdout.Reset()
	c.Stdout = &p.stdout
	p.mu.Lock()
	p.since, p.more = len(p.lines), make(chan struct{})
	p.mu.Unlock()
	if shift == 0 {
		err = c.Start()
	} else {
		err = startAt(c, program, shift)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
	p.pid, p.ended = c.Process.Pid, make(chan struct{})
	go func(ended chan struct{}) {
		p.follow(pipe)
		_ = c.Wait() // its exit code says how it ended
		p.code = c.ProcessState.ExitCode()
		close(ended)
	}(p.ended)
}

func (p *process) follow(from io.Reader) {
	for s := bufio.NewScanner(from); s.Scan(); {
		p.mu.Lock()
		p.lines = append(p.lines, s.Text())
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

// says waits until a line of the process since its start matches a pattern, and returns the match.
func (p *process) says(pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	timeout := time.After(limit)
	for {
		p.mu.Lock()
		lines, more := p.lines[p.since:], p.more
		p.mu.Unlock()
		for _, line := range lines {
			if m := re.FindStringSubmatch(line); m != nil {
				return m
			}
		}
		select {
		case <-more:
		case <-p.ended:
			p.t.Fatalf("%s ended without saying %q:\n%s", p.name, pattern, p.tail(20))
		case <-timeout:
			p.t.Fatalf("%s does not say %q:\n%s", p.name, pattern, p.tail(20))
		}
	}
}

// tail returns the last n lines of the output of the process.
func (p *process) tail(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(slices.Clone(p.lines[max(0, len(p.lines)-n):]), "\n")
}

func (p *process) running() bool {
	if p.ended == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.pid, s); err != nil {
		p.t.Fatalf("%s: %v", p.name, err)
	}
}

// kill ends the process without warning. It does nothing if the process was never started.
func (p *process) kill() {
	p.t.Helper()
	if p.ended == nil {
		return
	}
	if p.running() {
		p.signal(syscall.SIGKILL)
	}
	p.end()
}

// end waits for the end of the process.
func (p *process) end() {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.t.Fatalf("%s does not end:\n%s", p.name, p.tail(20))
	}
}

// succeeds waits for the end of the process, and fails unless its exit code is 0.
func (p *process) succeeds() {
	p.t.Helper()
	if p.end(); p.code != 0 {
		p.t.Fatalf("%s ended with code %d:\n%s", p.name, p.code, p.tail(20))
	}
}

// pause stops the process where it is, and resume continues it.
func (p *process) pause()  { p.t.Helper(); p.signal(syscall.SIGSTOP) }
func (p *process) resume() { p.t.Helper(); p.signal(syscall.SIGCONT) }

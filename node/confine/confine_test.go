package confine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// trial is what a child in Python tries, and what it prints.
func trial(t *testing.T, level Level, b Sandbox, script string) (string, error) {
	t.Helper()
	asked, err := exec.Command("python3", "-c", "import sys; print(sys.executable, sys.prefix, sys.base_prefix)").Output()
	if err != nil {
		t.Skip("SKIPPED: there is no python3, so nothing is known of the box")
	}
	python, prefixes, _ := strings.Cut(strings.TrimSpace(string(asked)), " ")
	b.Read = append(b.Read, strings.Fields(prefixes)...)
	var out bytes.Buffer
	b.Level, b.Command, b.Output = level, []string{python, "-I", "-S", "-c", script}, &out
	b.Env = append(b.Env, "PATH=/usr/bin:/bin")
	if b.Memory == 0 {
		b.Memory = 256 << 20
	}
	if b.Scratch == 0 {
		b.Scratch = 8 << 20
	}
	c, err := Start(t.Context(), b)
	if err == nil {
		err = c.Wait()
	}
	if errors.Is(err, ErrUnavailable) {
		t.Skipf("SKIPPED: %v: %s", err, out.String())
	}
	return strings.TrimSpace(out.String()), err
}

// attempts runs pieces of Python in one child, and returns how each ended: done, or the name and the number of an
// exception.
func attempts(t *testing.T, level Level, b Sandbox, pieces map[string]string) map[string]string {
	t.Helper()
	script := "import os,socket,mmap,ctypes,threading\n"
	for name, code := range pieces {
		script += "print(\"#" + name + "#\", end='')\ntry:\n  " + strings.ReplaceAll(code, "\n", "\n  ") +
			"\n  print('done')\nexcept BaseException as e: print(type(e).__name__, getattr(e, 'errno', ''))\n"
	}
	out, err := trial(t, level, b, script)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ends, parts := map[string]string{}, strings.Split(out, "#")
	for i := 1; i+1 < len(parts); i += 2 {
		ends[parts[i]] = strings.TrimSpace(parts[i+1])
	}
	return ends
}

// The operations that a child is refused, and those that it is allowed, at both levels.
func TestRefused(t *testing.T) {
	const refused = "PermissionError 1"
	pieces, want := map[string]string{}, map[string]string{}
	for name, c := range map[string][2]string{
		"a socket":                   {"socket.socket(socket.AF_INET, socket.SOCK_STREAM)", refused},
		"a socket of the machine":    {"socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)", refused},
		"a process":                  {"os.fork()", refused},
		"a command":                  {"os.posix_spawn('/bin/true', ['true'], {})", refused},
		"a signal":                   {"os.kill(os.getppid() or 1, 0)", refused},
		"too much memory":            {"b'x' * (1 << 30)", "MemoryError"},
		"memory that is not counted": {"mmap.mmap(-1, 1 << 20)", refused},
		"memory behind a file":       {"os.memfd_create('x')", refused},
		"namespaces": {"if ctypes.CDLL(None, use_errno=True).unshare(0x10000000): raise " +
			"PermissionError(ctypes.get_errno(), '')", refused},
		"a large file": {"f = open(os.environ['HOME'] + '/x', 'wb', 0)\nfor _ in range(64): assert " +
			"f.write(b'x' * (1 << 20)) == 1 << 20", "OSError 27"},
		"threads":                 {"t = threading.Thread(target=print, args=('in',))\nt.start()\nt.join()", "in\ndone"},
		"memory that it may have": {"b'x' * (64 << 20)", "done"},
		"its scratch folder":      {"open(os.environ['HOME'] + '/y', 'w').write('y')", "done"},
	} {
		pieces[name], want[name] = c[0], c[1]
	}
	for _, level := range Levels {
		t.Run(string(level), func(t *testing.T) {
			got := attempts(t, level, Sandbox{}, pieces)
			for name := range pieces {
				// a file system may end first
				if got[name] != want[name] && !(name == "a large file" && got[name] == "AssertionError") {
					t.Errorf("%s: %q, want %q", name, got[name], want[name])
				}
			}
		})
	}
}

// A child sees what it is shown, and nothing of its user's: no files, no environment, no processes, no network.
func TestSees(t *testing.T) {
	t.Setenv("STARLING_TEST_SECRET", "in the environment")
	dir := t.TempDir()
	shown, hidden := filepath.Join(dir, "shown"), filepath.Join(dir, "hidden")
	for _, p := range []string{shown, hidden} {
		if err := os.WriteFile(p, []byte(filepath.Base(p)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"print(open(" + quote(shown) + ").read())":                         "shown\ndone",
		"open(" + quote(shown) + ", 'a')":                                  "OSError 30",
		"open(" + quote(hidden) + ")":                                      "FileNotFoundError 2",
		"assert os.listdir(" + quote(dir) + ") == ['shown']":               "done",
		"open('/usr/x', 'w')":                                              "OSError 30",
		"open('/x', 'w')":                                                  "OSError 30",
		"open('/etc/shadow')":                                              "FileNotFoundError 2",
		"os.listdir('/sys/class/net')":                                     "FileNotFoundError 2",
		"assert 'STARLING_TEST_SECRET' not in os.environ":                  "done",
		"assert open('/dev/urandom', 'rb').read(1)":                        "done",
		"assert all(p == '1' for p in os.listdir('/proc') if p.isdigit())": "done",
	}
	pieces := map[string]string{}
	for code := range want {
		pieces[code] = code
	}
	for code, got := range attempts(t, Full, Sandbox{Read: []string{shown}}, pieces) {
		if got != want[code] {
			t.Errorf("%s: %q, want %q", code, got, want[code])
		}
	}
	const environment = "assert 'STARLING_TEST_SECRET' not in os.environ"
	if got := attempts(t, Reduced, Sandbox{}, map[string]string{"it": environment}); got["it"] != "done" {
		t.Errorf("the environment of a reduced child: %q", got["it"])
	}
}

func quote(s string) string { return "'" + s + "'" }

// A child is gone when it is killed, when its context ends, and when the process that started it is killed.
func TestEnds(t *testing.T) {
	if parent := os.Getenv("STARLING_TEST_PARENT"); parent != "" {
		held, _ := os.Stdout, os.Stdin
		b := Sandbox{Level: Level(parent), Command: []string{"/bin/sleep", "1000"}, Memory: 256 << 20, Scratch: 1 << 20,
			Output: os.Stderr, Files: []*os.File{held}}
		c, err := Start(context.Background(), b)
		if err != nil {
			os.Exit(failure)
		}
		os.Stdout.WriteString("started\n")
		_ = c.Wait()
		os.Exit(failure)
	}
	for _, level := range Levels {
		t.Run(string(level), func(t *testing.T) {
			if _, err := trial(t, level, Sandbox{}, "pass"); err != nil {
				t.Fatal(err)
			}
			box := Sandbox{Level: level, Command: []string{"/bin/sleep", "1000"}, Memory: 256 << 20, Scratch: 1 << 20}
			c, err := Start(t.Context(), box)
			if err != nil {
				t.Fatal(err)
			}
			c.Kill()
			if err := c.Wait(); err == nil {
				t.Error("a child that was killed ended well")
			}
			if _, err := os.Stat(c.dir); !os.IsNotExist(err) {
				t.Errorf("its folder stays: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if c, err = Start(ctx, box); err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := c.Wait(); err == nil {
				t.Error("a child whose context ended ended well")
			}
			orphan(t, level)
		})
	}
}

// orphan starts a parent with a child that holds the writing end of a pipe, kills the parent, and waits for the end of
// the pipe.
func orphan(t *testing.T, level Level) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	parent := exec.Command(os.Args[0], "-test.run", "^TestEnds$")
	parent.Env = append(os.Environ(), "STARLING_TEST_PARENT="+string(level))
	parent.Stdout = w
	if err := errors.Join(parent.Start(), w.Close()); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 64)
	if n, err := r.Read(said); err != nil || string(said[:n]) != "started\n" {
		t.Fatalf("%q, %v", said[:n], err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if n, err := r.Read(said); n != 0 || err == nil {
		t.Errorf("%d bytes, %v: want the end of what the child held open", n, err)
	}
}

// An unavailable level is an error that names it, and a missing program is an error of its own.
func TestCannotStart(t *testing.T) {
	if _, err := Start(t.Context(), Sandbox{Level: "some", Command: []string{"/bin/true"}}); err == nil {
		t.Error("a level that there is not was taken")
	}
	for _, level := range Levels {
		var out bytes.Buffer
		c, err := Start(t.Context(), Sandbox{Level: level, Command: []string{"/no/such/program"}, Memory: 256 << 20,
			Scratch: 1 << 20, Output: &out})
		if err == nil {
			err = c.Wait()
		}
		if errors.Is(err, ErrUnavailable) {
			t.Skipf("SKIPPED: %v: %s", err, out.String())
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != missing ||
			!strings.Contains(out.String(), "/no/such/program") {
			t.Errorf("%s: %v: %s", level, err, out.String())
		}
	}
}

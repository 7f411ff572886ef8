// Package fault runs networks of real processes, breaks them, and checks the result: the run ends, nothing is paid
// twice, no honest member is slashed, the lineage verifies, and the model is the one of an undisturbed run.
//
// The machines are network namespaces joined by a bridge where the kernel allows, and one loopback where it does not.
// Faults of roles that need no real machine are played in virtual time in package sim.
package fault

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// faults is set to run the tests. Without it go test ./... starts no networks here and stays short.
var faults = flag.Bool("faults", false, "run the tests, which start networks of processes")

// The test binary starts itself again in namespaces of its own, which end with it however it ends. These environment
// variables hold the program to test (one is built if there is none) and, for the second process, the folder for
// files that last until both processes end, and the reason why it is not in namespaces if it is not.
const (
	variableProgram = "STARLING_FAULT_PROGRAM"
	variableScratch = "STARLING_FAULT_SCRATCH"
	variableWhyNot  = "STARLING_FAULT_NO_NAMESPACES"
)

// program is the path of the starling binary, scratch the path of a folder for temporary files.
var program, scratch = os.Getenv(variableProgram), os.Getenv(variableScratch)

func TestMain(m *testing.M) {
	flag.Parse()
	if !*faults {
		fmt.Println("nothing was run: networks of processes start with -faults")
		os.Exit(0)
	}
	if scratch == "" {
		os.Exit(outside())
	}
	if whyNot() == nil {
		if err := furnish(); err != nil {
			fmt.Fprintln(os.Stderr, "fault:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// whyNot is why machines cannot be network namespaces; nil if they can.
func whyNot() error {
	if why := os.Getenv(variableWhyNot); why != "" {
		return errors.New(why)
	}
	return nil
}

// outside runs the tests in namespaces of their own, or, if that is not allowed, without.
func outside() int {
	dir, err := os.MkdirTemp("", "starling-fault-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fault:", err)
		return 1
	}
	again := func(whyNot string) *exec.Cmd {
		c := exec.Command("/proc/self/exe", os.Args[1:]...)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		c.Env = append(os.Environ(), variableProgram+"="+program, variableScratch+"="+dir, variableWhyNot+"="+whyNot)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return c
	}
	runtime.LockOSThread() // Pdeathsig follows the end of this thread, which is thus the end of the process
	c := again("")
	c.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET | syscall.CLONE_NEWNS
	if os.Getuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	if _, missing := exec.LookPath("ip"); missing != nil {
		err = fmt.Errorf("%w: install iproute2", missing)
	} else {
		err = c.Start()
	}
	if err != nil {
		c = again(fmt.Sprintf("no namespaces: %v", err))
		if err := c.Start(); err != nil {
			fmt.Fprintln(os.Stderr, "fault:", err)
			return 1
		}
	}
	_ = c.Wait() // its exit code says how it ended
	if code := c.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 1 // a signal
}

// build builds the program in a folder, unless the environment names one.
func build(dir string) error {
	if program != "" {
		return nil
	}
	program = filepath.Join(dir, "starling")
	if out, err := exec.Command("go", "build", "-o", program,
		"github.com/starling-network/starling/cmd/starling").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

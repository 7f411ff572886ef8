package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/accelerator/admission"
	"github.com/starling-network/starling/node/accelerator/shared"
	"github.com/starling-network/starling/node/folder"
)

// passed is when the device of takesOver passed the suite, as the record in the folder of its worker says: the suite
// itself is tested in node/accelerator.
var passed = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// withDevice builds starling-device, writes the record of the first device of this machine to the folder of each
// worker, and returns the environment of a program that finds it; nil, with a message, if no device could be exact.
// Several workers have devices of the same name, as those of one processor are.
func withDevice(t *testing.T, homes ...string) []string {
	t.Helper()
	dir := t.TempDir()
	o := accelerator.Options{Program: filepath.Join(dir, "starling-device")}
	inputs.Of(t, "../starling-device", "../../node/accelerator", "../../node/opencl")
	if out, err := exec.Command("go", "build", "-o", o.Program, "../starling-device").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	list, err := accelerator.List(t.Context(), o)
	if err != nil || len(list) == 0 || list[0].Missing() != "" || len(homes) > 1 && !list[0].Processor {
		t.Logf("no device computes here, or none that is several: %v", err)
		return nil
	}
	r := admission.Record{Name: list[0].Name, Driver: list[0].Driver, Suite: suite.Digest(admission.Elements),
		Numerics: kernel.Newest, Float64: list[0].Double, Passed: passed}
	if r.Program, err = accelerator.Digest(o); err != nil {
		t.Fatal(err)
	}
	for _, home := range homes {
		err = errors.Join(os.MkdirAll(home, 0o700),
			folder.WriteJSON(filepath.Join(home, admission.FileRecord), map[string]any{"devices": []any{r}}))
		if err != nil {
			t.Fatal(err)
		}
	}
	return []string{"PATH=" + dir + string(filepath.ListSeparator) + os.Getenv("PATH"), "POCL_MAX_PTHREAD_COUNT=2"}
}

// takesOver ends the worker of a process and starts it again on the first device. It returns what the worker says of it
// later; nil if there is no device.
func takesOver(t *testing.T, pid int, home, network string) (status func() shared.Status) {
	t.Helper()
	env := withDevice(t, home)
	if env == nil {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	c := command(t, "worker", "up", "--home", home, "--network", network, "--threads", "1", "--device", "opencl",
		"--measure=false")
	c.Env = append(c.Env, env...)
	untilSaid(t, c, "computes the units")
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return func() shared.Status {
		t.Helper()
		code, stdout, stderr := starling(t, "worker", "status", "--home", home, "-o", "json")
		var r struct {
			Process struct{ Device shared.Status }
		}
		if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
			t.Fatalf("exit %d, %v\n%s", code, err, stderr)
		}
		return r.Process.Device
	}
}

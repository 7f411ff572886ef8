package accelerator

import (
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/node/confine"
)

// built builds starling-device.
func built(t *testing.T) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "starling-device")
	inputs.Of(t, "../../cmd/starling-device", "../opencl")
	if out, err := exec.Command("go", "build", "-o", to, "../../cmd/starling-device").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return to
}

// exact returns a device that lacks nothing, or skips the test.
func exact(t *testing.T, o Options) (int, device.Capabilities) {
	t.Helper()
	list, err := List(t.Context(), o)
	if e, ok := errors.AsType[*Error](err); ok && (e.Code == CodeNone || e.Code == codeIsolation) {
		t.Skipf("no device computes here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range list {
		if missing := d.Missing(); missing == "" {
			return i, d
		}
	}
	t.Skip("no device computes here: the drivers have none that could be exact")
	return 0, device.Capabilities{}
}

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "run the comparison suite, as .ci/run does")

// The suite finds no difference on a device of this machine.
func TestSuite(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	o := Options{Program: built(t)}
	at, d := exact(t, o)
	pieces := 0
	r, err := Suite(t.Context(), o, at, 4000, func(done, all int, _ suite.Report) {
		if pieces++; done != pieces || done > all {
			t.Errorf("piece %d of %d after %d", done, all, pieces-1)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Differ() != 0 || r.Elements() < 100000 {
		t.Errorf("%s: %d of %d elements differ: %s", d.Name, r.Differ(), r.Elements(), r.Failed())
	}
	t.Logf("%s: %+v", d.Name, r)
}

// A device that there is not, a program that there is not, and one that answers something else, are named.
func TestErrors(t *testing.T) {
	o := Options{Program: built(t)}
	exact(t, o)
	wanted := func(what, code string, err error) {
		t.Helper()
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Code != code || fixes[code] == "" {
			t.Errorf("%s: %v, want %s", what, err, code)
		}
	}
	_, err := Suite(t.Context(), o, 99, 100, func(int, int, suite.Report) {})
	wanted("no device", CodeNone, err)
	_, err = List(t.Context(), Options{Program: "/no/such/program"})
	wanted("no program", codeProgram, err)
	script := filepath.Join(t.TempDir(), "starling-device")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nprintf '\\4\\0\\0\\0much' >&4\necho a word\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = List(t.Context(), Options{Program: script, Box: confine.Reduced})
	wanted("another program", codeProtocol, err)
}

package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/kernel"
)

func TestExamine(t *testing.T) {
	r, err := Examine(t.Context(), Options{Version: "test", Dir: filepath.Join(t.TempDir(), "not", "there", "yet")})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Findings) != len(checks) {
		t.Fatalf("%d findings of %d checks", len(r.Findings), len(checks))
	}
	for i, f := range r.Findings {
		if f.Check != checks[i].name || f.Text == "" || f.Level != OK && f.Fix == "" {
			t.Errorf("%+v", f)
		}
		if (f.Check == "numerics" || f.Check == "loopback") && f.Level != OK {
			t.Errorf("%+v", f)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Examine(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestDevices(t *testing.T) {
	c := device.Capabilities{Name: "card", Driver: "1.2", Memory: 1 << 30, Group: 256, Subnormals: true, Special: true,
		Fused: true, Rounded: true, Double: true, LittleEndian: true}
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	lacks, single := c, c
	lacks.Rounded, single.Double = false, false
	for _, x := range []struct {
		c    device.Capabilities
		ok   bool
		want string
	}{{c, true, "exact, compared 2030-01-02 03:04:05"}, {c, false, "not compared yet (starling bench device)"},
		{lacks, true, "not exact, it has no correctly rounded divisions and roots (CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)"},
		{single, true, "without numbers of 64 bits, for version 2 of the numerics: exact, compared 2030-01-02 03:04:05"},
	} {
		if got := deviceText(1, x.c, at, x.ok); got != "opencl:1 card, driver 1.2, 1.0 GiB: "+x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

func TestNumericsLeavesThePathAsItIs(t *testing.T) {
	if err := kernel.Select("portable"); err != nil {
		t.Fatal(err)
	}
	defer kernel.Select("")
	if f := numerics(t.Context(), Options{}); f.Level != OK || kernel.Active() != kernel.Portable {
		t.Errorf("%+v, then %s", f, kernel.Active())
	}
	if f := processor(t.Context(), Options{}); f.Level != Warn || f.Fix == "" {
		t.Errorf("portable kernels: %+v", f)
	}
}

func TestLevels(t *testing.T) {
	for amount, want := range map[uint64]Level{0: Fail, 9: Fail, 10: Warn, 99: Warn, 100: OK} {
		if f := least(amount, 10, 100, "amount", "more"); f.Level != want || (f.Fix == "") != (want == OK) {
			t.Errorf("%d: %+v", amount, f)
		}
	}
	for year, want := range map[int]Level{1970: Fail, 2025: Fail, 2026: OK, 2040: OK, 2200: Fail} {
		if f := clockAt(time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)); f.Level != want {
			t.Errorf("%d: %+v", year, f)
		}
	}
}

func TestDiskSaysWhereNothingCanBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadDir(filepath.Dir(file))
	if f := disk(t.Context(), Options{Dir: filepath.Dir(file)}); f.Level == Fail {
		t.Errorf("%+v", f)
	}
	if after, _ := os.ReadDir(filepath.Dir(file)); len(after) != len(before) {
		t.Errorf("%v was left behind", after)
	}
	if os.Getuid() == 0 {
		return // root writes anywhere
	}
	if f := disk(t.Context(), Options{Dir: "/"}); f.Level != Fail || f.Fix == "" {
		t.Errorf("%+v", f)
	}
}

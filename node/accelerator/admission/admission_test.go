package admission

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/node/accelerator"
)

// fake is a machine whose devices are as a test says.
type fake struct {
	list    []device.Capabilities
	differs map[int]bool
	program canon.Digest
	none    error
	suites  int
}

func (f *fake) List(context.Context) ([]device.Capabilities, error) { return f.list, f.none }
func (f *fake) Digest() (canon.Digest, error)                       { return f.program, nil }

func (f *fake) Suite(_ context.Context, at, elements int) (suite.Report, error) {
	f.suites++
	r := suite.Result{Kind: "Dot", Cases: 1, Elements: elements}
	if f.differs[at] {
		r.Differ, r.Failed = 3, "Dot of half-way numbers: element 7 has the bytes 00, not 01"
	}
	return suite.Report{Results: []suite.Result{r}}, nil
}

// card is a device that lacks nothing.
func card(name, driver string) device.Capabilities {
	return device.Capabilities{Name: name, Driver: driver, Memory: 24 << 30, Buffer: 6 << 30, Group: 1024,
		Subnormals: true, Special: true, Fused: true, Rounded: true, Double: true, LittleEndian: true}
}

func chosen(t *testing.T, text string) (c Choice) {
	t.Helper()
	if err := c.Set(text); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestChoice(t *testing.T) {
	for _, text := range []string{"cpu", "auto", "opencl", "opencl:0", "opencl:7"} {
		c := chosen(t, text)
		if c.String() != text || c.Processor() != (text == "cpu") || c.Automatic() != (text == "auto") {
			t.Errorf("%q is %q", text, c.String())
		}
	}
	var zero Choice
	if zero.String() != "cpu" {
		t.Errorf("the zero value is %q", zero.String())
	}
	for text, want := range map[string]string{"": Words, "cuda": Words, "cpu:0": Words, "opencl:": Words,
		"opencl:-1": Words, "opencl:99999": Words, "opencl:1:2": Words, "gpu": "use opencl", "apple": "use cpu"} {
		c := chosen(t, "opencl:3")
		if err := c.Set(text); err == nil || !strings.Contains(err.Error(), want) || c.String() != "opencl:3" {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The suite runs at the first start, and after each change of a cause of its outcome.
func TestRecord(t *testing.T) {
	m := &fake{list: []device.Capabilities{card("A", "1.0")}}
	o := Options{Choice: chosen(t, "opencl"), Record: filepath.Join(t.TempDir(), FileRecord), Say: func(string) {}}
	at := time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)
	admitted := func(what string, suites int) {
		t.Helper()
		m.suites = 0
		a, err := admit(t.Context(), o, m, func() time.Time { return at })
		if err != nil || m.suites != suites || a.Passed.IsZero() {
			t.Fatalf("%s: %+v, %v, after %d suites, want %d", what, a, err, m.suites, suites)
		}
	}
	admitted("first", 1)
	admitted("again", 0)
	m.list[0].Driver = "1.1"
	admitted("another driver", 1)
	m.program = canon.Sum("another")
	admitted("another program", 1)
	admitted("again", 0)
	if known := read(o.Record).Devices; len(known) != 1 || known[0].Name != "A" || known[0].Elements != Elements ||
		!known[0].Passed.Equal(at.Truncate(time.Second)) {
		t.Errorf("%+v", known)
	}
	if err := Forget(o.Record, "A"); err != nil {
		t.Fatal(err)
	}
	admitted("forgotten", 1)
	if err := os.WriteFile(o.Record, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	admitted("a damaged record", 1)
	for i := range 2 * mostRecords {
		if err := read(o.Record).with(Record{Name: string(rune('a' + i))}).write(o.Record); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(read(o.Record).Devices); n != mostRecords {
		t.Errorf("%d records, want %d", n, mostRecords)
	}
}

func TestAdmission(t *testing.T) {
	pocl, gpu, arc := card("pocl", "3.1"), card("gpu", "550"), card("arc", "24")
	pocl.Processor, arc.Rounded = true, false
	none := accelerator.Wrong(accelerator.CodeNone, "there is no driver", "")
	for name, c := range map[string]struct {
		m      fake
		choice string
		at     int
		code   string
		why    string
	}{
		"no driver":       {fake{none: none}, "opencl", 0, accelerator.CodeNone, "no driver"},
		"no device":       {fake{}, "opencl", 0, accelerator.CodeNone, "the drivers have none"},
		"no such device":  {fake{list: []device.Capabilities{pocl}}, "opencl:1", 0, accelerator.CodeNone, "opencl:1"},
		"first":           {fake{list: []device.Capabilities{pocl, gpu}}, "opencl", 0, "", ""},
		"second":          {fake{list: []device.Capabilities{pocl, gpu}}, "opencl:1", 1, "", ""},
		"a GPU":           {fake{list: []device.Capabilities{pocl, gpu}}, "auto", 1, "", ""},
		"processors only": {fake{list: []device.Capabilities{pocl}}, "auto", 0, accelerator.CodeNone, "there is no GPU"},
		"lacks something": {fake{list: []device.Capabilities{arc}}, "auto", 0, accelerator.CodeInexact,
			"CL_FP_CORRECTLY_ROUNDED"},
		"the next": {fake{list: []device.Capabilities{arc, gpu}}, "auto", 1, "", ""},
		"differs": {fake{list: []device.Capabilities{gpu}, differs: map[int]bool{0: true}}, "auto", 0,
			accelerator.CodeInexact, "3 of 4096 elements differ: Dot of half-way numbers: element 7"},
		"differs, the next": {fake{list: []device.Capabilities{gpu, gpu}, differs: map[int]bool{0: true}}, "opencl", 1,
			"", ""},
	} {
		record := filepath.Join(t.TempDir(), FileRecord)
		o := Options{Choice: chosen(t, c.choice), Record: record, Say: func(string) {}}
		a, err := admit(t.Context(), o, &c.m, time.Now)
		if e, ok := errors.AsType[*accelerator.Error](err); c.code != "" {
			if !ok || e.Code != c.code || !strings.Contains(e.Error(), c.why) || len(read(record).Devices) != 0 {
				t.Errorf("%s: %v, want %s", name, err, c.code)
			}
			if _, _, _, _, fix := e.Explain(); !strings.Contains(fix, "--device cpu") {
				t.Errorf("%s: %q does not name the way out", name, fix)
			}
		} else if err != nil || a.At != c.at {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

package pause

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// stat is a line of proc/PID/stat.
func stat(pid, parent int, name string, user, system int) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "%d (%s) S %d 1 1 0 -1 4194560 1 2 3 4 %d %d 0 0 20 0 1 0 9 10", pid,
		name, parent, user, system)}
}

func processors(user, nice, system, idle int) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil,
		"cpu  %d %d %d %d 50 3 4 0 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\ncpu1 1 1 1 1 1 1 1 0 0 0\nintr 5\n", user, nice, system,
		idle)}
}

// The work of the process and of its children is its own. All else counts, also what is nice.
func TestWorkOfOthers(t *testing.T) {
	root := fstest.MapFS{"proc/stat": processors(1000, 0, 100, 9000),
		"proc/1/stat": stat(1, 0, "init", 10, 0), "proc/7/stat": stat(7, 1, "starling", 500, 20),
		"proc/8/stat": stat(8, 7, "python", 100, 0), "proc/9/stat": stat(9, 8, "torch (1) x", 200, 0),
		"proc/self/stat": stat(7, 1, "starling", 500, 20), "proc/10": {Mode: 0o755 | 1<<31}}
	l, now, c := &Linux{Root: root, PID: 7}, noon().Time, Conditions{BusyCPU: 50}
	read := func(want float64) {
		t.Helper()
		r, err := l.Read(c, now)
		if err != nil || math.Abs(r.Others-want) > 1e-9 {
			t.Errorf("others use %v (%v), want %v", r.Others, err, want)
		}
		now = now.Add(2 * time.Second) // 400 ticks of two processors
	}
	read(-1)
	root["proc/stat"] = processors(1200, 100, 150, 9050) // 350
	root["proc/7/stat"], root["proc/9/stat"] = stat(7, 1, "starling", 600, 30), stat(9, 8, "torch (1) x", 240, 0)
	read(0.5)                   // 150 of the 350 are its own
	delete(root, "proc/9/stat") // it ended
	root["proc/11/stat"] = stat(11, 7, "new", 100, 0)
	root["proc/stat"] = processors(1300, 100, 150, 9350)
	read(0)
	root["proc/stat"] = processors(1900, 100, 150, 9350)
	read(1)

	root["proc/12/stat"] = stat(12, 1, "a-name-of-15-by", 0, 0)
	c.Apps = []string{"a-name-of-15-bytes", "python", "nothing"}
	if r, err := l.Read(c, now); err != nil || !slices.Equal(r.Running, c.Apps[:2]) {
		t.Errorf("%v, %v", r.Running, err)
	}
	root["proc/stat"] = &fstest.MapFile{Data: []byte("cpu  x 1 1 1 1 1 1 1\n")}
	if _, err := l.Read(c, now); err == nil {
		t.Error("a damaged file is read")
	}
	if _, err := (&Linux{Root: fstest.MapFS{}}).Read(c, now); err == nil {
		t.Error("nothing is read")
	}
}

func TestBattery(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text + "\n")} }
	const dir = "sys/class/power_supply/"
	laptop := func(online, status string) fstest.MapFS {
		return fstest.MapFS{dir + "AC/type": file("Mains"), dir + "AC/online": file(online),
			dir + "BAT0/type": file("Battery"), dir + "BAT0/status": file(status)}
	}
	mouse := fstest.MapFS{dir + "hid/type": file("Battery"), dir + "hid/scope": file("Device"),
		dir + "hid/status": file("Discharging")}
	alone := laptop("0", "Discharging")
	delete(alone, dir+"AC/type")
	delete(alone, dir+"AC/online")
	full := fstest.MapFS{dir + "BAT0/type": file("Battery"), dir + "BAT0/status": file("Full")}
	for name, x := range map[string]struct {
		root fstest.MapFS
		want bool
	}{
		"desktop": {fstest.MapFS{}, false}, "charger": {laptop("1", "Charging"), false},
		"weak charger": {laptop("1", "Discharging"), false}, "battery": {laptop("0", "Discharging"), true},
		"unplugged and full": {laptop("0", "Full"), true}, "mouse": {mouse, false}, "no charger": {alone, true},
		"no charger, full": {full, false},
	} {
		r, err := (&Linux{Root: x.root}).Read(Conditions{Battery: true}, noon().Time)
		if err != nil || r.Battery != x.want {
			t.Errorf("%s: %v, %v", name, r.Battery, err)
		}
	}
}

// A condition that reads proc or sys is refused where there is none, and so is a name that no process has.
func TestConditionsThatCannotHold(t *testing.T) {
	for key, c := range map[string]Conditions{KeyBusyCPU: {BusyCPU: 1}, KeyBattery: {Battery: true},
		KeyApps: {Apps: []string{"x"}}} {
		unsupported := (*UnsupportedError)(nil)
		if err := c.Check("darwin"); !errors.As(err, &unsupported) || unsupported.Key != key ||
			!strings.Contains(err.Error(), "darwin") {
			t.Errorf("%s: %v", key, err)
		}
		if err := c.Check("linux"); err != nil {
			t.Error(err)
		}
	}
	if err := (Conditions{Hours: Hours{{1, 2}}, Work: Hours{{1, 2}}}).Check("plan9"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "/usr/bin/x", "a\nb"} {
		if (Conditions{Apps: []string{name}}).Check("linux") == nil {
			t.Errorf("%q is a name", name)
		}
	}
	var s Share
	for _, text := range []string{"", "0", "101%", "half", "-5%", "50.5%"} {
		if s.Set(text) == nil {
			t.Errorf("%q is a share", text)
		}
	}
	if err := s.Set("40"); err != nil || s.String() != "40%" {
		t.Errorf("%v, %s", err, s.String())
	}
	if m := ThisMachine(fstest.MapFS{}, 1); (m != nil) != (runtime.GOOS == "linux") {
		t.Errorf("%v", m)
	}
}

// The name of a process is any bytes.
func FuzzProcess(f *testing.F) {
	f.Add("7 (a) b) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 0 0")
	f.Add("7 (")
	f.Add(") 7 (")
	f.Fuzz(func(t *testing.T, text string) {
		if p, ok := parse(text); ok && len(p.name) > len(text) {
			t.Error("a name that is not there")
		}
	})
}

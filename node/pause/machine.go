package pause

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reading is the state of the machine at a time.
type Reading struct {
	Others  float64 // part of all processors that other processes used since the reading before; below 0: not known yet
	Battery bool    // it runs on its battery
	Running []string
}

// Machine reads the state of the machine.
type Machine interface {
	Read(c Conditions, now time.Time) (Reading, error)
}

// Linux reads the files of a Linux system: proc and sys. Every reading compares with the one before.
type Linux struct {
	Root fs.FS
	PID  int // of this process, whose work and that of its children is its own

	last     time.Time
	busy     float64         // ticks of all processes at the last reading
	own      map[int]float64 // ticks of this process and its children, at the last reading
	ownTotal float64         // ticks that they used until then, those that ended included
}

// Bounds of the files that are read.
const (
	maxProcesses = 1 << 16
	maxSupplies  = 64
)

// ticksPerSecond is the unit of the times in proc on every port of Linux that Go has (USER_HZ).
const ticksPerSecond = 100

// Read implements Machine. It reads only what the conditions need.
func (l *Linux) Read(c Conditions, now time.Time) (Reading, error) {
	r := Reading{Others: -1}
	var err error
	if c.Battery {
		if r.Battery, err = onBattery(l.Root); err != nil {
			return r, err
		}
	}
	if c.BusyCPU == 0 && len(c.Apps) == 0 {
		return r, nil
	}
	all, err := processes(l.Root)
	if err != nil {
		return r, err
	}
	for _, name := range c.Apps {
		// proc has the first 15 bytes of a name
		if slices.ContainsFunc(all, func(p process) bool { return p.name == name[:min(len(name), 15)] }) {
			r.Running = append(r.Running, name)
		}
	}
	if c.BusyCPU > 0 {
		r.Others, err = l.others(all, now)
	}
	return r, err
}

// others is the part of all processors that other processes used since the call before; below 0: it is the first.
func (l *Linux) others(all []process, now time.Time) (float64, error) {
	busy, processors, err := busyTicks(l.Root)
	if err != nil {
		return -1, err
	}
	own := family(all, l.PID)
	total := l.ownTotal
	for pid, ticks := range own {
		total += max(0, ticks-l.own[pid])
	}
	ticks := now.Sub(l.last).Seconds() * ticksPerSecond * float64(processors)
	share := -1.0
	if !l.last.IsZero() && ticks > 0 {
		share = min(1, max(0, (busy-l.busy-(total-l.ownTotal))/ticks))
	}
	l.last, l.busy, l.own, l.ownTotal = now, busy, own, total
	return share, nil
}

// busyTicks are the ticks that the processors spent on processes, the system and interrupts, and their number.
func busyTicks(root fs.FS) (ticks float64, processors int, err error) {
	text, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		switch {
		case len(f) >= 8 && f[0] == "cpu": // user nice system idle iowait irq softirq
			for _, k := range []int{1, 2, 3, 6, 7} {
				n, err := strconv.ParseFloat(f[k], 64)
				if err != nil {
					return 0, 0, fmt.Errorf("pause: proc/stat: %w", err)
				}
				ticks += n
			}
		case len(f) > 0 && strings.HasPrefix(f[0], "cpu"):
			processors++
		}
	}
	if processors == 0 {
		return 0, 0, errors.New("pause: proc/stat names no processor")
	}
	return ticks, processors, nil
}

// process is one of the system.
type process struct {
	pid, parent int
	name        string
	ticks       float64 // that it used
}

// processes lists those that can be read: one may end meanwhile.
func processes(root fs.FS) (all []process, err error) {
	entries, err := fs.ReadDir(root, "proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || len(all) == maxProcesses {
			continue
		}
		text, err := fs.ReadFile(root, path.Join("proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		if p, ok := parse(string(text)); ok && p.pid == pid {
			all = append(all, p)
		}
	}
	return all, nil
}

// parse reads proc/PID/stat. A name may contain spaces and parentheses.
func parse(text string) (p process, ok bool) {
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return p, false
	}
	rest := strings.Fields(text[end+1:])
	if len(rest) < 13 {
		return p, false
	}
	var errs [4]error
	var user, system float64
	p.pid, errs[0] = strconv.Atoi(strings.TrimSpace(text[:open]))
	p.parent, errs[1] = strconv.Atoi(rest[1])
	user, errs[2] = strconv.ParseFloat(rest[11], 64)
	system, errs[3] = strconv.ParseFloat(rest[12], 64)
	p.name, p.ticks = text[open+1:end], user+system
	return p, errors.Join(errs[:]...) == nil
}

// family are the ticks of a process and of its children, and of theirs.
func family(all []process, pid int) map[int]float64 {
	own := map[int]float64{}
	for more := true; more; {
		more = false
		for _, p := range all {
			_, known := own[p.pid]
			if _, child := own[p.parent]; !known && (p.pid == pid || child) {
				own[p.pid], more = p.ticks, true
			}
		}
	}
	return own
}

// onBattery reports whether the machine runs on its battery: none of its chargers is plugged in, or, if the system
// lists no charger, a battery of the machine is being discharged. Batteries of its mouse do not count.
func onBattery(root fs.FS) (bool, error) {
	const dir = "sys/class/power_supply"
	entries, err := fs.ReadDir(root, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	read := func(supply, file string) string {
		text, _ := fs.ReadFile(root, path.Join(dir, supply, file)) // a supply has the files of its type alone
		return strings.TrimSpace(string(text))
	}
	chargers, plugged, batteries, discharging := 0, false, 0, false
	for _, e := range entries[:min(len(entries), maxSupplies)] {
		switch name := e.Name(); {
		case read(name, "scope") == "Device":
		case read(name, "type") == "Battery":
			batteries++
			discharging = discharging || read(name, "status") == "Discharging"
		case read(name, "online") != "":
			chargers++
			plugged = plugged || read(name, "online") == "1"
		}
	}
	if batteries == 0 {
		return false, nil
	}
	return chargers > 0 && !plugged || chargers == 0 && discharging, nil
}

// ThisMachine reads the machine that the process runs on.
func ThisMachine(root fs.FS, pid int) Machine {
	if runtime.GOOS != "linux" {
		return nil
	}
	return &Linux{Root: root, PID: pid}
}

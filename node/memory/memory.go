// Package memory says how much memory a process may take on this machine: what the system has left, and what the
// control group of a container allows. It keeps garbage small (Pace), keeps bytes out of the memory of the process
// (Aside, and Folder, whose files are mapped), and measures the peak (Peak). The need of a job is known to role/bundle
// and node/plan.
package memory

import (
	"bufio"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Available are the bytes that a process may still take, and Total those that the machine or its control group has; not
// ok where that is not known.
func Available() (available, total uint64, ok bool) { return read(os.DirFS("/")) }

// groups are the files of a control group: of version 2, and of version 1.
var groups = []struct{ limit, used string }{
	{"sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.current"},
	{"sys/fs/cgroup/memory/memory.limit_in_bytes", "sys/fs/cgroup/memory/memory.usage_in_bytes"},
}

func read(root fs.FS) (available, total uint64, ok bool) {
	available, ok = kibibytes(root, "MemAvailable")
	total, known := kibibytes(root, "MemTotal")
	if !ok || !known {
		return 0, 0, false
	}
	for _, g := range groups {
		limit, limited := number(root, g.limit) // "max" is none
		if used, known := number(root, g.used); limited && known && limit < total {
			total, available = limit, min(available, limit-min(used, limit))
		}
	}
	return available, total, true
}

// kibibytes is a line of /proc/meminfo, in bytes.
func kibibytes(root fs.FS, name string) (bytes uint64, ok bool) {
	f, err := root.Open("proc/meminfo")
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, _ := strings.Cut(s.Text(), ":"); key == name {
			n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 54)
			return n << 10, err == nil
		}
	}
	return 0, false
}

func number(root fs.FS, path string) (n uint64, ok bool) {
	text, err := fs.ReadFile(root, path)
	if err == nil {
		n, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	}
	return n, err == nil
}

package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// span is a range of addresses.
type span struct{ from, to uintptr }

// dropProgram takes the pages of this program's file that were read up to here out of the resident memory: most are of
// code that runs once, at the start of the program. A page that is needed again is mapped again, from the cache of the
// system. A program in a debugger stays as it is.
func dropProgram() {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !bytes.Contains(status, []byte("\nTracerPid:\t0\n")) {
		return
	}
	for _, s := range program() {
		// If it fails, the pages stay where they are.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_DONTNEED)
	}
}

// resident is the memory that this process has resident now, in bytes.
func resident() (bytes uint64) {
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		var all, pages uint64
		if n, _ := fmt.Sscan(string(text), &all, &pages); n == 2 {
			bytes = pages * uint64(os.Getpagesize())
		}
	}
	return bytes
}

// program is where the file of this program is mapped and cannot be written to.
var program = sync.OnceValue(func() []span {
	file, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return nil
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return nil
	}
	return unchanged(maps, file)
})

// unchanged returns the mappings of a file, as /proc/PID/smaps lists them, that cannot be written to and have no page
// of their own: a page that was changed after it was read, as by a loader or a debugger, is not in the file.
func unchanged(smaps []byte, file string) []span {
	var found []span
	var at span
	for lines := bufio.NewScanner(bytes.NewReader(smaps)); lines.Scan(); {
		line := lines.Text()
		var s span
		var may string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &s.from, &s.to, &may); n == 3 {
			if at = (span{}); !strings.Contains(may, "w") && strings.HasSuffix(line, " "+file) {
				at = s
			}
		} else if own, ok := strings.CutPrefix(line, "Anonymous:"); ok && at.to > at.from &&
			strings.TrimSpace(own) == "0 kB" {
			found = append(found, at)
		}
	}
	return found
}

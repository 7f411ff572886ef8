package fault

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// startAt starts a command with the clock of a program, which it executes last, wrong by some seconds. A Go program
// reads the clock through a function that the kernel maps into every process (the vDSO), not through the C library:
// this writes another function over it before the program's first instruction.
func startAt(c *exec.Cmd, program string, shift time.Duration) (err error) {
	runtime.LockOSThread() // the tracer is a thread, not a process
	defer runtime.UnlockOSThread()
	c.SysProcAttr.Ptrace = true // it stops when it has executed a program
	if err := c.Start(); err != nil {
		return err
	}
	pid := c.Process.Pid
	for {
		var status syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
			return err
		}
		if !status.Stopped() {
			return fmt.Errorf("the process ended before it was %s: %v", program, status)
		}
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			return err
		}
		if exe == program {
			return errors.Join(shiftClock(pid, int32(shift/time.Second)), syscall.PtraceDetach(pid))
		}
		if err := syscall.PtraceCont(pid, 0); err != nil {
			return err
		}
	}
}

var vdso = regexp.MustCompile(`(?m)^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$`)

// shiftClock makes the wall clock of a stopped process wrong. Its monotonic clock stays.
func shiftClock(pid int, seconds int32) error {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	place := vdso.FindSubmatch(maps)
	if place == nil {
		return errors.New("the process has no vDSO")
	}
	from, err1 := strconv.ParseInt(string(place[1]), 16, 64)
	to, err2 := strconv.ParseInt(string(place[2]), 16, 64)
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err := errors.Join(err1, err2, err); err != nil {
		return err
	}
	defer mem.Close()
	image := make([]byte, to-from)
	if _, err := io.ReadFull(io.NewSectionReader(mem, from, to-from), image); err != nil {
		return err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return err
	}
	symbols, err := file.DynamicSymbols()
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" {
			_, err := mem.WriteAt(clockGettime(seconds), from+int64(s.Value))
			return err
		}
	}
	return fmt.Errorf("the vDSO has no clock: %w", err)
}

// clockGettime is the machine code of clock_gettime(clock, *timespec), by the system call, with seconds added to
// CLOCK_REALTIME.
func clockGettime(seconds int32) []byte {
	code := []byte{
		0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, 228
		0x0f, 0x05, // syscall
		0x85, 0xff, // test edi, edi: CLOCK_REALTIME is 0
		0x75, 0x07, // jne over the next
		0x48, 0x81, 0x06, // add qword ptr [rsi], seconds
	}
	code = binary.LittleEndian.AppendUint32(code, uint32(seconds))
	return append(code, 0xc3) // ret
}

//go:build linux && (amd64 || arm64)

package confine

import (
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// filter is a program of the classic Berkeley packet filter over struct seccomp_data: the number of a system call, the
// architecture, and six arguments of 64 bits.
type filter []unix.SockFilter

const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16 // the low half of the first argument, little-endian
)

// refused are system calls that lead out of the box, to other processes, or to memory that is not counted.
var refused = append([]uintptr{
	unix.SYS_SOCKET, unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KILL, unix.SYS_TKILL,
	unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_PIDFD_GETFD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_OPEN_TREE,
	unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_BPF,
	unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER, unix.SYS_USERFAULTFD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT, unix.SYS_MEMFD_CREATE, unix.SYS_SHMGET, unix.SYS_MSGGET, unix.SYS_MQ_OPEN,
}, refusedHere...)

// newNamespaces are the flags of clone that lead out of the box.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// filterOf is the filter of a child, which may start processes or may not. Where it must not, it cannot share
// anonymous memory, which its limit would not count; drivers of accelerators may do that.
func filterOf(countsMemory, forks bool) filter {
	f := filter{
		load(offsetArch), jump(unix.BPF_JEQ, architecture, 1, 0), answer(unix.SECCOMP_RET_KILL_PROCESS),
		load(offsetNumber), jump(unix.BPF_JGE, 1<<30, 0, 1), refuse(unix.EPERM), // another way to call the same
	}
	for _, n := range refused {
		if forks && slices.Contains(forking, n) {
			continue
		}
		f = append(f, jump(unix.BPF_JEQ, uint32(n), 0, 1), refuse(unix.EPERM))
	}
	// its flags are out of sight: libraries fall back to clone
	f = append(f, jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), refuse(unix.ENOSYS))
	if forks {
		f = f.where(unix.SYS_CLONE, 0, newNamespaces, 0, true)
	} else {
		f = f.where(unix.SYS_CLONE, 0, unix.CLONE_THREAD, unix.CLONE_THREAD, true) // threads, no processes
	}
	f = f.where(unix.SYS_TGKILL, 0, ^uint32(0), uint32(os.Getpid()), true) // to itself
	f = f.where(unix.SYS_PRLIMIT64, 0, ^uint32(0), 0, true)                // of itself
	if countsMemory {
		const shared = unix.MAP_SHARED | unix.MAP_ANONYMOUS
		f = f.where(unix.SYS_MMAP, 3, shared, shared, false)
	}
	return append(f, answer(unix.SECCOMP_RET_ALLOW))
}

// where allows a system call (or refuses it) if the bits of mask in an argument have the value given, and refuses it
// (or allows it) otherwise.
func (f filter) where(call uint32, argument int, mask, value uint32, allow bool) filter {
	yes, no := answer(unix.SECCOMP_RET_ALLOW), refuse(unix.EPERM)
	if !allow {
		yes, no = no, yes
	}
	return append(f, jump(unix.BPF_JEQ, call, 0, 5), load(uint32(offsetArgs+8*argument)),
		unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask}, jump(unix.BPF_JEQ, value, 0, 1), yes, no)
}

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// jump skips holds instructions if the comparison of the loaded value with k holds, else fails instructions.
func jump(comparison uint16, k uint32, holds, fails uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | comparison | unix.BPF_K, Jt: holds, Jf: fails, K: k}
}

func answer(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k}
}

func refuse(errno unix.Errno) unix.SockFilter { return answer(unix.SECCOMP_RET_ERRNO | uint32(errno)) }

// install puts the filter on this thread and on what it becomes.
func (f filter) install() error {
	p := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0,
		uintptr(unsafe.Pointer(&p))); errno != 0 {
		return fmt.Errorf("filter of system calls: %w", errno)
	}
	return nil
}

package confine

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

var refusedHere = []uintptr{unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_KEXEC_FILE_LOAD}

// forking are the system calls that start a process, besides clone.
var forking = []uintptr{unix.SYS_FORK, unix.SYS_VFORK}

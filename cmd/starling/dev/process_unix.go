//go:build unix

package dev

import (
	"os"
	"os/exec"
	"syscall"
)

// apart keeps the Ctrl-C of a terminal from a process that is not started yet: Ctrl-C is for the supervisor, which
// stops its processes in order.
func apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// interrupt asks a process to end.
func interrupt(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// alive returns an error unless the process runs.
func alive(p *os.Process) error { return p.Signal(syscall.Signal(0)) }

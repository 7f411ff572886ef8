//go:build unix

// Package process starts and ends processes of this program that another one supervises, as each system has it.
package process

import (
	"os"
	"os/exec"
	"syscall"
)

// Apart keeps the Ctrl-C of a terminal from a process that is not started yet: Ctrl-C is for the supervisor, which
// stops its processes in order.
func Apart(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Interrupt asks a process to end.
func Interrupt(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// Alive returns an error unless the process runs.
func Alive(p *os.Process) error { return p.Signal(syscall.Signal(0)) }

package process

import (
	"os/exec"
	"syscall"
)

// Tie ends a process that is not started yet, by SIGKILL, when this one ends in any way. It follows Apart.
func Tie(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }

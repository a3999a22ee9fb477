package redisserver

import (
	"os/exec"
	"syscall"
)

// endWithParent: a program that is killed closes nothing.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

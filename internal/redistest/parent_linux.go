package redistest

import (
	"os/exec"
	"syscall"
)

// endWithParent: a test binary that panics or is killed runs no Cleanup.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

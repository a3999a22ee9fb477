//go:build !linux

package redisserver

import "os/exec"

// endWithParent: only Linux has it.
func endWithParent(*exec.Cmd) {}

//go:build unix

package redisserver

import "syscall"

// Pause stops the process where it is: connections stay open, and nobody answers.
func (s *Server) Pause() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }

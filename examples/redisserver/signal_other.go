//go:build !unix

package redisserver

import "errors"

// Pause needs a signal that this system does not have.
func (s *Server) Pause() error { return errors.ErrUnsupported }

// Resume needs a signal that this system does not have.
func (s *Server) Resume() error { return errors.ErrUnsupported }

// Package redisserver starts a redis-server for a program that wants to show something: on loopback, on a port of its own,
// without persistence, and gone with the program. Tests have internal/redistest.
package redisserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// ErrMissing says that there is no redis-server on the PATH, and how to get one.
var ErrMissing = errors.New("there is no redis-server on the PATH (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis)")

// patience is how long a server may take to answer.
const patience = 10 * time.Second

// Server is a running redis-server. Its methods are not safe for concurrent use.
type Server struct {
	Addr    string // host:port
	Version string // 7.0.15

	cmd    *exec.Cmd
	dir    string
	log    bytes.Buffer  // read after the process has ended
	exited chan struct{} // closed when it has
}

// Start starts a server and waits until it answers. Its error matches [ErrMissing] where none is installed.
func Start(ctx context.Context) (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, ErrMissing
	}
	for attempt := 1; ; attempt++ {
		s, err := start(ctx, path)
		if err == nil {
			return s, nil
		}
		if attempt == 5 || !strings.Contains(err.Error(), "already in use") {
			return nil, err
		}
	}
}

// start takes a port below those from which the kernel takes the clients' ends.
func start(ctx context.Context, path string) (*Server, error) {
	dir, err := os.MkdirTemp("", "redisserver-")
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(22_000 + rand.IntN(10_000))
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", port), dir: dir, exited: make(chan struct{})}
	s.cmd = exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--daemonize", "no")
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	endWithParent(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() {
		_ = s.cmd.Wait() // says only how it ended
		close(s.exited)
	}()
	if err := s.await(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("redis-server at %s: %w: %s", s.Addr, err, lastLines(s.log.String()))
	}
	return s, nil
}

// await waits until this process, and not another one at the same port, answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := s.info()
		if err == nil {
			if pid := field(info, "process_id"); pid != strconv.Itoa(s.cmd.Process.Pid) {
				return fmt.Errorf("the port is already in use, by process %s", pid)
			}
			s.Version = field(info, "redis_version")
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no answer: %w", err)
		case <-s.exited:
			return errors.New("it ended")
		case <-tick.C:
		}
	}
}

// info asks without a client.
func (s *Server) info() (string, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte("INFO server\r\n")); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	var text strings.Builder
	for !strings.Contains(text.String(), "process_id:") || !strings.HasSuffix(text.String(), "\n") {
		line, err := r.ReadString('\n')
		if err != nil {
			return "", err
		}
		if line[0] == '-' {
			return "", errors.New(strings.TrimSpace(line))
		}
		text.WriteString(line)
	}
	return text.String(), nil
}

func field(info, name string) string {
	_, rest, _ := strings.Cut(info, "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r")
	return value
}

func lastLines(log string) string {
	lines := strings.Split(strings.TrimSpace(log), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// Close kills the server, paused or not, and waits until it is gone.
func (s *Server) Close() {
	_ = s.cmd.Process.Kill() // it may be gone already
	<-s.exited
	_ = os.RemoveAll(s.dir) // a temporary one
}

package redistest

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Options of a server; the zero Options are a plain one without persistence.
type Options struct {
	Config    []string // lines of redis.conf, after the ones made here
	Password  string   // requirepass
	MaxMemory string   // "3mb"; "" = no limit
	TLS       bool     // no plain port; see Server.TLS
	Persist   bool     // an append-only file, fsynced at each write: a Restart keeps the data
}

// Server is a redis-server that belongs to a test.
type Server struct {
	Addr     string // host:port
	Port     int
	Password string
	TLS      *tls.Config // what a client needs; nil = plain

	process process
}

// Start starts a server and waits until it answers; it ends with t.
func Start(t testing.TB, opts ...Options) *Server {
	t.Helper()
	var o Options
	if len(opts) > 0 {
		o = opts[0]
	}
	s, err := start(o, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.process.kill)
	return s
}

// start tries other ports where somebody was faster.
func start(o Options, dir string) (*Server, error) {
	for attempt := 1; ; attempt++ {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s, err := newServer(o, dir, port)
		if err != nil {
			return nil, err
		}
		err = s.up()
		if err == nil {
			return s, nil
		}
		s.process.kill()
		if attempt == 5 || !strings.Contains(s.process.log(), "Address already in use") {
			return nil, err
		}
	}
}

func newServer(o Options, dir string, port int) (*Server, error) {
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Port: port, Password: o.Password}
	lines := []string{
		"bind 127.0.0.1", "dir " + strconv.Quote(dir), "daemonize no", `save ""`, "protected-mode no",
		"repl-diskless-sync-delay 0", // a replica that waits for others makes tests wait
	}
	if o.TLS {
		files, config, err := certificate(dir)
		if err != nil {
			return nil, err
		}
		s.TLS = config
		lines = append(lines, "port 0", "tls-port "+strconv.Itoa(port), "tls-auth-clients no")
		lines = append(lines, files...)
	} else {
		lines = append(lines, "port "+strconv.Itoa(port))
	}
	if o.Persist {
		lines = append(lines, "appendonly yes", "appendfsync always")
	}
	if o.Password != "" {
		lines = append(lines, "requirepass "+strconv.Quote(o.Password))
	}
	if o.MaxMemory != "" {
		lines = append(lines, "maxmemory "+o.MaxMemory)
	}
	lines = append(lines, o.Config...)
	conf := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(conf, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	s.process = process{binary: "redis-server", args: []string{conf}, dir: dir}
	return s, nil
}

// up launches the process and waits for its answer.
func (s *Server) up() error {
	if err := s.process.launch(); err != nil {
		return err
	}
	return s.await()
}

func (s *Server) await() error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var err error
	for start := time.Now(); time.Since(start) < Patience; <-tick.C {
		if err = s.ping(); err == nil {
			return nil
		}
		if gone(s.process.pid()) {
			break
		}
	}
	return fmt.Errorf("%s at %s does not answer: %w\n%s", s.process.binary, s.Addr, err, s.process.log())
}

// ping asks without a client: an answer of any kind but LOADING is one.
func (s *Server) ping() error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return err
	}
	if strings.HasPrefix(line, "-LOADING") {
		return errors.New(strings.TrimSpace(line))
	}
	return nil
}

func (s *Server) dial() (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil || s.TLS == nil {
		return conn, err
	}
	return tls.Client(conn, s.TLS), nil
}

// Options are what a client of this server needs; more may be set on them.
func (s *Server) Options() *redis.Options {
	return &redis.Options{Addr: s.Addr, Password: s.Password, TLSConfig: s.TLS}
}

// Client is a client that is closed with t.
func (s *Server) Client(t testing.TB) *redis.Client {
	t.Helper()
	return closing(t, redis.NewClient(s.Options()))
}

func closing[C interface{ Close() error }](t testing.TB, c C) C {
	t.Cleanup(func() { _ = c.Close() }) // the test may have closed it
	return c
}

// Do runs one command through a client of its own, and fails t where the server does.
func (s *Server) Do(t testing.TB, args ...any) any {
	t.Helper()
	v, err := s.Try(t, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// Try is Do that gives the error.
func (s *Server) Try(t testing.TB, args ...any) (any, error) {
	t.Helper()
	o := s.Options()
	o.MaxRetries, o.PoolSize = -1, 1
	c := redis.NewClient(o)
	defer c.Close()
	v, err := c.Do(context.Background(), args...).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return v, err
}

// Pause stops the process where it is (SIGSTOP): connections stay open and nobody answers.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.send(t, syscall.SIGSTOP)
	Eventually(t, "the process stops", func() bool { return stopped(s.process.pid()) })
	t.Cleanup(func() { _ = s.process.signal(syscall.SIGCONT) }) // whoever cleans up before the kill may need an answer
}

// Resume lets it go on (SIGCONT).
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.send(t, syscall.SIGCONT)
}

func (s *Server) send(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := s.process.signal(sig); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the process (SIGKILL) and waits until it is gone.
func (s *Server) Kill(testing.TB) { s.process.kill() }

// Restart starts it again at the same address, after a Kill if it runs; the data is gone unless Options.Persist.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.process.kill()
	if err := s.up(); err != nil {
		t.Fatal(err)
	}
}

// Running says whether the process runs.
func (s *Server) Running() bool { return s.process.pid() != 0 }

// Log is the end of the server's log.
func (s *Server) Log() string { return s.process.log() }

var shared struct {
	sync.Mutex
	server *Server
	dir    string
}

// Shared is the server of the whole test binary, started when first asked for and ended by [Exit]. Whoever uses it neither
// flushes nor configures it, and keeps to a Prefix.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		dir, err := os.MkdirTemp("", "redistest-")
		if err != nil {
			t.Fatal(err)
		}
		s, err := start(Options{}, dir)
		if err != nil {
			_ = os.RemoveAll(dir) // the test fails for the other reason
			t.Fatal(err)
		}
		shared.server, shared.dir = s, dir
	}
	return shared.server
}

// Exit ends the shared server, and then the process with code: what goleak.Cleanup wants.
func Exit(code int) {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.process.kill()
		_ = os.RemoveAll(shared.dir) // a temporary one
	}
	os.Exit(code)
}

package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Patience is how long anything here may take before a test fails; patienceWithVotes, what may need several elections.
const (
	Patience          = 20 * time.Second
	patienceWithVotes = time.Minute
)

// Eventually waits until ok says yes, and fails t with what after [Patience].
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	Within(t, Patience, what, ok)
}

// Within is Eventually with a patience of its own.
func Within(t testing.TB, d time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for start := time.Now(); !ok(); <-tick.C {
		if time.Since(start) > d {
			t.Fatalf("not within %v: %s", d, what)
		}
	}
}

// process is one redis-server or redis-sentinel.
type process struct {
	binary string
	args   []string
	dir    string

	mu  sync.Mutex
	cmd *exec.Cmd // nil = not running
}

const howToGet = "Debian, Ubuntu: apt-get install -y redis-server redis-sentinel; macOS: brew install redis"

// launch starts the program; its output goes to dir/log.
func (p *process) launch() error {
	path, err := exec.LookPath(p.binary)
	if err != nil {
		return fmt.Errorf("%s is needed and not installed (%s): %w", p.binary, howToGet, err)
	}
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(path, p.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = cmd
	return nil
}

// kill ends the process, and waits until it is gone.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may be gone already
	_ = p.cmd.Wait()         // says only how it ended
	p.cmd = nil
}

func (p *process) signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return fmt.Errorf("%s does not run", p.binary)
	}
	return p.cmd.Process.Signal(s)
}

func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// log is the end of what the program wrote.
func (p *process) log() string {
	b, err := os.ReadFile(filepath.Join(p.dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(bytes.ToValidUTF8(b, nil))), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// ports are below the range from which the kernel takes the client's ends of connections, with room for a Cluster's bus ten
// thousand above. Every process begins somewhere else.
var nextPort atomic.Int64

const (
	lowestPort = 10_000
	ports      = 12_000
	busOffset  = 10_000
)

func init() { nextPort.Store(int64(os.Getpid())*37 + time.Now().UnixNano()%ports) }

// freePort is one that nobody listens at, nor at its bus port.
func freePort() (int, error) {
	for range 200 {
		port := lowestPort + int(nextPort.Add(1)%ports)
		if free(port) && free(port+busOffset) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port from %d to %d", lowestPort, lowestPort+ports-1)
}

func free(port int) bool {
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

package redistest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const childEnv = "FAIRLEAD_REDISTEST_CHILD"

// Self is what a second process sees of itself.
type Self struct {
	Args []string
	In   *bufio.Scanner // lines from Process.Send; it ends when the parent closes it or is gone
	out  sync.Mutex
}

// Say sends a line to Process.Line; safe for concurrent use.
func (s *Self) Say(format string, args ...any) {
	s.out.Lock()
	defer s.out.Unlock()
	fmt.Printf(format+"\n", args...)
}

var children = map[string]func(*Self){}

// Child registers what a second process called name does; for package-level var _ = redistest.Child(…). The process ends when
// f returns, with status 0, or when it panics.
func Child(name string, f func(*Self)) bool {
	children[name] = f
	return true
}

// RunChild does what a registered child has to do, and ends the process, where this process is one; otherwise it returns.
// TestMain calls it first.
func RunChild() {
	call := os.Getenv(childEnv)
	if call == "" {
		return
	}
	var args []string
	if err := json.Unmarshal([]byte(call), &args); err != nil || len(args) == 0 || children[args[0]] == nil {
		fmt.Fprintf(os.Stderr, "redistest: no child for %q: %v\n", call, err)
		os.Exit(2)
	}
	children[args[0]](&Self{Args: args[1:], In: bufio.NewScanner(os.Stdin)})
	os.Exit(0)
}

// Process is a second process: this test binary, run again as a child.
type Process struct {
	cmd    *exec.Cmd
	stdin  *os.File
	lines  chan string
	exited chan struct{} // after the last line
	err    error         // how it ended; read after exited
}

// Spawn starts the child called name with args; it is killed with t. What it writes to stderr goes to the test's.
func Spawn(t testing.TB, name string, args ...string) *Process {
	t.Helper()
	if children[name] == nil {
		t.Fatalf("no redistest.Child is called %q", name)
	}
	call, err := json.Marshal(append([]string{name}, args...))
	if err != nil {
		t.Fatal(err)
	}
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(call), "GORACE=atexit_sleep_ms=0") // -race waits 1 s at exit
	cmd.Stdin, cmd.Stderr = in, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{cmd: cmd, stdin: stdin, lines: make(chan string, 1<<16), exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		defer close(p.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			p.lines <- scan.Text()
		}
		p.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		p.Kill()
		_ = stdin.Close() // the process is gone
	})
	return p
}

// Send gives the child a line.
func (p *Process) Send(t testing.TB, format string, args ...any) {
	t.Helper()
	if _, err := fmt.Fprintf(p.stdin, format+"\n", args...); err != nil {
		t.Fatalf("the child does not listen: %v", err)
	}
}

// CloseInput tells the child that nothing more will come.
func (p *Process) CloseInput() { _ = p.stdin.Close() }

// Line is the child's next line; t fails if none comes.
func (p *Process) Line(t testing.TB) string {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case line, ok := <-p.lines:
		if !ok {
			<-p.exited
			t.Fatalf("the child has ended: %v", p.err)
		}
		return line
	case <-timer.C:
		t.Fatalf("no line from the child within %v", Patience)
	}
	return ""
}

// Expect is Line that has to begin with prefix; the rest is returned.
func (p *Process) Expect(t testing.TB, prefix string) string {
	t.Helper()
	line := p.Line(t)
	rest, ok := strings.CutPrefix(line, prefix)
	if !ok {
		t.Fatalf("the child said %q, want %q…", line, prefix)
	}
	return strings.TrimSpace(rest)
}

// Kill ends the child as kill -9 does, and waits until it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	for range p.lines {      // what it said last
	}
	<-p.exited
}

// Wait waits for the child's own end, and fails t if it was not a good one.
func (p *Process) Wait(t testing.TB) {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	for {
		select {
		case _, ok := <-p.lines:
			if ok {
				continue
			}
			<-p.exited
			if p.err != nil {
				t.Fatalf("the child ended badly: %v", p.err)
			}
			return
		case <-timer.C:
			t.Fatalf("the child has not ended within %v", Patience)
		}
	}
}

// Pid is the child's process id, for signals.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// process is a worker, seen from here.
type process struct {
	name    string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	ready   chan struct{}
	tallies chan tally
	exited  chan struct{}
	err     error // how it ended; read after exited
}

// spawn runs this program once more. hear gets its messages, in order.
func spawn(s settings, hear func(name string, m message)) (*process, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	env, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{
		name: s.Name, cmd: exec.Command(program), ready: make(chan struct{}), tallies: make(chan tally, 16), exited: make(chan struct{}),
	}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), workerEnv+"="+string(env)), os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.listen(stdout, hear)
	return p, nil
}

func (p *process) listen(stdout io.Reader, hear func(string, message)) {
	defer close(p.exited)
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		var m message
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			fmt.Fprintf(os.Stderr, "%s says %q\n", p.name, lines.Text())
			continue
		}
		switch m.What {
		case "ready":
			close(p.ready)
		case "tally":
			p.tallies <- *m.Tally
		default:
			hear(p.name, m)
		}
	}
	p.err = p.cmd.Wait()
}

// patience is how long anything may take before the story is given up.
const patience = 20 * time.Second

// chapter tells the worker that one begins, and gives its tally of the one that ended.
func (p *process) chapter(ctx context.Context) (tally, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-p.ready:
	case <-p.exited:
		return tally{}, fmt.Errorf("process %s ended: %w", p.name, p.err)
	case <-ctx.Done():
		return tally{}, fmt.Errorf("process %s does not begin: %w", p.name, ctx.Err())
	}
	if _, err := fmt.Fprintln(p.stdin); err != nil {
		return tally{}, fmt.Errorf("process %s: %w", p.name, err)
	}
	return p.tally(ctx)
}

func (p *process) tally(ctx context.Context) (tally, error) {
	select {
	case t := <-p.tallies:
		return t, nil
	case <-ctx.Done():
		return tally{}, fmt.Errorf("process %s does not answer: %w", p.name, ctx.Err())
	}
}

// kill is kill -9: the process tells nobody.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may be gone already
	<-p.exited
	_ = p.stdin.Close() // nobody reads
}

// end lets the worker finish its calls and give everything back.
func (p *process) end() (tally, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.stdin.Close(); err != nil {
		return tally{}, err
	}
	last, err := p.tally(ctx)
	if err != nil {
		return last, err
	}
	<-p.exited
	return last, p.err
}

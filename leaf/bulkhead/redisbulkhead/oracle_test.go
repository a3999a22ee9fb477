package redisbulkhead

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// oracle counts who is inside in memory that several processes share, so that what it says hangs on no store and no clock.
type oracle struct {
	inside, most atomic.Int64
	ops          [4]atomic.Int64 // per process
}

const oracleSize = 4096

func mapOracle(path string) (*oracle, func(), error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if err := f.Truncate(oracleSize); err != nil {
		return nil, nil, err
	}
	mem, err := syscall.Mmap(int(f.Fd()), 0, oracleSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return (*oracle)(unsafe.Pointer(&mem[0])), func() { _ = syscall.Munmap(mem) }, nil
}

func newOracle(t *testing.T) (*oracle, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "oracle")
	o, unmap, err := mapOracle(path)
	require.NoError(t, err)
	t.Cleanup(unmap)
	return o, path
}

func (o *oracle) visit(process int) {
	now := o.inside.Add(1)
	for most := o.most.Load(); now > most && !o.most.CompareAndSwap(most, now); most = o.most.Load() {
	}
	o.ops[process].Add(1)
	runtime.Gosched()
	o.inside.Add(-1)
}

// workload is what a second process does, as arguments.
type workload struct {
	addr, prefix, oracle string
	process, goroutines  int
	max                  int
	timeout, lease       time.Duration
	hold                 bool // take one slot per goroutine and keep it
}

func (w workload) args() []string {
	return []string{w.addr, w.prefix, w.oracle, strconv.Itoa(w.process), strconv.Itoa(w.goroutines), strconv.Itoa(w.max),
		w.timeout.String(), w.lease.String(), strconv.FormatBool(w.hold)}
}

func parseWorkload(args []string) (w workload) {
	_, err := fmt.Sscan(strings.Join(args[3:6], " "), &w.process, &w.goroutines, &w.max)
	w.addr, w.prefix, w.oracle = args[0], args[1], args[2]
	timeout, err1 := time.ParseDuration(args[6])
	lease, err2 := time.ParseDuration(args[7])
	hold, err3 := strconv.ParseBool(args[8])
	if err != nil || err1 != nil || err2 != nil || err3 != nil {
		panic(fmt.Sprint(args))
	}
	w.timeout, w.lease, w.hold = timeout, lease, hold
	return w
}

var _ = redistest.Child("worker", func(self *redistest.Self) {
	w := parseWorkload(self.Args)
	o, unmap, err := mapOracle(w.oracle)
	if err != nil {
		panic(err)
	}
	defer unmap()
	client := redis.NewClient(&redis.Options{Addr: w.addr})
	defer client.Close()
	b, err := New(client, bulkhead.Config{Name: "db", MaxConcurrent: w.max, MaxWait: time.Hour},
		Options{Prefix: w.prefix, Timeout: w.timeout, LeaseTTL: w.lease, OnOutage: leaf.FailClosed})
	if err != nil {
		panic(err)
	}
	var stop atomic.Bool
	var running sync.WaitGroup
	for range w.goroutines {
		if w.hold {
			if _, err := b.Acquire(bg); err != nil {
				panic(err)
			}
			continue
		}
		running.Go(func() {
			for !stop.Load() {
				p, err := b.Acquire(bg)
				if err != nil {
					runtime.Gosched()
					continue // FailClosed, in a test that breaks the store
				}
				o.visit(w.process)
				_ = p.Settle(bg, leaf.Outcome{})
			}
		})
	}
	self.Say("ready")
	for self.In.Scan() && self.In.Text() != "stop" {
	}
	stop.Store(true)
	running.Wait()
	if err := b.Close(bg); err != nil {
		panic(err)
	}
	self.Say("done")
})

// race runs processes with so many goroutines each until every one of them has done enough, and returns what each has done
// since all were ready.
func race(t *testing.T, s *redistest.Server, limit int, timeout time.Duration, until func(done []int64) bool, goroutines ...int) (*oracle, []int64) {
	t.Helper()
	o, path := newOracle(t)
	prefix := s.Prefix(t)
	var all []*redistest.Process
	for i, n := range goroutines {
		all = append(all, redistest.Spawn(t, "worker", workload{addr: s.Addr, prefix: prefix, oracle: path, process: i,
			goroutines: n, max: limit, timeout: timeout, lease: time.Minute}.args()...))
	}
	for _, p := range all {
		p.Expect(t, "ready")
	}
	began := make([]int64, len(all))
	for i := range all {
		began[i] = o.ops[i].Load()
	}
	done := make([]int64, len(all))
	redistest.Within(t, time.Minute, "every process has done enough", func() bool {
		for i := range all {
			done[i] = o.ops[i].Load() - began[i]
		}
		return until(done)
	})
	for _, p := range all {
		p.Send(t, "stop")
	}
	for _, p := range all {
		p.Expect(t, "done")
		p.Wait(t)
	}
	require.Zero(t, o.inside.Load())
	return o, done
}

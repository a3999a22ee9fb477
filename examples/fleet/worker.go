package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
)

// workerEnv holds a worker's settings, and makes this program one.
const workerEnv = "FAIRLEAD_FLEET_WORKER"

type settings struct {
	Name, Redis, Bank, Prefix string
	Timeout                   time.Duration
}

// message is a line from a worker.
type message struct {
	At              int64  // UnixNano
	What            string // ready, circuit, store, tally
	Guard, From, To string // of a circuit, its states; of a store, To is failed, recovered or overage
	Reason          string
	Tally           *tally `json:",omitempty"`
}

// tally is what became of a worker's calls since the last one.
type tally struct {
	Served, Failed, Open, Limited, Full, NoStore, Other int
	Longest                                             time.Duration // call
	LongestInGuards                                     time.Duration // without the bank's time
	Odd                                                 string        // one of the others
}

func isWorker() bool { return os.Getenv(workerEnv) != "" }

// callers is how many goroutines of each process call the bank.
const callers = 6

type worker struct {
	settings
	*shared
	http     http.Client
	stopping atomic.Bool

	out sync.Mutex // stdout
	mu  sync.Mutex
	tally
}

// work is what a worker process does until its standard input ends: each line there begins a chapter, the first one the load.
func work() int {
	w := &worker{http: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}}
	err := json.Unmarshal([]byte(os.Getenv(workerEnv)), &w.settings)
	if err == nil {
		w.shared, err = share(w.settings, news{circuit: w.circuitChanged, store: w.storeChanged})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet: worker:", err)
		return 1
	}
	w.say(message{What: "ready"})
	var calls sync.WaitGroup
	lines := bufio.NewScanner(os.Stdin)
	for began := false; lines.Scan(); began = true {
		w.say(message{What: "tally", Tally: w.next()})
		for i := 0; i < callers && !began; i++ {
			calls.Go(w.callAndCall)
		}
	}
	w.stopping.Store(true)
	calls.Wait()
	w.http.CloseIdleConnections()
	if err := w.close(); err != nil {
		fmt.Fprintln(os.Stderr, "fleet: worker:", w.Name, err)
		return 1
	}
	w.say(message{What: "tally", Tally: w.next()})
	return 0
}

func (w *worker) say(m message) {
	m.At = time.Now().UnixNano()
	line, err := json.Marshal(m)
	if err != nil {
		panic(err) // a message is plain data
	}
	w.out.Lock()
	defer w.out.Unlock()
	fmt.Printf("%s\n", line)
}

func (w *worker) circuitChanged(c breaker.Change) {
	w.say(message{What: "circuit", From: c.From.String(), To: c.To.String(), Reason: c.Reason})
}

func (w *worker) storeChanged(guard string, e leaf.StoreEvent) {
	m := message{What: "store", Guard: guard, To: e.Kind}
	if e.Err != nil {
		m.Reason = strings.TrimSpace(e.Err.Error())
	}
	w.say(m)
}

func (w *worker) next() *tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.tally
	w.tally = tally{}
	return &old
}

var errBank = errors.New("bank: 503")

// callAndCall is one caller: refused, it comes back a little later; it never waits long, so that there is always more demand
// than the fleet may pass on.
func (w *worker) callAndCall() {
	ctx := context.Background()
	for !w.stopping.Load() {
		began := time.Now()
		var inBank time.Duration
		err := w.charge.Run(ctx, func(ctx context.Context) error {
			began := time.Now()
			defer func() { inBank = time.Since(began) }()
			return w.ask(ctx)
		})
		took := time.Since(began)
		w.count(err, took, took-inBank)
		if err != nil {
			<-time.After(10*time.Millisecond + time.Duration(rand.IntN(20))*time.Millisecond)
		}
	}
}

func (w *worker) ask(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.Bank, nil)
	if err != nil {
		return err
	}
	req.Header.Set(whoHeader, w.Name)
	resp, err := w.http.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errBank
	}
	return nil
}

func (w *worker) count(err error, took, inGuards time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Longest, w.LongestInGuards = max(w.Longest, took), max(w.LongestInGuards, inGuards)
	var store *leaf.StoreError
	switch {
	case err == nil:
		w.Served++
	case errors.Is(err, breaker.ErrOpen):
		w.Open++
	case errors.Is(err, ratelimit.ErrLimited):
		w.Limited++
	case errors.Is(err, bulkhead.ErrFull):
		w.Full++
	case errors.Is(err, errBank):
		w.Failed++
	case errors.As(err, &store):
		w.NoStore++
	default:
		w.Other++
		w.Odd = err.Error()
	}
}

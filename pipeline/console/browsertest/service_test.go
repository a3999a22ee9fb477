package browsertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/leaf/timeout"
	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/console"
)

// service is a real server on loopback, with a console of its pipelines under /ops/.
type service struct {
	t      *testing.T
	addr   string
	origin string
	source console.Source
	opts   []console.Option

	server  *http.Server
	console *console.Console
	served  chan struct{}
}

func serve(t *testing.T, source console.Source, opts ...console.Option) *service {
	t.Helper()
	s := &service{t: t, addr: "127.0.0.1:0", source: source, opts: opts}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *service) start() {
	s.t.Helper()
	c, err := console.Handler(s.source, s.opts...)
	require.NoError(s.t, err)
	listener, err := net.Listen("tcp", s.addr)
	require.NoError(s.t, err)
	s.addr = listener.Addr().String()
	s.origin = "http://" + s.addr
	mux := http.NewServeMux()
	mux.Handle("/ops/", c)
	s.console, s.server, s.served = c, &http.Server{Handler: mux}, make(chan struct{})
	go func(server *http.Server, served chan struct{}) {
		defer close(served)
		_ = server.Serve(listener)
	}(s.server, s.served)
}

func (s *service) stop() {
	_ = s.console.Close()
	_ = s.server.Close()
	<-s.served
}

func anyone(*http.Request) bool { return true }

var (
	bg      = context.Background()
	errDown = errors.New("bank: <b>503</b> & more")
)

func down(context.Context) error    { return errDown }
func succeed(context.Context) error { return nil }

// billing is a pipeline with every kind of thing to see, whose circuit opens for a time that a test can wait for.
func billing(openFor time.Duration) (*pipeline.Pipeline, *breaker.Breaker) {
	b := breaker.MustNew(breaker.Config{Name: "bank", Consecutive: 5, OpenFor: openFor})
	return pipeline.For("billing").
		Timeout(timeout.MustNew(timeout.Config{Name: "billing", Limit: 5 * time.Second})).
		Retry(retry.MustNew(retry.Config{Name: "patient", MaxAttempts: 2, Backoff: retry.Immediate})).
		Breaker(b).
		RateLimit(ratelimit.MustNew(ratelimit.Config{Name: "provider", Rate: 1000, Per: time.Second})).
		Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "slots", MaxConcurrent: 4, MaxWait: time.Minute, MaxQueue: 10})).
		AttemptTimeout(timeout.MustNew(timeout.Config{Name: "attempt", Limit: 2 * time.Second})).MustBuild(), b
}

// trip opens the circuit of billing: three calls, five failures.
func trip(t *testing.T, p *pipeline.Pipeline) {
	t.Helper()
	for range 3 {
		require.Error(t, p.Run(bg, down))
	}
}

// traffic calls each pipeline again and again, until the test ends.
func traffic(t *testing.T, every time.Duration, all ...*pipeline.Pipeline) {
	ctx, cancel := context.WithCancel(bg)
	var calls sync.WaitGroup
	calls.Go(func() {
		often := time.NewTicker(every)
		defer often.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-often.C:
			}
			for i, p := range all {
				_ = p.Run(ctx, func(context.Context) error {
					if i%7 == 3 {
						return errDown
					}
					return nil
				})
			}
		}
	})
	t.Cleanup(func() { cancel(); calls.Wait() })
}

func many(n int) []*pipeline.Pipeline {
	all := make([]*pipeline.Pipeline, n)
	for i := range all {
		all[i] = pipeline.For(fmt.Sprintf("service-%03d", i)).Breaker(breaker.MustNew(breaker.Config{Name: fmt.Sprint("b", i), OpenFor: time.Hour})).MustBuild()
	}
	return all
}

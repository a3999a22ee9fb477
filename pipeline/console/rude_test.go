package console

import (
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/budget"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/leaf/bulkhead"
	"github.com/fairlead/fairlead/leaf/retry"
	"github.com/fairlead/fairlead/pipeline"
)

var endings = map[string]struct {
	end  func()
	told string
}{
	"panic":  {func() { panic("secret") }, "panic of type string"},
	"Goexit": {runtime.Goexit, "runtime.Goexit"},
}

// odd is a circuit that cannot be read.
type odd struct {
	*breaker.Breaker
	end func()
}

func (o odd) Snapshot() breaker.Snapshot { o.end(); return breaker.Snapshot{} }

// pool is a retry budget that cannot be read.
type pool struct{ end func() }

func (pool) Deposit()                                 {}
func (pool) Reserve() (r budget.Reservation, ok bool) { return r, false }
func (p pool) Balance() int                           { p.end(); return 0 }

// "a panic AND a Goexit mark that layer alone and the rest is published"
func TestALayerThatCannotBeReadHidesNoOther(t *testing.T) {
	for name, row := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pipeline.For("p").
					Retry(retry.MustNew(retry.Config{Budget: pool{row.end}})).
					Breaker(&odd{breaker.MustNew(breaker.Config{Name: "odd"}), row.end}).
					Bulkhead(bulkhead.MustNew(bulkhead.Config{Name: "bh", MaxConcurrent: 1})).MustBuild()
				good := pipeline.For("good").MustBuild()
				c, err := Handler(Pipelines(p, good))
				require.NoError(t, err)
				defer func() { require.NoError(t, c.Close()) }()
				require.ErrorIs(t, good.Run(bg, down), errDown)
				after(1500 * time.Millisecond)
				s := state(t, c)
				require.Equal(t, uint64(1), s.row(t, "good").Totals.Failed)
				r := s.row(t, "p")
				require.Len(t, r.Layers, 3)
				require.Equal(t, row.told, r.layer(t, "retry").Error)
				require.Equal(t, "unknown", r.layer(t, "retry").Retry.Budget)
				require.Equal(t, row.told, r.layer(t, "breaker").Error)
				require.Empty(t, r.layer(t, "bulkhead").Error)
				require.NotEmpty(t, r.layer(t, "bulkhead").Gauges)
				require.Contains(t, r.Why, `breaker "odd" cannot be looked at: `+row.told)
				require.Equal(t, "warn", r.Level)
			})
		})
	}
}

// The same of Inspect, which the pipeline itself asks for a name, once somebody forces the circuit beside it, and of the source.
func TestAnInspectThatEndsTheLookEndsNoOther(t *testing.T) {
	for name, row := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ends atomic.Bool
				b := breaker.MustNew(breaker.Config{Name: "bank"})
				p := pipeline.For("p").Breaker(b).With(rude{inspect: func() leaf.Snapshot {
					if ends.Load() {
						row.end()
					}
					return leaf.Snapshot{Kind: "rude"}
				}}).MustBuild()
				good := pipeline.For("good").MustBuild()
				c, err := Handler(Pipelines(p, good), AllowControl(anyone))
				require.NoError(t, err)
				defer func() { require.NoError(t, c.Close()) }()
				ends.Store(true)
				require.ErrorIs(t, good.Run(bg, down), errDown)
				after(3500 * time.Millisecond)
				s := state(t, c)
				require.Equal(t, uint64(4), s.Seq, "no second is lost")
				require.Equal(t, uint64(1), s.row(t, "good").Totals.Failed)
				r := s.row(t, "p")
				require.Equal(t, "warn", r.Level)
				require.Contains(t, r.Why[0], "cannot be looked at: "+row.told)
				require.Equal(t, 200, press(t, c, command{c.boot, r.ID, r.layer(t, "breaker").Breaker.ID, "force-open"}).Code)
				require.Equal(t, breaker.Open, b.State())
				ends.Store(false)
				after(time.Second)
				require.Empty(t, state(t, c).row(t, "p").layer(t, "guard").Error)
			})
		})
	}
}

// strange is a source that cannot be asked.
type strange struct {
	fixed
	end *atomic.Pointer[func()]
}

func (s strange) Pipelines() []*pipeline.Pipeline {
	if end := s.end.Load(); end != nil {
		(*end)()
	}
	return s.fixed
}

func TestASourceThatEndsItsGoroutineIsToldOnThePage(t *testing.T) {
	for name, row := range endings {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pipeline.For("p").MustBuild()
				s := strange{fixed{p}, new(atomic.Pointer[func()])}
				c, err := Handler(s)
				require.NoError(t, err)
				defer func() { require.NoError(t, c.Close()) }()
				s.end.Store(&row.end)
				require.ErrorIs(t, p.Run(bg, down), errDown)
				after(1500 * time.Millisecond)
				got := state(t, c)
				require.Equal(t, "the source's Pipelines: "+row.told, got.Error)
				require.Equal(t, uint64(1), got.row(t, "p").Totals.Failed, "what it was told before goes on")
			})
		})
	}
}

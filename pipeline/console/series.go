package console

import "time"

const (
	kept    = 300 // seconds of each curve
	recent  = 10  // seconds that percentiles, shares and reasons are about
	sparked = 60  // seconds in the overview
)

// second is what one second of a pipeline was. Latencies are over the last ten, in seconds; negative = no call.
type second struct {
	calls, failed, refused, retries uint32
	inFlight                        uint32
	p50, p95, p99                   float32
}

// series is the last five minutes. Its size is fixed.
type series struct {
	ring [kept]second
	next int
}

func (s *series) push(p second) {
	s.ring[s.next] = p
	s.next = (s.next + 1) % kept
}

// ago is the second that many before the newest, which is 0; at most kept-1.
func (s *series) ago(n int) *second { return &s.ring[(s.next-1-n+2*kept)%kept] }

// sums is what some seconds were together.
type sums struct{ calls, failed, refused uint64 }

// sum is over n seconds that ended before the newest ago of them.
func (s *series) sum(ago, n int) (t sums) {
	for i := range n {
		p := s.ago(ago + i)
		t.calls += uint64(p.calls)
		t.failed += uint64(p.failed)
		t.refused += uint64(p.refused)
	}
	return t
}

// bad is the share of calls that did not get what they wanted; 0 without calls.
func (t sums) bad() float64 {
	if t.calls == 0 {
		return 0
	}
	return min(1, float64(t.failed+t.refused)/float64(t.calls))
}

// curves is a series as the page wants it, oldest first.
type curves struct {
	ID       int        `json:"id"`
	Boot     string     `json:"boot"`
	Seq      uint64     `json:"seq"`
	Calls    []uint32   `json:"calls"`
	Failed   []uint32   `json:"failed"`
	Refused  []uint32   `json:"refused"`
	Retries  []uint32   `json:"retries"`
	InFlight []uint32   `json:"in_flight"`
	P50      []*float32 `json:"p50"` // seconds, null without calls
	P95      []*float32 `json:"p95"`
	P99      []*float32 `json:"p99"`
}

func (s *series) curves() curves {
	var c curves
	for i := kept - 1; i >= 0; i-- {
		p := s.ago(i)
		c.Calls = append(c.Calls, p.calls)
		c.Failed = append(c.Failed, p.failed)
		c.Refused = append(c.Refused, p.refused)
		c.Retries = append(c.Retries, p.retries)
		c.InFlight = append(c.InFlight, p.inFlight)
		c.P50 = append(c.P50, known(p.p50))
		c.P95 = append(c.P95, known(p.p95))
		c.P99 = append(c.P99, known(p.p99))
	}
	return c
}

// spark is the overview's curve: calls, and those of them that failed or were refused.
type spark struct {
	Calls []uint32 `json:"calls"`
	Bad   []uint32 `json:"bad"`
}

func (s *series) spark() (out spark) {
	for i := sparked - 1; i >= 0; i-- {
		p := s.ago(i)
		out.Calls, out.Bad = append(out.Calls, p.calls), append(out.Bad, p.failed+p.refused)
	}
	return out
}

func known(seconds float32) *float32 {
	if seconds <= 0 { // the zero second had no call either
		return nil
	}
	return &seconds
}

func inSeconds(d time.Duration) float32 { return float32(d.Seconds()) }

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/fairlead/fairlead/rejection"
)

// memory is a network whose connections are net.Pipes, so that a day of real HTTP passes in virtual time.
type memory struct {
	mu   sync.Mutex
	all  map[string]*pipes
	next int
}

type pipes struct {
	name   string
	calls  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (m *memory) Listen() (net.Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = map[string]*pipes{}
	}
	m.next++
	p := &pipes{name: string(rune('a'+m.next)) + ":80", calls: make(chan net.Conn), closed: make(chan struct{})}
	m.all[p.name] = p
	return p, nil
}

func (m *memory) DialContext(ctx context.Context, _, addr string) (net.Conn, error) {
	m.mu.Lock()
	p := m.all[addr]
	m.mu.Unlock()
	near, far := net.Pipe()
	select {
	case p.calls <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return p }
func (*pipes) Network() string  { return "memory" }
func (p *pipes) String() string { return p.name }

const healthy, slow, failing, limited, recovering = 0, 1, 2, 3, 4

// TestDay lives through the whole day of the defaults, in virtual time, and checks what the output claims.
func TestDay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		show := newScreen(&out)
		show.intro(7*time.Second, 40)
		r, err := run(t.Context(), &memory{}, 7*time.Second, 40, show.progress)
		require.NoError(t, err)
		show.result(r)
		t.Log("\n" + out.String())

		checkSums(t, r)
		checkStory(t, r)
		checkCircuit(t, r)
		checkExample(t, r)
		checkOutput(t, out.String(), r)
		assert.Equal(t, 8, strings.Count(out.String(), "in the server:"), "a progress line for each second, and the last")
	})
}

// checkSums holds for a day of any length and load.
func checkSums(t *testing.T, r *result) {
	t.Helper()
	require.Len(t, r.without, len(phases)+1)
	require.Len(t, r.with, len(phases)+1)
	for i := range r.with {
		a, b := r.without[i], r.with[i]
		for _, s := range []summary{a, b} {
			assert.Equal(t, s.calls, len(s.yes)+len(s.no), "every call is a success or not: %d", i)
			assert.Equal(t, s.ok, len(s.yes), i)
			assert.LessOrEqual(t, s.refused+s.ok, s.calls, i)
			assert.IsNonDecreasing(t, append([]time.Duration{0, 0}, s.yes...))
			assert.IsNonDecreasing(t, append([]time.Duration{0, 0}, s.no...))
		}
		assert.Zero(t, a.refused+a.retries+len(a.layers), "without a pipeline nothing is refused or retried: %d", i)
		assert.LessOrEqual(t, b.retries, 2*b.calls, i)
	}
	a, b := r.without[len(phases)], r.with[len(phases)]
	assert.Equal(t, a.calls, a.attempts)
	assert.LessOrEqual(t, a.served.requests, int64(a.attempts), "the server cannot see more than was sent")
	assert.LessOrEqual(t, b.served.requests, int64(b.attempts))
	refusals := 0
	for layer, n := range b.layers {
		assert.Contains(t, []string{"cooldown", "breaker", "ratelimit", "bulkhead"}, layer)
		refusals += n
	}
	assert.GreaterOrEqual(t, refusals, b.refused, "who was refused was refused by a layer")
}

// checkStory is what the guide says under the table.
func checkStory(t *testing.T, r *result) {
	t.Helper()
	for i := range phases {
		assert.Equal(t, r.without[i].calls, r.with[i].calls, "%s: the same load", phases[i].name)
	}
	p90 := func(s summary) time.Duration { d, _ := percentile(s.yes, 90); return d }
	a, b := r.without, r.with
	total := len(phases)

	assert.Equal(t, int64(a[total].attempts), a[total].served.requests, "the server's count is the client's")
	assert.Equal(t, int64(b[total].attempts), b[total].served.requests)
	assert.LessOrEqual(t, b[total].served.peak, int64(slots+4), "no more inside than the bulkhead lets in, and who is leaving")
	assert.Greater(t, a[total].served.peak, int64(10*slots))
	assert.Greater(t, b[total].ok, a[total].ok)
	assert.Less(t, b[total].served.inVain(), a[total].served.inVain()/10)

	assert.Greater(t, b[healthy].ok, a[healthy].ok, "retries repair what fails by chance")
	assert.GreaterOrEqual(t, b[healthy].retries, 4)
	assert.Positive(t, b[healthy].cut, "the attempt timeout ends what is lost")

	assert.Greater(t, b[slow].ok, 2*a[slow].ok)
	assert.Less(t, p90(b[slow]), 300*time.Millisecond)
	assert.Greater(t, p90(a[slow]), 500*time.Millisecond)
	assert.Greater(t, b[slow].layers["bulkhead"], 150)

	assert.Zero(t, a[failing].ok)
	assert.Zero(t, b[failing].ok)
	assert.Less(t, b[failing].served.requests, a[failing].served.requests/5, "an open circuit spares the server")
	assert.Greater(t, b[failing].layers["breaker"], 200)
	none, _ := percentile(b[failing].no, 50)
	assert.Zero(t, none, "and its users: most of them do not wait at all")

	assert.Greater(t, b[limited].layers["cooldown"], 100)
	assert.Less(t, b[limited].served.inVain(), a[limited].served.inVain()/10)
	assert.Greater(t, b[limited].ok, 75)

	assert.Greater(t, b[recovering].layers["ratelimit"], 100)
	assert.Greater(t, b[recovering].ok, 2*a[recovering].ok)
}

// checkCircuit: it opens once in the failing phase, is probed, and closes when the server is well.
func checkCircuit(t *testing.T, r *result) {
	t.Helper()
	require.GreaterOrEqual(t, len(r.changes), 5)
	state, at := breaker.Closed, time.Duration(0)
	for i, c := range r.changes {
		assert.Equal(t, uint64(i+1), c.Seq)
		assert.Equal(t, state, c.From)
		assert.GreaterOrEqual(t, c.at, at)
		if c.From == breaker.Open {
			assert.InDelta(t, 400, (c.at - at).Milliseconds(), 10, "a probe goes as soon as the open time is over")
		}
		state, at = c.To, c.at
	}
	first, last := r.changes[0], r.changes[len(r.changes)-1]
	assert.Equal(t, "failing", phases[r.script.at(first.at)].name)
	assert.Less(t, first.at-r.script.ends(slow), 200*time.Millisecond, "it took 20 failures")
	assert.Equal(t, breaker.Closed, last.To)
	assert.Less(t, last.at-r.script.ends(failing), 500*time.Millisecond)
}

func checkExample(t *testing.T, r *result) {
	t.Helper()
	require.NotNil(t, r.example)
	err := r.example.err
	unavailable, ok := errors.AsType[*BillingUnavailable](err)
	require.True(t, ok, "%T", err)
	assert.ErrorIs(t, err, breaker.ErrOpen, "the original stays reachable")
	assert.Error(t, unavailable.Cause)
	assert.True(t, rejection.Is(err))
	assert.Equal(t, 503, rejection.Status(err))
	wait, ok := rejection.RetryAfter(err)
	assert.True(t, ok)
	assert.Greater(t, wait, time.Duration(0))
	assert.LessOrEqual(t, wait, 400*time.Millisecond)
}

// checkOutput reads the tables back.
func checkOutput(t *testing.T, out string, r *result) {
	t.Helper()
	for line := range strings.Lines(out) {
		assert.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), width, line)
	}
	lines := strings.Split(out, "\n")
	after := func(heading string) [][]string {
		for i, line := range lines {
			if line == heading {
				var rows [][]string
				for _, line := range lines[i+2:] {
					if strings.HasPrefix(line, "───") {
						break
					}
					rows = append(rows, strings.Fields(line))
				}
				return rows
			}
		}
		t.Fatalf("no heading %q", heading)
		return nil
	}

	sides := map[string][]summary{"without": r.without, "with": r.with}
	seen := map[string]int{}
	for _, cells := range after("THE SAME CALLS, WITHOUT AND WITH THE PIPELINE") {
		for at, cell := range cells {
			if side, ok := sides[cell]; ok && at <= 1 { // behind the phase, or alone
				s := side[seen[cell]]
				seen[cell]++
				require.Len(t, cells[at+1:], 10, cells)
				assert.Equal(t, []string{count(s.calls), count(s.ok)}, cells[at+1:at+3])
				assert.Equal(t, []string{count(s.served.requests), some(s.served.inVain()), count(s.served.peak)}, cells[at+8:])
			}
		}
	}
	assert.Equal(t, map[string]int{"without": 6, "with": 6}, seen)

	inside := 0
	for _, cells := range after("INSIDE THE PIPELINE") {
		if len(cells) == 9 && cells[0] != "calls" {
			s := r.with[inside]
			inside++
			assert.Equal(t, []string{count(s.calls), count(s.attempts), some(s.retries), some(s.cut), some(s.layers["cooldown"]),
				some(s.layers["breaker"]), some(s.layers["ratelimit"]), some(s.layers["bulkhead"])}, cells[1:])
		}
	}
	assert.Equal(t, len(phases)+1, inside)

	arrows := 0
	for _, cells := range after("THE CIRCUIT") {
		if strings.Contains(strings.Join(cells, " "), "►") {
			arrows++
		}
	}
	assert.Equal(t, len(r.changes), arrows)
}

package console

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fairlead/fairlead/pipeline"
)

// network is connections that are net.Pipes, so that a real server runs in virtual time: a write waits for its reader.
type network struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.dialed:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}
func (n *network) Close() error   { n.once.Do(func() { close(n.closed) }); return nil }
func (n *network) Addr() net.Addr { return &net.TCPAddr{} }

// served is a server in the bubble, and what dials it.
func served(t *testing.T, h http.Handler) func() net.Conn {
	t.Helper()
	n := &network{dialed: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Serve(n) }()
	t.Cleanup(func() { _ = server.Close(); <-ended })
	return func() net.Conn {
		near, far := net.Pipe()
		n.dialed <- far
		return near
	}
}

// reader reads a stream by hand, so that the test decides when.
type reader struct {
	t    *testing.T
	conn net.Conn
	from *bufio.Reader
}

func listen(t *testing.T, conn net.Conn) *reader {
	t.Helper()
	_, err := fmt.Fprint(conn, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	from := bufio.NewReader(conn)
	answer, err := http.ReadResponse(from, nil)
	require.NoError(t, err)
	require.Equal(t, "text/event-stream; charset=utf-8", answer.Header.Get("Content-Type"))
	require.Equal(t, "no-store", answer.Header.Get("Cache-Control"))
	return &reader{t, conn, bufio.NewReader(answer.Body)}
}

func (r *reader) next() told {
	r.t.Helper()
	for {
		line, err := r.from.ReadString('\n')
		require.NoError(r.t, err)
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return parse(r.t, []byte(data))
		}
	}
}

func (c *Console) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.streams
}

func TestAStreamBeginsWithEverythingAndGoesOnWithWhatHasChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := bank(nil)
		c := started(t, Pipelines(p, pipeline.For("quiet").MustBuild()))
		s := listen(t, served(t, c)())
		defer s.conn.Close()
		first := s.next()
		require.Zero(t, first.From)
		require.Len(t, first.Rows, 2)
		require.Len(t, first.row(t, "quiet").Spark.Calls, sparked)
		require.NoError(t, p.Run(bg, succeed))
		second := s.next()
		require.Equal(t, first.Seq, second.From)
		require.Equal(t, first.Seq+1, second.Seq)
		require.Len(t, second.Rows, 1, "the quiet one has not changed")
		require.Equal(t, uint64(1), second.row(t, "billing").Last.Calls)
		require.Nil(t, second.row(t, "billing").Spark)
	})
}

// Whoever has the second before and is told nothing of a pipeline may take it for a second without a call.
func TestARowThatIsNotSentHadNoCallInItsSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := bank(nil)
		c := started(t, Pipelines(p))
		s := listen(t, served(t, c)())
		defer s.conn.Close()
		known := s.next().row(t, "billing")
		total := uint64(0)
		for second := range 30 {
			if second%3 == 0 { // the same number, so that only the totals tell it
				require.NoError(t, p.Run(bg, succeed))
				require.NoError(t, p.Run(bg, succeed))
			}
			if message := s.next(); len(message.Rows) > 0 {
				known = message.Rows[0]
			}
			total += known.Last.Calls
		}
		require.Equal(t, uint64(20), total)
	})
}

// "a slow client never blocks the service or grows memory"
func TestAReaderThatStopsIsLeftAfterFiveSecondsAndHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := bank(nil)
		c := started(t, Pipelines(p))
		dial := served(t, c)
		stopped := listen(t, dial())
		defer stopped.conn.Close()
		stopped.next()
		brisk := listen(t, dial())
		defer brisk.conn.Close()
		require.Equal(t, 2, c.open())
		last := brisk.next().Seq
		for range 8 {
			next := brisk.next().Seq
			require.Equal(t, last+1, next, "every second, whatever the other does")
			last = next
			require.NoError(t, p.Run(bg, succeed))
		}
		require.Equal(t, 1, c.open(), "the one that stopped is gone")
	})
}

func TestAReaderThatMissedSecondsGetsEverythingAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := bank(nil)
		c := started(t, Pipelines(p))
		s := listen(t, served(t, c)())
		defer s.conn.Close()
		first := s.next()
		after(3500 * time.Millisecond) // the first message after this one waits in the pipe
		late := s.next()
		require.Equal(t, first.Seq+1, late.Seq)
		again := s.next()
		require.Zero(t, again.From, "not a difference to a second that was never sent")
		require.Equal(t, first.Seq+3, again.Seq)
	})
}

func TestAReaderThatGoesAwayLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := started(t, Pipelines())
		s := listen(t, served(t, c)())
		s.next()
		require.NoError(t, s.conn.Close())
		after(2 * time.Second)
		require.Zero(t, c.open())
	})
}

func TestCloseEndsTheStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := started(t, Pipelines())
		s := listen(t, served(t, c)())
		defer s.conn.Close()
		s.next()
		require.NoError(t, c.Close())
		synctest.Wait()
		_, err := s.from.ReadString(0)
		require.Error(t, err)
		require.Zero(t, c.open())
	})
}

// "at most a bounded number of subscribers"
func TestStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := started(t, Pipelines())
		ctx, cancel := context.WithCancel(bg)
		var all sync.WaitGroup
		for range mostStreams {
			all.Go(func() {
				c.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/stream", nil))
			})
		}
		synctest.Wait()
		w := get(c, "/stream")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Equal(t, "5", w.Header().Get("Retry-After"))
		cancel()
		all.Wait()
		require.Zero(t, c.open())
	})
}

// "one shared snapshot encode per tick"
func TestASecondIsEncodedOnce(t *testing.T) {
	p, _ := bank(nil)
	c, err := newConsole(Pipelines(p), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	c.sample(time.Now())
	ask := func(seen uint64) *byte {
		c.mu.Lock()
		defer c.mu.Unlock()
		return &c.frame(seen)[0]
	}
	require.Same(t, ask(0), ask(0))
	c.sample(time.Now())
	require.Same(t, ask(1), ask(1))
	require.Same(t, ask(0), ask(0))
	require.NotSame(t, ask(0), ask(1))
}

// A pipeline that comes or goes is told with everything, not as a difference.
func TestPipelinesThatComeAndGoAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := []*pipeline.Pipeline{pipeline.For("a").MustBuild()}
		source := &changing{list: all}
		c := started(t, source)
		s := listen(t, served(t, c)())
		defer s.conn.Close()
		require.Len(t, s.next().Rows, 1)
		b := pipeline.For("b").MustBuild()
		source.set(append(all, b, nil, b))
		message := s.next()
		require.Zero(t, message.From)
		require.Len(t, message.Rows, 2, "nil is left out, and nobody is counted twice")
		source.set(nil)
		message = s.next()
		require.Zero(t, message.From)
		require.Empty(t, message.Rows)
		source.set(all)
		s.next()
		require.NoError(t, b.Run(bg, succeed), "nobody listens there any more")
		source.breakIt()
		message = s.next()
		require.Contains(t, message.Error, "the source's Pipelines: panic of type")
		require.Empty(t, message.Rows, "a difference: what was there is still there")
	})
}

type changing struct {
	mu     sync.Mutex
	list   []*pipeline.Pipeline
	broken bool
}

func (c *changing) set(list []*pipeline.Pipeline) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = list
}

func (c *changing) breakIt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = true
}

func (c *changing) Pipelines() []*pipeline.Pipeline {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken {
		panic("broken")
	}
	return c.list
}

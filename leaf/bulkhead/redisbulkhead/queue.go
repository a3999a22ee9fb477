package redisbulkhead

// call is one Acquire in the queue. Its fields are guarded by the bulkhead's mu until ready is closed.
type call struct {
	links   [2]links
	queued  bool  // false = it has left the queue
	wait    bool  // there is a MaxWait; false = it only asks
	waits   bool  // the store has refused it, and it waits on
	decided bool  // it was admitted, or has err
	began   int64 // when it came, by the clock
	ends    int64 // when MaxWait is over, by the clock; endless = it never is, or ctx ends before
	token   uint64
	err     error
	ready   chan struct{} // closed when it is decided
}

type links struct{ next, prev *call }

// The lists that a call stands in.
const (
	byTurn = iota // all who are not decided, the first to be served in front
	byEnd         // of them, those whose MaxWait is counted by the bulkhead's own timer, the first to end in front
)

// list of calls. It allocates nothing, since calls hold its links: a place in it changes hands with every slot.
type list struct {
	of          int
	front, back *call
	n           int
}

// insert puts c behind prev; nil = in front of all.
func (l *list) insert(c, prev *call) {
	next := l.front
	if prev != nil {
		next = prev.links[l.of].next
		prev.links[l.of].next = c
	} else {
		l.front = c
	}
	if next != nil {
		next.links[l.of].prev = c
	} else {
		l.back = c
	}
	c.links[l.of] = links{next, prev}
	l.n++
}

// remove takes out c, which stands in it.
func (l *list) remove(c *call) {
	at := c.links[l.of]
	if at.prev != nil {
		at.prev.links[l.of].next = at.next
	} else {
		l.front = at.next
	}
	if at.next != nil {
		at.next.links[l.of].prev = at.prev
	} else {
		l.back = at.prev
	}
	c.links[l.of] = links{}
	l.n--
}

// next is who stands behind c.
func (l *list) next(c *call) *call { return c.links[l.of].next }

// prev is who stands before c.
func (l *list) prev(c *call) *call { return c.links[l.of].prev }

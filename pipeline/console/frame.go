package console

import (
	"bytes"
	"encoding/json"
	"math"
)

var nan = number(math.NaN())

// frames is what streams and the state are made of. Each second is encoded once, when the first asks for it, and whoever looks
// gets the same bytes: the rows that have changed, for who had the second before, or else all of them. Nothing is queued.
type frames struct {
	seq     uint64         // that it was encoded at
	rows    map[int][]byte // the rows as they were then
	journal uint64         // the last entry that was told
	delta   []byte         // since the encoding before, …
	from    uint64         // … which was at this seq; 0 = none
	full    []byte         // nil = nobody has asked
}

// frame is one message, but for its rows, which are encoded already.
type frame struct {
	Boot    string  `json:"boot"`
	Seq     uint64  `json:"seq"`
	From    uint64  `json:"from,omitempty"` // rows are those that have changed since then; 0 = all of them
	Time    int64   `json:"time"`           // Unix milliseconds
	Error   string  `json:"error,omitempty"`
	Journal []entry `json:"journal"` // since From; 0 = what there is
}

// with is the message: one JSON object, to which the rows are added as its last member.
func (f *frame) with(rows [][]byte) []byte {
	return within(encode(f), "rows", bytes.Join([][]byte{[]byte("["), bytes.Join(rows, []byte(",")), []byte("]")}, nil))
}

// within is object with one more member.
func within(object []byte, name string, value []byte) []byte {
	out := make([]byte, 0, len(object)+len(name)+len(value)+5)
	out = append(out, object[:len(object)-1]...)
	out = append(out, `,"`+name+`":`...)
	out = append(out, value...)
	return append(out, '}')
}

// frame is the newest message for a reader that has seen what there was at the seq seen; c.mu is held. A difference is always one
// second: the page adds one point to each curve.
func (c *Console) frame(seen uint64) []byte {
	f := &c.frames
	if f.seq != c.seq {
		c.encode()
	}
	if seen != 0 && seen == f.from && f.seq == f.from+1 && c.changed <= seen {
		return f.delta
	}
	if f.full == nil {
		f.full = c.encodeAll()
	}
	return f.full
}

// encode makes this second's rows, and the difference.
func (c *Console) encode() {
	f := &c.frames
	out := c.message()
	out.From = f.seq
	rows := make(map[int][]byte, len(c.rows))
	var changed [][]byte
	for _, s := range c.rows {
		b := encode(&s.row)
		rows[s.row.ID] = b
		if !bytes.Equal(b, f.rows[s.row.ID]) {
			changed = append(changed, b)
		}
	}
	out.Journal, f.journal = c.journal.after(f.journal)
	f.from, f.seq, f.rows, f.full = f.seq, c.seq, rows, nil
	f.delta = out.with(changed)
}

// encodeAll has the overview's curves as well.
func (c *Console) encodeAll() []byte {
	out := c.message()
	rows := make([][]byte, len(c.rows))
	for i, s := range c.rows {
		rows[i] = within(c.frames.rows[s.row.ID], "spark", encode(s.series.spark()))
	}
	out.Journal, _ = c.journal.after(0)
	for n := len(out.Journal); n > 0 && out.Journal[n-1].N > c.frames.journal; n-- {
		out.Journal = out.Journal[:n-1] // the next difference tells it
	}
	return out.with(rows)
}

func (c *Console) message() frame {
	return frame{Boot: c.boot, Seq: c.seq, Time: c.at.UnixMilli(), Error: c.failed}
}

// encode cannot fail: these are structs of words, texts and numbers that know what JSON cannot say.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("console: " + err.Error())
	}
	return b
}

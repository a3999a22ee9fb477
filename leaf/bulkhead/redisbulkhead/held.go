package redisbulkhead

// held is the slots that calls of this process have, by the token of the permit: a place in a table, and the number of the
// admission, so that a token that was settled already names nothing. The zero held is empty.
type held struct {
	places []place
	free   []uint32 // of places, those where nobody is
	last   uint32   // the latest number
}

type place struct {
	slot   *slot // nil = nobody is there
	number uint32
}

// len is how many there are.
func (h *held) len() int { return len(h.places) - len(h.free) }

// put gives s a place, and the token for it.
func (h *held) put(s *slot) uint64 {
	h.last++
	at := uint32(len(h.places))
	if n := len(h.free); n > 0 {
		at, h.free = h.free[n-1], h.free[:n-1]
		h.places[at] = place{s, h.last}
	} else {
		h.places = append(h.places, place{s, h.last})
	}
	return uint64(h.last)<<32 | uint64(at)
}

// take empties the place; nil = the token names nothing.
func (h *held) take(token uint64) *slot {
	at, number := uint32(token), uint32(token>>32)
	if int(at) >= len(h.places) || h.places[at].number != number {
		return nil
	}
	s := h.places[at].slot
	h.places[at] = place{}
	if s == nil {
		return nil
	}
	if h.free = append(h.free, at); h.len() > 0 {
		return s
	}
	if h.places, h.free = h.places[:0], h.free[:0]; cap(h.places) > mostPlaces {
		h.places, h.free = nil, nil
	}
	return s
}

// mostPlaces is how large a table stays when nobody is in it: an outage with FailOpen may have made it huge.
const mostPlaces = 1024

// each calls f with every slot.
func (h *held) each(f func(*slot)) {
	for _, p := range h.places {
		if p.slot != nil {
			f(p.slot)
		}
	}
}

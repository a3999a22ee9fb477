package breaker

import "github.com/fairlead/fairlead/internal/clock"

// moment is the instant of one event: the clock is read when somebody asks, and at most once. Most events of a count
// window never ask.
type moment struct {
	clock clock.Clock
	at    int64
	known bool
}

func (m *moment) now() int64 {
	if !m.known {
		m.at, m.known = m.clock.Now(), true
	}
	return m.at
}

package budget

import (
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// tokensModel is the rule written down naively: fractions, and every event at its own instant.
type tokensModel struct {
	clock  *clockwork.FakeClock
	cfg    TokenConfig
	at     time.Time
	tokens *big.Rat
	held   map[int]time.Time
	lapsed map[int]bool
}

func (m *tokensModel) put(n *big.Rat) {
	m.tokens.Add(m.tokens, n)
	if full := big.NewRat(int64(m.cfg.Capacity), 1); m.tokens.Cmp(full) > 0 {
		m.tokens = full
	}
}

// advance goes from event to event: each hold that runs out, then now.
func (m *tokensModel) advance() {
	for {
		next, id := m.clock.Now(), -1
		for i, at := range m.held {
			if end := at.Add(m.cfg.Hold); !end.After(next) {
				next, id = end, i
			}
		}
		if next.After(m.at) {
			m.put(big.NewRat(int64(next.Sub(m.at))*int64(m.cfg.Refill), int64(m.cfg.Per)))
			m.at = next
		}
		if id < 0 {
			return
		}
		delete(m.held, id)
		m.lapsed[id] = true
		m.put(big.NewRat(1, 1))
	}
}

func (m *tokensModel) balance() int {
	if m.tokens.Sign() < 0 {
		return 0
	}
	return int(new(big.Int).Quo(m.tokens.Num(), m.tokens.Denom()).Int64())
}

func (m *tokensModel) decide(id int, sent bool) {
	_, held := m.held[id]
	switch {
	case held && !sent:
		m.put(big.NewRat(1, 1))
	case m.lapsed[id] && sent:
		m.tokens.Sub(m.tokens, big.NewRat(1, 1))
	}
	delete(m.held, id)
	delete(m.lapsed, id)
}

func TestTokensAgainstTheNaiveModel(t *testing.T) {
	type reservation struct {
		Reservation
		id int
	}
	rng := newRand(t)
	config := func(clock *clockwork.FakeClock, per time.Duration) TokenConfig {
		return TokenConfig{Capacity: 1 + rng.IntN(12), Refill: rng.IntN(4), Per: per,
			Hold: time.Second + time.Duration(1+rng.Int64N(5_000_000_000)), Clock: clock}
	}
	for done := 0; done < *ops; {
		clock := newClock()
		per := []time.Duration{time.Second, 7 * time.Second, 999_999_937, 13}[rng.IntN(4)]
		m := &tokensModel{clock: clock, cfg: config(clock, per), at: clock.Now(), held: map[int]time.Time{}, lapsed: map[int]bool{}}
		m.tokens = big.NewRat(int64(m.cfg.Capacity), 1)
		b := MustNewTokens(m.cfg)
		var all []reservation
		for id := range 500 {
			done++
			switch op := rng.IntN(100); {
			case op < 40:
				m.advance()
				token, ok := b.Reserve()
				require.Equal(t, m.balance() >= 1, ok, "Reserve")
				if ok {
					m.tokens.Sub(m.tokens, big.NewRat(1, 1))
					m.held[id] = clock.Now()
					all = append(all, reservation{token, id})
				}
			case op < 65 && len(all) > 0:
				i := rng.IntN(len(all))
				token, sent := all[i], rng.IntN(2) == 0
				m.advance()
				if sent {
					token.Commit()
				} else {
					token.Cancel()
				}
				m.decide(token.id, sent)
				if rng.IntN(2) == 0 { // else it is decided once more, later, which changes nothing
					all = slices.Delete(all, i, i+1)
				}
			case op < 95:
				clock.Advance(time.Duration(rng.Int64N(int64(min(per, time.Second)))))
			case op < 99:
				clock.Advance(time.Duration(rng.Int64N(int64(10 * time.Second))))
			default:
				m.advance()
				m.cfg = config(clock, per)
				m.put(new(big.Rat)) // at most Capacity
				require.NoError(t, b.Update(m.cfg))
			}
			if rng.IntN(3) == 0 { // looking, or not, makes no difference
				m.advance()
				if want, got := m.balance(), b.Balance(); want != got {
					require.Equal(t, want, got, "Balance after operation %d", done)
				}
			}
		}
	}
}

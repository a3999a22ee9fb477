package budget

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/stretchr/testify/require"
)

// ratioModel is the rule written down naively: a list of everything that happened, and fractions.
type ratioModel struct {
	clock    *clockwork.FakeClock
	start    time.Time
	ratio    string // a decimal; "" = Off
	floor    int64  // 0 = Off
	ttl      time.Duration
	deposits []time.Duration
	spent    map[int]time.Duration // by a number of the reservation
}

func (m *ratioModel) now() time.Duration { return m.clock.Now().Sub(m.start) }

// remembered: what happened at any time within a tenth goes when the tenth's beginning is TTL ago.
func (m *ratioModel) remembered(at time.Duration) bool {
	tenth := m.ttl / 10
	return m.now()-at.Truncate(tenth) < m.ttl
}

func (m *ratioModel) balance() int {
	tokens := new(big.Rat).SetFrac64(m.floor*int64(m.ttl), int64(time.Second))
	if m.ratio != "" {
		per, _ := new(big.Rat).SetString(m.ratio)
		n := 0
		for _, at := range m.deposits {
			if m.remembered(at) {
				n++
			}
		}
		tokens.Add(tokens, per.Mul(per, new(big.Rat).SetInt64(int64(n))))
	}
	whole := int(new(big.Int).Quo(tokens.Num(), tokens.Denom()).Int64())
	for _, at := range m.spent {
		if m.remembered(at) {
			whole--
		}
	}
	return whole
}

// forget keeps the lists short: time never goes back here.
func (m *ratioModel) forget() {
	for len(m.deposits) > 0 && !m.remembered(m.deposits[0]) {
		m.deposits = m.deposits[1:]
	}
	for id, at := range m.spent {
		if !m.remembered(at) {
			delete(m.spent, id)
		}
	}
}

func (m *ratioModel) config() RatioConfig {
	cfg := RatioConfig{Ratio: Off, MinPerSecond: Off, TTL: m.ttl, Clock: m.clock}
	if m.ratio != "" {
		cfg.Ratio, _ = strconv.ParseFloat(m.ratio, 64)
	}
	if m.floor > 0 {
		cfg.MinPerSecond = int(m.floor)
	}
	return cfg
}

func (m *ratioModel) parameters(rng *rand.Rand) {
	m.ratio = []string{"", "0.2", "0.29", "0.1", "1", "2.5", "0.333333333", "17"}[rng.IntN(8)]
	m.floor = []int64{0, 1, 3, 10}[rng.IntN(4)]
	if m.ratio == "" {
		m.floor = max(1, m.floor)
	}
}

func TestRatioAgainstTheNaiveModel(t *testing.T) {
	type reservation struct {
		Reservation
		id int
	}
	rng := newRand(t)
	for done := 0; done < *ops; {
		clock := newClock()
		m := &ratioModel{clock: clock, start: clock.Now(), spent: map[int]time.Duration{}}
		m.ttl = []time.Duration{time.Second, 10 * time.Second, 25 * time.Second, time.Minute}[rng.IntN(4)]
		m.parameters(rng)
		r := MustNewRatio(m.config())
		var open, decided []reservation
		for id := range 500 {
			done++
			switch op := rng.IntN(100); {
			case op < 30:
				r.Deposit()
				m.deposits = append(m.deposits, m.now())
			case op < 60:
				token, ok := r.Reserve()
				require.Equal(t, m.balance() >= 1, ok, "Reserve")
				if ok {
					open, m.spent[id] = append(open, reservation{token, id}), m.now()
				}
			case op < 80 && len(open) > 0:
				i := rng.IntN(len(open))
				token := open[i]
				if rng.IntN(2) == 0 {
					token.Commit()
					m.spent[token.id] = m.now()
				} else {
					token.Cancel()
					delete(m.spent, token.id)
				}
				open, decided = append(open[:i], open[i+1:]...), append(decided, token)
			case op < 85 && len(decided) > 0: // changes nothing
				token := decided[rng.IntN(len(decided))]
				token.Commit()
				token.Cancel()
			case op < 98:
				clock.Advance(time.Duration(rng.Int64N(int64(m.ttl) / 8)))
				m.forget()
			case op < 99:
				clock.Advance(time.Duration(rng.Int64N(3 * int64(m.ttl))))
				m.forget()
			default:
				m.parameters(rng)
				require.NoError(t, r.Update(m.config()))
			}
			if rng.IntN(4) == 0 {
				if want, got := max(0, m.balance()), r.Balance(); want != got {
					require.Equal(t, want, got, "Balance after operation %d", done)
				}
			}
		}
	}
}

package main

import (
	"context"
	"fmt"
	"time"
)

// oneBulkhead: calls are slow, so that there are never enough slots.
func (s *story) oneBulkhead(ctx context.Context) error {
	title := fmt.Sprintf("1. One bulkhead. A call takes %v; the three may make %d at once, together. Each # is a call inside the bank.", slow, slots)
	if _, _, err := s.chapter(ctx, title); err != nil {
		return err
	}
	return pause(ctx, 2200*time.Millisecond)
}

// oneKilled: nobody gives a dead process's slots back, so they come back by themselves.
func (s *story) oneKilled(ctx context.Context) error {
	_, seen, err := s.chapter(ctx, fmt.Sprintf("2. B is killed (kill -9) while it holds slots. Their lease is %v, renewed every second while B lived.", lease))
	if err != nil {
		return err
	}
	s.summary.insideWas(seen)
	s.summary.Shares = seen.came
	holding := 0
	if err := await(ctx, "B never held two slots", func() bool {
		inside, _, _, _ := s.bank.now()
		holding = inside["B"]
		return holding >= 2
	}); err != nil {
		return err
	}
	killed := time.Now()
	s.kill("B")
	s.note("B is killed; it held %d slots", holding)
	if err := await(ctx, "the slots of B do not come back", func() bool {
		inside, _, _, _ := s.bank.now()
		return inside["A"]+inside["C"] == slots
	}); err != nil {
		return err
	}
	s.summary.Held, s.summary.SlotsBack = holding, ms(time.Since(killed))
	s.note("all %d slots work again, %d ms after the kill", slots, s.summary.SlotsBack)
	return s.join("B")
}

// oneLimit: calls are fast, so that the rate decides.
func (s *story) oneLimit(ctx context.Context) error {
	s.bank.be(fast, false)
	_, seen, err := s.chapter(ctx, fmt.Sprintf("3. One limit. B runs again, a call takes %v; the three may make %d a second, %d at the start.", fast, rate, burst))
	if err != nil {
		return err
	}
	s.summary.insideWas(seen)
	return pause(ctx, 2200*time.Millisecond)
}

// oneCircuit: what some find out, all know, and one asks for all whether it is over.
func (s *story) oneCircuit(ctx context.Context) error {
	s.bank.be(fast, true)
	_, seen, err := s.chapter(ctx, fmt.Sprintf("4. One circuit. The bank answers 503. Probes go after %v, one for the whole fleet.", openFor))
	if err != nil {
		return err
	}
	s.summary.insideWas(seen)
	s.summary.burstWas(seen)
	s.summary.Calls, s.summary.CallsIn = seen.all(), ms(time.Since(seen.began))

	var first, last time.Time
	opened := func() (all bool) { first, last, all = s.circuits("open"); return all }
	if err := await(ctx, "the circuit does not open everywhere", opened); err != nil {
		return err
	}
	s.quiet.Store(true) // its own questions would count
	defer s.quiet.Store(false)
	before, err := s.scripts(ctx)
	if err != nil {
		return err
	}
	asked := time.Now()
	_, seen, err = s.chapter(ctx, "")
	if err != nil {
		return err
	}
	s.summary.OpenSpread, s.summary.OpenAfter = ms(last.Sub(first)), ms(last.Sub(seen.fault))
	s.note("the circuit is open in all three, within %d ms, and %d ms after the first failure", s.summary.OpenSpread, s.summary.OpenAfter)
	if err := pause(ctx, openFor/2); err != nil {
		return err
	}
	after, err := s.scripts(ctx)
	if err != nil {
		return err
	}
	looked := time.Since(asked)
	if err := await(ctx, "nobody probes", func() bool { _, _, came, _ := s.bank.now(); return came > 0 }); err != nil {
		return err
	}
	s.note("a probe: one call, from one process")
	if err := pause(ctx, openFor/4); err != nil {
		return err
	}
	s.bank.be(fast, false)
	tallies, seen, err := s.chapter(ctx, "")
	if err != nil {
		return err
	}
	refused := 0
	for _, t := range tallies {
		refused += t.Open
	}
	s.summary.Refused, s.summary.Probes, s.summary.Unhealthy = refused, seen.all(), ms(time.Since(seen.began))
	s.summary.Scripts, s.summary.ScriptsIn = after-before, ms(looked)
	s.note("%d calls refused, %d reached the bank; in %d ms of it Redis ran %d scripts for the three; now the bank is well",
		refused, s.summary.Probes, s.summary.ScriptsIn, s.summary.Scripts)
	if err := await(ctx, "the circuit does not close everywhere", func() (all bool) { first, last, all = s.circuits("closed"); return all }); err != nil {
		return err
	}
	s.summary.ClosedSpread = ms(last.Sub(first))
	s.note("the circuit is closed in all three, within %d ms", s.summary.ClosedSpread)
	return nil
}

// redisStops: connections stay open, and nobody answers.
func (s *story) redisStops(ctx context.Context) error {
	s.quiet.Store(false)
	title := fmt.Sprintf("5. Redis is stopped for %v. Alone each process may be inside %d times and make %d calls a second.", outage, slots/processes, rate/processes)
	if _, _, err := s.chapter(ctx, title); err != nil {
		return err
	}
	if err := pause(ctx, time.Second); err != nil { // the circuit has just closed: what Redis knows is the whole truth again
		return err
	}
	before, _ := s.lost()
	if _, _, err := s.chapter(ctx, ""); err != nil {
		return err
	}
	if err := s.server.Pause(); err != nil {
		return err
	}
	stopped := time.Now()
	s.note("Redis stops")
	if err := pause(ctx, outage); err != nil {
		return err
	}
	now, _ := s.lost()
	if err := s.server.Resume(); err != nil {
		return err
	}
	resumed := time.Now()
	s.note("Redis goes on")
	if err := await(ctx, "a process does not come back to Redis", s.shared); err != nil {
		return err
	}
	_, found := s.lost()
	s.summary.Recovery = max(0, ms(found.Sub(resumed)))
	s.note("everything is shared again, %d ms after Redis went on", s.summary.Recovery)
	if err := pause(ctx, s.settings.Timeout+2*fast); err != nil { // the last calls that a process admitted alone
		return err
	}
	tallies, seen, err := s.chapter(ctx, "")
	if err != nil {
		return err
	}
	s.summary.outageWas(seen, tallies, time.Since(stopped))
	s.summary.Lost = now - before
	return nil
}

// redisAnswers: the limits are exact again.
func (s *story) redisAnswers(ctx context.Context) error {
	if _, _, err := s.chapter(ctx, "6. As before."); err != nil {
		return err
	}
	s.bank.be(slow, false)
	if err := pause(ctx, 1600*time.Millisecond); err != nil {
		return err
	}
	_, seen, err := s.chapter(ctx, "")
	if err != nil {
		return err
	}
	s.summary.insideWas(seen)
	return nil
}

// note is one line of the timeline that no process said.
func (s *story) note(format string, args ...any) {
	s.fleet.tell(event{What: "note", Text: fmt.Sprintf(format, args...)})
}

func ms(d time.Duration) int { return int(d.Round(time.Millisecond) / time.Millisecond) }

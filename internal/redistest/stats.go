package redistest

import (
	"crypto/rand"
	"strconv"
	"strings"
	"testing"
)

// Prefix is a random one, for keys that nobody else on a shared server has.
func (s *Server) Prefix(testing.TB) string { return "t" + strings.ToLower(rand.Text()[:12]) }

// Info is the fields of one section of INFO.
func (s *Server) Info(t testing.TB, section string) map[string]string {
	t.Helper()
	fields, err := s.info(t, section)
	if err != nil {
		t.Fatalf("info %s: %v", section, err)
	}
	return fields
}

// replication is a field of a server that may be changing its role, at which it closes its connections; "" = no answer now.
func (s *Server) replication(t testing.TB, field string) string {
	t.Helper()
	fields, err := s.info(t, "replication")
	if err != nil {
		return ""
	}
	return fields[field]
}

func (s *Server) info(t testing.TB, section string) (map[string]string, error) {
	t.Helper()
	v, err := s.Try(t, "info", section)
	if err != nil {
		return nil, err
	}
	text, _ := v.(string)
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok && k[0] != '#' {
			fields[k] = v
		}
	}
	return fields, nil
}

// Calls is how often the server has executed the commands, failed ones (an EVALSHA that found no script) included; together
// where there are several. It counts from the start or the last ResetCalls.
func (s *Server) Calls(t testing.TB, commands ...string) int {
	t.Helper()
	info := s.Info(t, "commandstats")
	sum := 0
	for _, c := range commands {
		for field := range strings.SplitSeq(info["cmdstat_"+strings.ToLower(c)], ",") {
			if v, ok := strings.CutPrefix(field, "calls="); ok {
				n, err := strconv.Atoi(v)
				if err != nil {
					t.Fatalf("cmdstat of %s: %v", c, err)
				}
				sum += n
			}
		}
	}
	return sum
}

// ResetCalls lets Calls count from 0. Not on a shared server.
func (s *Server) ResetCalls(t testing.TB) {
	t.Helper()
	s.Do(t, "config", "resetstat")
}

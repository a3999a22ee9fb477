package pipelinetest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// spyTB is a testing.TB that keeps what it is told instead of failing the test.
type spyTB struct {
	testing.TB // the rest is not used
	mu         sync.Mutex
	told       []string
	fatal      bool
}

func (s *spyTB) Helper()           {}
func (s *spyTB) Error(args ...any) { s.add(fmt.Sprint(args...)) }
func (s *spyTB) Errorf(format string, args ...any) {
	s.add(fmt.Sprintf(format, args...))
}

type fatal struct{}

// Fatalf ends the function under test, as the real one does.
func (s *spyTB) Fatalf(format string, args ...any) {
	s.fatal = true
	s.Errorf(format, args...)
	panic(fatal{})
}

func (s *spyTB) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, text)
}

// run is f up to its Fatalf, if there is one.
func (s *spyTB) run(f func()) *spyTB {
	defer func() {
		if v := recover(); v != nil && v != (fatal{}) {
			panic(v)
		}
	}()
	f()
	return s
}

func (s *spyTB) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.told, "\n")
}

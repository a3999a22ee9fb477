package redistest

import (
	"os"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var _ = Child("echo", func(s *Self) {
	s.Say("ready %d %v", os.Getpid(), s.Args)
	for s.In.Scan() {
		s.Say("heard %s", s.In.Text())
	}
})

func TestSecondProcessIsReal(t *testing.T) {
	p := Spawn(t, "echo", "a", "b c")
	require.Equal(t, strconv.Itoa(p.Pid())+" [a b c]", p.Expect(t, "ready "))
	require.NotEqual(t, os.Getpid(), p.Pid())
	p.Send(t, "hello %d", 1)
	require.Equal(t, "heard hello 1", p.Line(t))
	p.CloseInput()
	p.Wait(t)
}

func TestKilledProcessIsGone(t *testing.T) {
	p := Spawn(t, "echo")
	p.Expect(t, "ready")
	p.Kill()
	require.ErrorIs(t, syscall.Kill(p.Pid(), 0), syscall.ESRCH)
}

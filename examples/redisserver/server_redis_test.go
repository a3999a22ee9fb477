package redisserver

import (
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAServerAnswersIsSilentWhilePausedAndIsGoneAfterClose(t *testing.T) {
	s, err := Start(t.Context())
	require.NoError(t, err)
	require.Regexp(t, `^\d+\.\d+\.\d+$`, s.Version)
	require.NotEqual(t, "127.0.0.1:6379", s.Addr)

	require.NoError(t, s.Pause())
	asked := make(chan error, 1)
	go func() { _, err := s.info(); asked <- err }()
	require.Error(t, <-asked, "info gives up after a second")
	require.NoError(t, s.Resume())
	require.Eventually(t, func() bool { _, err := s.info(); return err == nil }, patience, time.Millisecond)

	require.NoError(t, s.Pause())
	s.Close()
	_, err = net.Dial("tcp", s.Addr)
	require.Error(t, err)
	require.NoDirExists(t, s.dir)
}

func TestWithoutAServerItSaysHowToGetOne(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context())
	require.ErrorIs(t, err, ErrMissing)
	require.ErrorContains(t, err, "apt-get install redis-server")
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/redis-server", []byte("#!/bin/sh\necho no such luck\nexit 1\n"), 0o700))
	_, err := start(t.Context(), dir+"/redis-server")
	require.ErrorContains(t, err, "no such luck")
}

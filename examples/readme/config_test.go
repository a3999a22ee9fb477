package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What README.md says of configuration: one instance per name, and a reload that keeps it.
func TestConfigured(t *testing.T) {
	reg, billing, err := configured()
	require.NoError(t, err)
	defer func() { require.NoError(t, reg.Close()) }()
	require.Equal(t, `billing: timeout "billing" 2s > retry "bank" > breaker "bank" > bulkhead "bank" > attempt-timeout "billing" 500ms > fn`, billing.String())
	require.NoError(t, reg.Reload(strings.NewReader(strings.Replace(settings, "max-concurrent: 32", "max-concurrent: 8", 1))))
	require.Same(t, billing, reg.MustPipeline("billing"))
	require.ErrorContains(t, reg.Reload(strings.NewReader(strings.Replace(settings, "window-size", "window-sise", 1))), "window-sise")
}

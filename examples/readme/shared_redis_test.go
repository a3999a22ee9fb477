package main

import (
	"context"
	"errors"
	"testing"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf/breaker"
	"github.com/stretchr/testify/require"
)

// What README.md says of takeOut: it stops a pipeline that was built elsewhere.
func TestTakeOutStopsTheFleet(t *testing.T) {
	client := redistest.Start(t).Client(t)
	p, end, err := shared(client)
	require.NoError(t, err)
	defer func() { require.NoError(t, end(context.Background())) }()
	call := func() error { return p.Run(t.Context(), func(context.Context) error { return nil }) }
	require.NoError(t, call())
	require.NoError(t, takeOut(t.Context(), client))
	redistest.Eventually(t, "the fleet knows", func() bool { return errors.Is(call(), breaker.ErrOpen) })
}

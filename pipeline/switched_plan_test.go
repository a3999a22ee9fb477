package pipeline

import (
	"testing"

	"github.com/fairlead/fairlead/internal/toggle"
	"github.com/stretchr/testify/require"
)

// A call that read the plan while the pipeline was off, and the switch when it was on again, runs what is on.
func TestAPlanReadBeforeAChangeIsNotRunAfterTheSwitch(t *testing.T) {
	s := toggle.New(false)
	p := For("p").SwitchedBy(s).MustBuild()
	stale := p.plan.Load()
	require.Same(t, stale.plain, p.switched(stale), "while it is off, the plain call of then is as good as any")
	require.NoError(t, p.Update(For("p")))
	s.Set(true)
	require.Same(t, p.plan.Load(), p.switched(stale))
	require.NotSame(t, stale, p.current())
}

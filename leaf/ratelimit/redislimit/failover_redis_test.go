package redislimit

import (
	"errors"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/ratelimit"
	"github.com/stretchr/testify/require"
)

// Section 13, test 19, under the limiter: while the Cluster has no master for the key the policy decides, and after the promotion
// the bucket goes on where the replica has it.
func TestAKilledMasterOfTheClusterIsAnOutageAndNoMore(t *testing.T) {
	cluster := redistest.StartCluster(t)
	p := &place{t: t, client: cluster.Client(t), opts: Options{OnOutage: leaf.FailClosed}}
	l := p.limiter(ratelimit.Config{Rate: 1, Per: time.Hour, Burst: 1000})
	redistest.Eventually(t, "it answers", func() bool { return l.AllowN(bg, 500) == nil })
	spent := 0
	cluster.AwaitMaster(t, l.store.Key()).Do(t, "wait", 1, 5000) // the replica has it
	var strange error
	recovery := cluster.FailOver(t, l.store.Key(), func() error {
		err := l.AllowN(bg, 1)
		if _, ok := errors.AsType[*leaf.StoreError](err); err != nil && !ok {
			strange = err
		}
		if err == nil {
			spent++
		}
		return err
	})
	t.Logf("recovered %v after the promotion", recovery)
	require.NoError(t, strange)
	require.Less(t, recovery, time.Second)
	require.LessOrEqual(t, tokens(t, l), 500.0, "it is not full again")
	require.Positive(t, spent)
}

package rediscooldown

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/fairlead/fairlead/internal/redistest"
	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/cooldown"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Bad input: a server that lets nobody run scripts, refuses the password, or speaks another protocol: a clear error or the policy.
func TestServersThatRefuseAreAClearErrorAndThePolicy(t *testing.T) {
	for what, row := range map[string]struct {
		start  redistest.Options
		change func(*redis.Options)
		want   string
	}{
		"no Lua":         {start: redistest.Options{Config: []string{`rename-command EVAL ""`, `rename-command EVALSHA ""`}}, want: "unknown command"},
		"wrong password": {start: redistest.Options{Password: "right"}, change: func(o *redis.Options) { o.Password = "wrong" }, want: "WRONGPASS"},
		"TLS mismatch":   {start: redistest.Options{TLS: true}, change: func(o *redis.Options) { o.TLSConfig = nil }},
	} {
		t.Run(what, func(t *testing.T) {
			o := redistest.Start(t, row.start).Options()
			if row.change != nil {
				row.change(o)
			}
			client := redis.NewClient(o)
			t.Cleanup(func() { _ = client.Close() })
			f := &fleet{t: t, client: client, opts: Options{Timeout: time.Second, OnOutage: leaf.FailClosed}}
			_, err := f.join(cooldown.Config{}).Acquire(bg)
			require.ErrorContains(t, storeError(t, err), row.want)
			f.opts.OnOutage = leaf.FailLocal
			local := f.join(cooldown.Config{})
			require.Zero(t, refused(t, local))
			local.Hint(bg, time.Hour)
			require.Positive(t, refused(t, local), "what is known here holds")
		})
	}
}

// A hook that ends its goroutine admits nobody.
func TestHooksGoexitAdmitsNobody(t *testing.T) {
	f := alone(t, 0)
	f.opts.OnOutage = leaf.FailClosed
	f.opts.OnStore = func(context.Context, leaf.StoreEvent) { runtime.Goexit() }
	c := f.join(cooldown.Config{})
	f.server.Kill(t)
	_, err := c.Acquire(bg)
	storeError(t, err)
}

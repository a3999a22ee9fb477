package redislimit

import (
	"testing"

	"github.com/fairlead/fairlead/internal/redisscript"
	"github.com/fairlead/fairlead/leaf"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func redisClient(t testing.TB, o *redis.Options) *redis.Client {
	c := redis.NewClient(o)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func storeCall(args []any) redisscript.Call {
	return redisscript.Call{Op: leaf.OpAdmit, Script: spend, Args: args}
}

package redisscript

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis sends one time. Its own retries know nothing of what a command does: a reply that was lost
// on the way back would execute a script again. MaxRetries: -1 is not enough, since a Cluster client counts MaxRedirects.
// Redirections (MOVED, ASK) and a READONLY, which prove that nothing was executed, are still followed.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// Clone keeps the promise.
func (c once) Clone() redis.Cmder {
	inner, ok := c.Cmd.Clone().(*redis.Cmd)
	if !ok { // it cannot be: but a copy that is sent twice would be worse than one that fails
		inner = redis.NewCmd(context.Background(), c.Args()...)
	}
	return once{inner}
}

// eval sends a script by its digest; where the server does not have it, which proves that it did not run, by its source.
func eval(ctx context.Context, client redis.UniversalClient, s *Script, key, now string, args []any) (Reply, error) {
	reply, err := run(ctx, client, "evalsha", s.sha, key, now, args)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = run(ctx, client, "eval", s.source, key, now, args)
	}
	return reply, err
}

func run(ctx context.Context, client redis.UniversalClient, command, script, key, now string, args []any) (Reply, error) {
	all := make([]any, 0, 5+len(args))
	all = append(append(all, command, script, 1, key, now), args...)
	cmd := once{redis.NewCmd(ctx, all...)}
	err := client.Process(ctx, cmd)
	if errors.Is(err, redis.Nil) {
		return Reply{}, nil
	}
	if err != nil {
		return Reply{}, err
	}
	return Reply{cmd.Val()}, nil
}

package redisscript

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// class is what a failed call tells.
type class struct {
	notExecuted bool // the store certainly did not execute the script
	answered    bool // the server works, and says that it will not do this: nothing that waiting and probing would find out
}

// refusals is how a server says that it did not execute a command. down: it serves nobody for the time being.
var refusals = []struct {
	prefix string
	down   bool
}{
	{"NOSCRIPT ", false},
	{"LOADING ", true},
	{"READONLY ", false},
	{"MASTERDOWN ", true},
	{"CLUSTERDOWN ", true},
	{"TRYAGAIN ", false},
	{"OOM ", false},
	{"MISCONF ", false},
	{"NOREPLICAS ", false},
	{"BUSY ", true},
	{"NOAUTH ", true},
	{"WRONGPASS ", true},
	{"NOPERM ", false},
	{"MOVED ", false},
	{"ASK ", false},
	{"CROSSSLOT ", false},
	{"ERR unknown command", false},
	{"ERR max number of clients reached", true},
	{"ERR Protocol error: unauthenticated", true}, // NOAUTH's form for a command of more than 10 arguments
}

// inScript is how Redis 6.2 reports the same from inside a script. Each of them is raised by the first command that writes, and
// by every later one alike, so that nothing was written before it.
var inScript = []string{"-READONLY ", "-OOM ", "-MISCONF ", "-NOREPLICAS ", "-MASTERDOWN "}

// classify errs on the safe side: what it does not know may have been executed.
func classify(err error) class {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		return classifyReply(reply.Error())
	}
	return class{notExecuted: beforeSending(err)}
}

func classifyReply(text string) class {
	for _, r := range refusals {
		if strings.HasPrefix(text, r.prefix) {
			return class{notExecuted: true, answered: !r.down}
		}
	}
	for _, s := range inScript {
		if strings.Contains(text, s) {
			return class{notExecuted: true, answered: true}
		}
	}
	return class{answered: true}
}

// beforeSending knows the errors that go-redis gives while it looks for a connection.
func beforeSending(err error) bool {
	for _, known := range []error{
		redis.ErrPoolTimeout, redis.ErrPoolExhausted, redis.ErrClosed,
		errOpen, errClosed, errCrowded, errNoSeat, errNoConnection,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	// A connection that is being made carries no script yet.
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return true
	}
	for _, handshake := range []func(error) bool{
		is[*net.DNSError], is[tls.RecordHeaderError], is[*tls.CertificateVerificationError],
		is[x509.UnknownAuthorityError], is[x509.HostnameError], is[x509.CertificateInvalidError],
	} {
		if handshake(err) {
			return true
		}
	}
	text := err.Error()
	return strings.Contains(text, "all sentinels specified in configuration are unreachable") ||
		strings.Contains(text, "cluster has no nodes")
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// network says that the connection failed, not the command.
func network(err error) bool {
	if _, ok := errors.AsType[redis.Error](err); ok {
		return false
	}
	return !errors.Is(err, context.Canceled)
}

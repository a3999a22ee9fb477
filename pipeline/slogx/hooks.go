package slogx

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"github.com/fairlead/fairlead/leaf"
	"github.com/fairlead/fairlead/leaf/breaker"
)

// OnChange is for breaker.Config.OnChange: a circuit that opens is a Warn, one that closes or probes an Info. Attributes: guard, from,
// to, reason, seq. l nil = slog.Default.
func OnChange(l *slog.Logger, opts ...Option) func(c breaker.Change) {
	w := newWriter(l, opts)
	return func(c breaker.Change) {
		level := slog.LevelInfo
		if c.To == breaker.Open {
			level = slog.LevelWarn
		}
		w.hook(context.Background(), level, key{guard: c.Name, what: circuit(c.To)}, nil,
			slog.String("from", c.From.String()), slog.String("to", c.To.String()), slog.String("reason", c.Reason), slog.Uint64("seq", c.Seq))
	}
}

func circuit(to breaker.State) string {
	switch to {
	case breaker.Closed:
		return "circuit closed"
	case breaker.Open:
		return "circuit opened"
	default:
		return "circuit half-open"
	}
}

// OnShadow is for leaf.Shadow: a refusal that would have been given is a Warn, with its error. A Shadow does not say which guard it
// is; l.With does. l nil = slog.Default.
//
//	leaf.Shadow(limiter, slogx.OnShadow(logger.With("guard", "search")))
func OnShadow(l *slog.Logger, opts ...Option) func(ctx context.Context, refusal error) {
	w := newWriter(l, opts)
	return func(ctx context.Context, refusal error) {
		k := key{what: "guard would have rejected"}
		if refusal != nil {
			k.refusal = reflect.TypeOf(refusal).String()
		}
		w.hook(ctx, slog.LevelWarn, k, refusal)
	}
}

// OnStore is for the OnStore option of guards that are shared through a store: failed and overage are Warns, recovered is an Info.
// Attributes: guard, op, and of failed the policy in force from now on and the error. l nil = slog.Default.
func OnStore(l *slog.Logger, opts ...Option) leaf.OnStore {
	w := newWriter(l, opts)
	return func(ctx context.Context, e leaf.StoreEvent) {
		level := slog.LevelWarn
		if e.Kind == "recovered" {
			level = slog.LevelInfo
		}
		attrs := make([]slog.Attr, 0, 2)
		if e.Op != "" {
			attrs = append(attrs, slog.String("op", e.Op))
		}
		if e.Kind == "failed" {
			attrs = append(attrs, slog.String("policy", e.Policy.String()))
		}
		w.hook(ctx, level, key{guard: e.Name, what: store(e.Kind)}, e.Err, attrs...)
	}
}

func store(kind string) string {
	switch kind {
	case "failed":
		return "guard's store failed"
	case "recovered":
		return "guard's store recovered"
	case "overage":
		return "guard's permit came back after its lease"
	default:
		return "guard's store: " + kind
	}
}

// OnReload is for the hooks of package registry: WithOnReload, which hears of every reload, or Watch's onError, which hears of
// one file's troubles alone. What could not be put in force is an Error, and what was in force still is; nil, which is a
// configuration that is in force now, is an Info. A start is none: a Watch that finds the file as it was loaded tells nothing.
// WithOnReload hears all that onError does: who gives it to both gets each trouble twice. l nil = slog.Default.
func OnReload(l *slog.Logger, opts ...Option) func(err error) {
	w := newWriter(l, opts)
	return func(err error) {
		if err == nil {
			w.hook(context.Background(), slog.LevelInfo, key{what: "configuration reloaded"}, nil)
			return
		}
		w.hook(context.Background(), slog.LevelError, key{what: "configuration not reloaded"}, err)
	}
}

// hook writes a guard's line. Hooks are told no time; they go by real time.
func (w *writer) hook(ctx context.Context, level slog.Level, k key, err error, attrs ...slog.Attr) {
	defer survive()
	now := time.Now()
	w.flush(ctx, now)
	if !w.enabled(ctx, level) || !w.repeats.allow(k, level, now) {
		return
	}
	all := make([]slog.Attr, 0, len(attrs)+2)
	if k.guard != "" {
		all = append(all, slog.String("guard", k.guard))
	}
	w.write(ctx, now, level, k.what, w.withError(append(all, attrs...), err)...)
}

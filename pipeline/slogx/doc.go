// Package slogx writes what pipelines and their guards tell to a log/slog logger.
//
//	p := pipeline.For("billing").Retry(r).Breaker(b).Observe(slogx.Observer(logger)).MustBuild()
//
// The model: a call is at most one line, at its end, and that line sums it up: how it ended, the runs of fn, why the retry
// stopped, which layer refused, the wait that was asked for, the error. [Every] writes the other events as well.
//
//	what                                       level
//	call succeeded, mended by a retry or not   Debug
//	call cancelled: the caller went away       Info
//	call rejected, call deferred               Warn
//	call failed, call expired                  Error
//	with Every: attempt failed, rejected,      Warn: a warning at most, since only the call's end can be an error
//	            retry stopped
//	            retry scheduled                Info
//	            call started, attempt done     Debug
//
// [OnChange], [OnShadow], [OnStore] and [OnReload] are ready functions for the hooks of breakers, of leaf.Shadow, of guards
// that are shared through Redis, and of a registry (its WithOnReload, or its Watch).
//
// Secrets. A line never holds what a callback returned: events do not carry it. It does hold the error's text, since nobody
// can mend what he cannot read: its first 512 bytes. Where errors may quote a secret (a *url.Error quotes the whole URL), say
// with [ErrorText] what is written instead.
//
// Repeats. An outage makes thousands of equal lines. Of lines at Info and above that are alike (the same pipeline, event,
// outcome, layer and reason) 5 a minute are written; when the minute is over, the next event of any pipeline of this
// observer writes one line that counts the rest. The minute is the program's own, whatever clock a pipeline is on: it is the log
// that is spared. [Repeats] changes that. Debug lines are never held back.
//
// A logger is no part of a call: a panic of its handler, of an option's function or of an error's Error method goes no
// further, and that line is lost. A nil logger is slog.Default, asked for at each line. Where the level is disabled a line
// costs no allocation. Everything here is safe for concurrent use, and starts no goroutine and no timer.
package slogx

// Package peers names what the comparison is with.
package peers

import (
	"runtime/debug"
	"slices"
)

// modules are the peers'. Asked for and not served by proxy.golang.org on 2026-11-30 ("This module version is not available"):
// mercari/go-circuitbreaker, cep21/circuit/v4, slok/goresilience.
var modules = []string{
	"github.com/afex/hystrix-go",
	"github.com/avast/retry-go/v5",
	"github.com/cenkalti/backoff/v5",
	"github.com/eapache/go-resiliency",
	"github.com/failsafe-go/failsafe-go",
	"github.com/hashicorp/go-retryablehttp",
	"github.com/sony/gobreaker/v2",
	"go.uber.org/ratelimit",
	"golang.org/x/sync",
	"golang.org/x/time",
}

// Versions are those that this program was built with, each behind its module's path.
func Versions() (all []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, d := range info.Deps {
		if slices.Contains(modules, d.Path) {
			all = append(all, d.Path+" "+d.Version)
		}
	}
	return all
}

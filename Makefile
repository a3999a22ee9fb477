# The two commands: `make test`, and `go run ./examples/quickstart`.
SHELL       := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.PHONY: test lint bench microbench bench-redis fuzz soak vuln tools

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
BENCH       ?= .
FUZZTIME    ?= 1m
SOAK        ?= 10m

# Modules of their own, whose dependencies stay out of the root's go.mod. The root comes last.
NESTED  := $(patsubst %/go.mod,%,$(shell find examples pipeline -name go.mod -not -path '*/testdata/*' 2>/dev/null | sort))
MODULES := $(NESTED) .

# Allocations and the ratios of speed are counted without -race, whose own would count too, and the pipeline's model runs whole,
# which takes too long with it; then everything runs under it.
test: tools
	go test -run 'Alloc|Speed|EverySubsetAgainstTheModel' ./...
	for m in $(MODULES); do (cd "$$m" && go test -race ./...); done

lint:
	bad=$$(gofmt -l .); [ -z "$$bad" ] || { echo "not gofmt'ed:" $$bad; exit 1; }
	for m in $(MODULES); do (cd "$$m" && go vet ./... && go run $(STATICCHECK) ./...); done

# Beside the peers and the composition by hand: figures (one to two minutes), then behaviour (two, mostly waiting).
bench:
	cd examples/bench && go run . -write RESULTS.md && go run ./behaviour -write BEHAVIOUR.md

# Every go benchmark. make microbench BENCH=Breaker
microbench:
	for m in $(MODULES); do (cd "$$m" && go test -run '^$$' -bench '$(BENCH)' -benchmem ./...); done

# The shared guards beside redis_rate and a plain lease, and while Redis is stopped; one table, about a minute.
bench-redis: tools
	cd examples/bench-redis && go run . -write RESULTS.md

# Each fuzz target in turn; minimizing an input would eat the minute. make fuzz FUZZTIME=10m
fuzz:
	go test -list '^Fuzz' ./... | awk '/^Fuzz/ { target[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, target[i]; n = 0 }' | \
	while read -r pkg target; do \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(FUZZTIME)' -fuzzminimizetime 1x "$$pkg" </dev/null; \
	done

# Random pipelines under random faults, in virtual and in real time; a failure prints how to have it again. make soak SOAK=1h
soak:
	go test -count=1 -run '^TestSoak$$' -timeout 0 -v ./examples/soak -args -d '$(SOAK)'

# For machines that reach the vulnerability database; CI does not.
vuln:
	for m in $(MODULES); do (cd "$$m" && go run $(GOVULNCHECK) ./...); done

# What the tests need beside Go: the race detector a C compiler; the shared guards real redis-server processes, which the
# tests start and end themselves, on ports of their own; the console's page a browser.
tools:
	@need=; \
	command -v "$$(go env CC)" >/dev/null || need="gcc libc6-dev"; \
	command -v redis-server >/dev/null && command -v redis-sentinel >/dev/null && command -v redis-cli >/dev/null || \
		need="$$need redis-server redis-sentinel redis-tools"; \
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		need="$$need chromium"; \
	[ -z "$$need" ] || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$need; }

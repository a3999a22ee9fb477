package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead/fairlead/pipeline"
	"github.com/fairlead/fairlead/pipeline/registry"
)

// yours is the pipeline of that name in a registry file, YAML or JSON; name may be empty where the file has only one. Every
// process gets a registry of its own. The file may speak of the matchers below, but not of what is shared in Redis: a
// socket has no place in virtual time.
func yours(path, name string) (policy, error) {
	file, err := os.Open(path)
	if err != nil {
		return policy{}, err
	}
	defer file.Close()
	document, err := io.ReadAll(io.LimitReader(file, 1<<20+1)) // one byte more than a registry reads: it will say so
	if err != nil {
		return policy{}, err
	}
	load := registry.LoadYAML
	if strings.EqualFold(filepath.Ext(path), ".json") {
		load = registry.LoadJSON
	}
	if name, err = choose(load, document, name); err != nil {
		return policy{}, fmt.Errorf("%s: %w", path, err)
	}
	title := fmt.Sprintf("yours: %s of %s", name, filepath.Base(path))
	return policy{name: "yours", label: "yours", title: title, sendsBudget: true, build: func(s site) (*pipeline.Pipeline, error) {
		reg, err := load(bytes.NewReader(document), append(matchers(),
			registry.WithRand(s.rand), registry.WithOnChange(s.storm.tally.change))...)
		if err != nil {
			return nil, err
		}
		s.storm.ends = append(s.storm.ends, func() { _ = reg.Close() })
		p, err := reg.Pipeline(name)
		if err == nil && slices.ContainsFunc(p.Describe().Layers, func(l pipeline.Layer) bool { return l.Kind == "breaker" }) {
			s.storm.tally.circuit()
		}
		return p, err
	}}, nil
}

type loader = func(io.Reader, ...registry.Option) (*registry.Registry, error)

// choose finds out whether the document can be used at all, before any storm begins.
func choose(load loader, document []byte, name string) (string, error) {
	reg, err := load(bytes.NewReader(document), matchers()...)
	if err != nil {
		return "", err
	}
	defer reg.Close()
	var names []string
	for _, i := range reg.Describe().Instances {
		if slices.ContainsFunc(i.Settings, func(s registry.Setting) bool { return s.Key == "shared" && s.Value == "true" }) {
			return "", fmt.Errorf("%s.%s: shared: true would need Redis, which does not exist in virtual time; leave it out", i.Section, i.Name)
		}
		if i.Section == "pipelines" {
			names = append(names, i.Name)
		}
	}
	switch {
	case len(names) == 0:
		return "", errors.New("resilience.pipelines: there is none")
	case name == "" && len(names) == 1:
		return names[0], nil
	case !slices.Contains(names, name):
		return "", fmt.Errorf("-pipeline %q: has to be one of %s", name, strings.Join(names, ", "))
	}
	return name, nil
}

// matchers is what a file may ask about an error, besides all, timeout and context.
func matchers() []registry.Option {
	status := func(codes ...int) func(error) bool {
		return func(err error) bool {
			e, ok := errors.AsType[*statusError](err)
			return ok && slices.Contains(codes, e.code)
		}
	}
	reset := func(err error) bool { return errors.Is(err, errReset) }
	unavailable := status(http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout)
	return []registry.Option{
		registry.WithMatcher("reset", reset),
		registry.WithMatcher("throttled", status(http.StatusTooManyRequests)),
		registry.WithMatcher("unavailable", func(err error) bool { return reset(err) || unavailable(err) }),
	}
}
